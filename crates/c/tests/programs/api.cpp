// The types of spinpark.hpp against the standard library: its requirements at compile time, its guards and
// waits at run time.
#include <spinpark.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <shared_mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using std::chrono::hours;
using std::chrono::steady_clock;
using std::chrono::system_clock;

namespace {

void check(bool condition, int line) {
    if (!condition) {
        std::fprintf(stderr, "line %d\n", line);
        std::exit(1);
    }
}
#define CHECK(condition) check((condition), __LINE__)

constexpr int threads = 4;
constexpr int rounds = 10000;

template <class Body>
void crowd(Body body) {
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++) {
        all.emplace_back(body, i);
    }
    for (std::thread& thread : all) {
        thread.join();
    }
}

template <class Body>
void in_thread(Body body) {
    std::thread(body).join();
}

// ---- [thread.mutex.requirements]

template <class Mutex>
constexpr bool is_mutex() {
    static_assert(std::is_default_constructible_v<Mutex> && std::is_destructible_v<Mutex>);
    static_assert(!std::is_copy_constructible_v<Mutex> && !std::is_copy_assignable_v<Mutex>);
    static_assert(!std::is_move_constructible_v<Mutex> && !std::is_move_assignable_v<Mutex>);
    static_assert(std::is_standard_layout_v<Mutex>, "as std::mutex");
    static_assert(std::is_trivially_destructible_v<Mutex>, "usable while the program ends");
    static_assert(std::is_same_v<decltype(std::declval<Mutex&>().lock()), void>);
    static_assert(std::is_same_v<decltype(std::declval<Mutex&>().unlock()), void>);
    static_assert(std::is_same_v<decltype(std::declval<Mutex&>().try_lock()), bool>);
    static_assert(std::is_same_v<decltype(std::declval<Mutex&>().try_lock_for(1.5h)), bool>);
    static_assert(std::is_same_v<decltype(std::declval<Mutex&>().try_lock_until(system_clock::now())), bool>);
    return true;
}

template <class Mutex>
constexpr bool is_shared_mutex() {
    static_assert(std::is_same_v<decltype(std::declval<Mutex&>().lock_shared()), void>);
    static_assert(std::is_same_v<decltype(std::declval<Mutex&>().unlock_shared()), void>);
    static_assert(std::is_same_v<decltype(std::declval<Mutex&>().try_lock_shared()), bool>);
    static_assert(std::is_same_v<decltype(std::declval<Mutex&>().try_lock_shared_for(1ns)), bool>);
    static_assert(
        std::is_same_v<decltype(std::declval<Mutex&>().try_lock_shared_until(steady_clock::now())), bool>);
    return is_mutex<Mutex>();
}

static_assert(is_mutex<spinpark::mutex>() && is_mutex<spinpark::timed_mutex>());
static_assert(is_mutex<spinpark::recursive_mutex>() && is_mutex<spinpark::recursive_timed_mutex>());
static_assert(is_shared_mutex<spinpark::shared_mutex>() && is_shared_mutex<spinpark::shared_timed_mutex>());
static_assert(std::is_standard_layout_v<spinpark::condition_variable>);
static_assert(!std::is_copy_constructible_v<spinpark::condition_variable>);
static_assert(sizeof(spinpark::mutex) == 16 && sizeof(spinpark::recursive_mutex) == 24);
static_assert(sizeof(spinpark::shared_mutex) == 24 && sizeof(spinpark::condition_variable) == 16);

#if __cplusplus >= 202002L
constinit spinpark::mutex first;
constinit spinpark::mutex second;
constinit spinpark::shared_mutex shared;
constinit spinpark::recursive_mutex recursive;
constinit spinpark::condition_variable changed;
#else
spinpark::mutex first;
spinpark::mutex second;
spinpark::shared_mutex shared;
spinpark::recursive_mutex recursive;
spinpark::condition_variable changed;
#endif

// ---- guards

