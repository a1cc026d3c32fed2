// Many call sites of one lock: functions that call one function, recursion, virtual functions, std::function. What the recorder
// unwinds is one stack a return address or so, however often the lock is taken. With an argument, that number of acquisitions
// follow each other as fast as possible. Prints how often the lock was taken since it was waited for.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <pthread.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
long taken;

[[gnu::noinline]] void locked() {
    pthread_mutex_lock(&mutex);
    taken++;
    pthread_mutex_unlock(&mutex);
    asm volatile("" ::: "memory");
}

template <int N>
[[gnu::noinline]] void site() {
    locked();
    asm volatile("" ::: "memory");
}

template <int... N>
std::vector<void (*)()> sites(std::integer_sequence<int, N...>) {
    return {site<N>...};
}

[[gnu::noinline]] void recurse(int depth) {
    if (depth > 0) {
        recurse(depth - 1);
    }
    locked();
    asm volatile("" ::: "memory");
}

struct Base {
    virtual ~Base() = default;
    virtual void work() = 0;
};

template <int N>
struct Wrapper : Base {
    [[gnu::noinline]] void work() override { site<N>(); asm volatile("" ::: "memory"); }
};

// The lock is one that has been waited for.
void *wait_once(void *) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return nullptr;
}

}  // namespace

int main(int count, char **arguments) {
    pthread_mutex_lock(&mutex);
    pthread_t waiter;
    pthread_create(&waiter, nullptr, wait_once, nullptr);
    // Until it sleeps: then the lock word says so.
    while (__atomic_load_n(reinterpret_cast<int *>(&mutex), __ATOMIC_RELAXED) != 2) {
        usleep(1000);
    }
    pthread_mutex_unlock(&mutex);
    pthread_join(waiter, nullptr);
    if (count > 1) {
        for (long left = std::atol(arguments[1]); left > 0; left--) {
            locked();
        }
        std::printf("%ld\n", taken);
        return 0;
    }
    auto all = sites(std::make_integer_sequence<int, 1000>());
    std::vector<std::unique_ptr<Base>> wrappers;
    wrappers.push_back(std::make_unique<Wrapper<1>>());
    wrappers.push_back(std::make_unique<Wrapper<2>>());
    std::vector<std::function<void()>> functions;
    functions.push_back([] { site<3>(); asm volatile("" ::: "memory"); });
    functions.push_back([&wrappers] { wrappers[0]->work(); asm volatile("" ::: "memory"); });
    for (int round = 0; round < 50; round++) {
        for (auto one : all) {
            one();
        }
        for (auto &one : wrappers) {
            one->work();
        }
        for (auto &one : functions) {
            one();
        }
        recurse(round % 25);
    }
    std::printf("%ld\n", taken);
}
