// A std::shared_mutex, which one function holds for writing nearly all the time; readers wait for it.
#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {
constexpr int rounds = 12, readers = 3;
std::atomic<int> taken, served;

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
void await_at_least(std::atomic<int> &number, int least)
{
    while (number < least)
        sleep_ms(1);
}
} // namespace

class Cache {
  public:
    __attribute__((noinline)) void refill(int round)
    {
        std::unique_lock<std::shared_mutex> guard(mutex_);
        taken = round;
        sleep_ms(30);
    }

    __attribute__((noinline)) void get()
    {
        std::shared_lock<std::shared_mutex> guard(mutex_);
        asm volatile("" ::: "memory");
    }

  private:
    std::shared_mutex mutex_;
};

int main()
{
    Cache cache;
    std::vector<std::thread> threads;
    for (int i = 0; i < readers; i++)
        threads.emplace_back([&cache] {
            for (int round = 1; round <= rounds; round++) {
                await_at_least(taken, round);
                cache.get();
                served++;
            }
        });
    for (int round = 1; round <= rounds; round++) {
        cache.refill(round);
        await_at_least(served, round * readers);
    }
    for (auto &thread : threads)
        thread.join();
}