void guards() {
    long plain = 0;
    long both = 0;
    long deep = 0;
    crowd([&](int me) {
        for (int i = 0; i < rounds; i++) {
            {
                std::lock_guard guard(first);
                plain++;
            }
            if (me % 2 == 0) {
                std::scoped_lock guards(first, second, recursive);
                both++;
            } else {
                std::scoped_lock guards(recursive, second, first);
                both++;
            }
            {
                std::unique_lock guard(second, std::defer_lock);
                std::lock(guard, first);
                both++;
                first.unlock();
            }
            std::lock_guard outer(recursive);
            std::unique_lock inner(recursive, std::try_to_lock);
            CHECK(inner.owns_lock() && recursive.try_lock_for(0s));
            recursive.unlock();
            deep++;
        }
    });
    CHECK(plain == long{threads} * rounds && deep == plain && both == 2 * plain);
}

void shared_guards() {
    long left = 0;
    long right = 0;
    crowd([&](int me) {
        for (int i = 0; i < rounds; i++) {
            if ((i + me) % 4 == 0) {
                std::unique_lock guard(shared);
                left++;
                right++;
            } else {
                std::shared_lock guard(shared);
                CHECK(left == right);
            }
        }
    });
    CHECK(left == long{threads} * rounds / 4);
    std::shared_lock one(shared);
    in_thread([] {
        std::shared_lock two(shared, std::try_to_lock);
        CHECK(two.owns_lock());
        std::unique_lock alone(shared, std::try_to_lock);
        CHECK(!alone.owns_lock() && !shared.try_lock_for(1ms));
    });
    one.unlock();
    std::unique_lock alone(shared);
    in_thread([] {
        CHECK(!shared.try_lock_shared() && !shared.try_lock_shared_for(1ms));
        CHECK(!shared.try_lock_shared_until(system_clock::now() + 1ms) && !shared.try_lock());
    });
}

// ---- times

// Stands still for a while, as a clock does that is set back, and then is an hour ahead.
struct strange_clock {
    using rep = std::int64_t;
    using period = std::milli;
    using duration = std::chrono::duration<rep, period>;
    using time_point = std::chrono::time_point<strange_clock>;
    static constexpr bool is_steady = false;
    static inline std::atomic<int> reads{0};
    static time_point now() { return time_point(reads++ < 6 ? duration(0) : duration(hours(1))); }
};
static_assert(!strange_clock::is_steady);

template <class Mutex>
void times(Mutex& mutex) {
    std::unique_lock held(mutex);
    in_thread([&] {
        const auto begin = steady_clock::now();
        CHECK(!mutex.try_lock_for(2ms) && steady_clock::now() - begin >= 2ms);
        CHECK(!mutex.try_lock_for(0.5ms) && !mutex.try_lock_for(-1h) && !mutex.try_lock_for(hours::min()));
        CHECK(!mutex.try_lock_until(steady_clock::now() + 2ms));
        CHECK(!mutex.try_lock_until(system_clock::now() + 2ms));
        CHECK(!mutex.try_lock_until(steady_clock::time_point::min()));
        const auto deadline = steady_clock::now() + 2ms;
        CHECK(!mutex.try_lock_until(deadline) && steady_clock::now() >= deadline);
        strange_clock::reads = 0;
        CHECK(!mutex.try_lock_until(strange_clock::time_point(2ms)) && strange_clock::reads > 6);
    });
    // For ever, in several ways; the mutex is released meanwhile.
    for (int way = 0; way < 4; way++) {
        std::atomic<bool> is_coming{false};
        std::thread waiter([&] {
            is_coming = true;
            switch (way) {
            case 0:
                CHECK(mutex.try_lock_for(hours::max()));
                break;
            case 1:
                CHECK(mutex.try_lock_for(std::chrono::nanoseconds::max()));
                break;
            case 2:
                CHECK(mutex.try_lock_for(std::chrono::duration<double>(1e300)));
                break;
            default:
                CHECK(mutex.try_lock_until(steady_clock::time_point::max()));
            }
            mutex.unlock();
        });
        while (!is_coming) {
            std::this_thread::yield();
        }
        held.unlock();
        waiter.join();
        held.lock();
    }
}

