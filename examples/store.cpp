// An example store: writers hold its lock while they rebuild an index, and readers of prices wait for them.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shop {

class Store {
public:
    Store() : prices_{{"tea", 3}} {}

    [[gnu::noinline]] void rebuild_index() {
        std::lock_guard<std::mutex> guard(mutex_);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        index_.clear();
        for (const auto &price : prices_) index_[price.second] = price.first;
    }

    [[gnu::noinline]] long price_of(const std::string &name) {
        std::unique_lock<std::mutex> guard(mutex_);
        return prices_[name];
    }

private:
    std::mutex mutex_;
    std::map<std::string, long> prices_;
    std::map<long, std::string> index_;
};

}  // namespace shop

int main() {
    auto store = std::make_unique<shop::Store>();
    std::atomic<bool> is_over{false};
    std::atomic<long> sum{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; i++) {
        readers.emplace_back([&] {
            while (!is_over) {
                sum += store->price_of("tea");
                std::this_thread::sleep_for(std::chrono::microseconds(200));
            }
        });
    }
    for (int i = 0; i < 100; i++) {
        store->rebuild_index();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    is_over = true;
    for (auto &reader : readers) reader.join();
    return sum > 0 ? 0 : 1;
}
