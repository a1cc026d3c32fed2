// One thread writes below a `boost::shared_mutex`, which it holds for 5 of 7 ms; three read.
#include <boost/thread/shared_mutex.hpp>

#include <chrono>
#include <map>
#include <thread>
#include <vector>

using namespace std::chrono;

static boost::shared_mutex prices_lock;
static std::map<int, int> prices;
static volatile long sum;

__attribute__((noinline)) void rebuild() {
    boost::unique_lock<boost::shared_mutex> guard(prices_lock);
    std::this_thread::sleep_for(milliseconds(5));
    prices[rand() % 100]++;
}

__attribute__((noinline)) void look_up(int key) {
    boost::shared_lock<boost::shared_mutex> guard(prices_lock);
    auto found = prices.find(key);
    if (found != prices.end()) sum = sum + found->second;
}

int main() {
    auto end = steady_clock::now() + milliseconds(1500);
    std::vector<std::thread> threads;
    threads.emplace_back([=] {
        while (steady_clock::now() < end) {
            rebuild();
            std::this_thread::sleep_for(milliseconds(2));
        }
    });
    for (int reader = 0; reader < 3; reader++)
        threads.emplace_back([=] {
            for (int i = 0; steady_clock::now() < end; i++) look_up(i % 100);
        });
    for (auto &thread : threads) thread.join();
}