// ---- condition variables

template <class Condvar, class Lock>
void ping_pong(Condvar& cond, Lock& lockable) {
    int turn = 0;
    auto player = [&](int me) {
        for (int i = 0; i < rounds / 10; i++) {
            std::unique_lock<Lock> guard(lockable);
            if (i % 3 == 0) {
                cond.wait(guard, [&] { return turn == me; });
            } else if (i % 3 == 1) {
                CHECK(cond.wait_for(guard, hours(1), [&] { return turn == me; }));
            } else {
                CHECK(cond.wait_until(guard, system_clock::now() + hours(1), [&] { return turn == me; }));
            }
            CHECK(guard.owns_lock());
            turn = 1 - me;
            cond.notify_one();
        }
    };
    std::thread other(player, 1);
    player(0);
    other.join();
}

template <class Condvar, class Lock>
void condition_times(Lock& lockable) {
    Condvar cond;
    std::unique_lock<Lock> guard(lockable);
    const auto never = [] { return false; };
    CHECK(cond.wait_for(guard, 2ms) == std::cv_status::timeout && guard.owns_lock());
    CHECK(cond.wait_until(guard, steady_clock::now() + 2ms) == std::cv_status::timeout);
    CHECK(cond.wait_until(guard, steady_clock::time_point::min()) == std::cv_status::timeout);
    CHECK(!cond.wait_until(guard, system_clock::now() + 2ms, never));
    const auto begin = steady_clock::now();
    CHECK(!cond.wait_for(guard, 2ms, never) && steady_clock::now() - begin >= 2ms);
    CHECK(!cond.wait_for(guard, -1h, never));
    int polls = 0;
    CHECK(cond.wait_for(guard, 0s, [&] { return ++polls == 2; }));
}

void condition_variables() {
    ping_pong(changed, first);
    condition_times<spinpark::condition_variable>(first);

    std::condition_variable_any any;
    ping_pong(any, first);
    ping_pong(any, shared);
    ping_pong(any, recursive);
    condition_times<std::condition_variable_any>(shared);

    // All waiters, one of them for ever by a time; the condition variable goes before they have run.
    for (int i = 0; i < 100; i++) {
        auto cond = std::make_unique<spinpark::condition_variable>();
        int there = 0;
        bool is_open = false;
        std::vector<std::thread> waiters;
        for (int j = 0; j < threads; j++) {
            waiters.emplace_back([&, j] {
                std::unique_lock guard(first);
                there++;
                if (j == 0) {
                    CHECK(cond->wait_for(guard, hours::max(), [&] { return is_open; }));
                } else {
                    cond->wait(guard, [&] { return is_open; });
                }
            });
        }
        std::unique_lock guard(first);
        while (there < threads) {
            guard.unlock();
            std::this_thread::yield();
            guard.lock();
        }
        is_open = true;
        cond->notify_all();
        cond.reset();
        guard.unlock();
        for (std::thread& waiter : waiters) {
            waiter.join();
        }
    }
}

#if __cplusplus >= 202002L && defined(__cpp_lib_jthread)
void stop_tokens() {
    std::condition_variable_any any;
    std::jthread waiter([&](std::stop_token stop) {
        std::unique_lock guard(first);
        CHECK(!any.wait(guard, stop, [] { return false; }));
    });
}
#else
void stop_tokens() {}
#endif

}  // namespace

int main() {
    guards();
    shared_guards();
    times(first);
    times(shared);
    times(recursive);
    condition_variables();
    stop_tokens();
    // The C functions on the same object.
    spinpark_mutex_lock(first.native_handle());
    in_thread([] { CHECK(!first.try_lock()); });
    first.unlock();
    std::puts("all good");
    return 0;
}
