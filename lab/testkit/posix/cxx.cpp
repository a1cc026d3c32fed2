// The C++ library over the drop-in: mutex, timed_mutex, recursive_timed_mutex, shared_timed_mutex,
// condition_variable(_any), call_once, future; and destructors that run when a thread is cancelled in a wait.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <thread>
#include <unistd.h>
#include <vector>

#define CHECK(condition)                                                                                       \
    do {                                                                                                       \
        if (!(condition)) {                                                                                    \
            std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition);                 \
            _exit(1);                                                                                          \
        }                                                                                                      \
    } while (0)

using namespace std::chrono_literals;

template <class Mutex> static void excludes()
{
    Mutex mutex;
    long counter = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 10000; i++) {
                std::lock_guard<Mutex> guard(mutex);
                counter++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    CHECK(counter == 40000);
}

template <class Mutex> static void times_out()
{
    Mutex mutex;
    std::unique_lock<Mutex> lock(mutex);
    std::thread([&] {
        auto before = std::chrono::steady_clock::now();
        CHECK(!mutex.try_lock());
        CHECK(!mutex.try_lock_for(10ms));
        CHECK(std::chrono::steady_clock::now() - before >= 10ms);
        CHECK(!mutex.try_lock_until(std::chrono::system_clock::now() + 10ms));
        CHECK(!mutex.try_lock_until(std::chrono::system_clock::time_point()));
        CHECK(!mutex.try_lock_for(-1ms));
    }).join();
    lock.unlock();
    std::thread([&] {
        CHECK(mutex.try_lock_for(-1ms));
        mutex.unlock();
    }).join();
}

static void shared()
{
    std::shared_timed_mutex mutex;
    long a = 0, b = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 5000; i++) {
                if (i % 4 == t) {
                    std::unique_lock<std::shared_timed_mutex> lock(mutex);
                    a++, b++;
                } else {
                    std::shared_lock<std::shared_timed_mutex> lock(mutex);
                    CHECK(a == b);
                }
            }
        });
    for (auto &thread : threads)
        thread.join();
    CHECK(a == 5000);
    std::unique_lock<std::shared_timed_mutex> lock(mutex);
    std::thread([&] {
        CHECK(!mutex.try_lock_shared_for(5ms));
        CHECK(!mutex.try_lock_for(5ms));
    }).join();

    std::shared_mutex plain;
    std::shared_lock<std::shared_mutex> reader(plain);
    std::thread([&] {
        CHECK(plain.try_lock_shared());
        plain.unlock_shared();
        CHECK(!plain.try_lock());
    }).join();
}

template <class Condition, class Mutex> static void conditions()
{
    Mutex mutex;
    Condition condition;
    int tickets = 0, taken = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 500; i++) {
                std::unique_lock<Mutex> lock(mutex);
                condition.wait(lock, [&] { return tickets > 0; });
                tickets--, taken++;
            }
        });
    for (int i = 0; i < 2000; i++) {
        std::lock_guard<Mutex> guard(mutex);
        tickets++;
        if (i % 2)
            condition.notify_one();
        else
            condition.notify_all();
    }
    for (auto &thread : threads)
        thread.join();
    CHECK(taken == 2000);

    std::unique_lock<Mutex> lock(mutex);
    auto before = std::chrono::steady_clock::now();
    CHECK(!condition.wait_for(lock, 10ms, [] { return false; }));
    CHECK(std::chrono::steady_clock::now() - before >= 10ms);
    CHECK(!condition.wait_until(lock, std::chrono::system_clock::now() - 1h, [] { return false; }));
    CHECK(!condition.wait_until(lock, std::chrono::system_clock::now() + 10ms, [] { return false; }));
}

// A cancellation unwinds the stack like an exception.
struct Scene {
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    std::atomic<int> waiting{0}, destroyed{0}, caught{0};
};

struct Guard {
    Scene &scene;
    explicit Guard(Scene &s) : scene(s) { CHECK(pthread_mutex_lock(&scene.mutex) == 0); }
    ~Guard()
    {
        CHECK(pthread_mutex_unlock(&scene.mutex) == 0); // EPERM unless this thread holds it
        scene.destroyed++;
    }
};

static void *cancelled(void *arg)
{
    Scene &scene = *static_cast<Scene *>(arg);
    try {
        Guard guard(scene);
        scene.waiting++;
        for (;;)
            pthread_cond_wait(&scene.condition, &scene.mutex);
    } catch (...) {
        scene.caught++;
        throw; // glibc insists
    }
}

static void unwinding()
{
    for (int i = 0; i < 300; i++) {
        Scene scene;
        pthread_t threads[2];
        for (auto &thread : threads)
            CHECK(pthread_create(&thread, nullptr, cancelled, &scene) == 0);
        while (scene.waiting != 2)
            std::this_thread::yield();
        if (i % 2)
            std::this_thread::sleep_for(100us);
        for (auto &thread : threads)
            CHECK(pthread_cancel(thread) == 0);
        for (auto &thread : threads) {
            void *result;
            CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        }
        CHECK(scene.destroyed == 2 && scene.caught == 2);
        CHECK(pthread_mutex_destroy(&scene.mutex) == 0);
        CHECK(pthread_cond_destroy(&scene.condition) == 0);
    }
}

int main()
{
    excludes<std::mutex>();
    excludes<std::recursive_mutex>();
    excludes<std::timed_mutex>();
    excludes<std::recursive_timed_mutex>();
    excludes<std::shared_mutex>();
    times_out<std::timed_mutex>();
    times_out<std::recursive_timed_mutex>();
    times_out<std::shared_timed_mutex>();
    shared();
    conditions<std::condition_variable, std::mutex>();
    conditions<std::condition_variable_any, std::recursive_mutex>();
    conditions<std::condition_variable_any, std::shared_mutex>();
    for (int i = 0; i < 100; i++) {
        std::once_flag once;
        int calls = 0;
        auto call = [&] { std::call_once(once, [&] { calls++; }); };
        auto one = std::async(std::launch::async, call), two = std::async(std::launch::async, call);
        one.get();
        two.get();
        CHECK(calls == 1);
    }
    unwinding();
    return 0;
}
