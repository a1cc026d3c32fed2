// For ThreadSanitizer. `tsan NAME` runs one case; those whose name begins with "race" have a data race, "bad"
// breaks a rule of the locks, and the others are right.
#include <spinpark.hpp>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

constexpr int rounds = 2000;

spinpark::mutex first;
spinpark::mutex second;
spinpark::recursive_mutex recursive;
spinpark::shared_mutex shared;
spinpark::condition_variable changed;
long data;

template <class One, class Other>
void both(One one, Other other) {
    std::thread thread(other);
    one();
    thread.join();
}

template <class Body>
void twice(Body body) {
    both(body, body);
}

template <class Mutex>
void counts(Mutex& mutex) {
    for (int i = 0; i < rounds; i++) {
        switch (i % 4) {
        case 0:
            mutex.lock();
            break;
        case 1:
            while (!mutex.try_lock()) {
            }
            break;
        case 2:
            while (!mutex.try_lock_for(std::chrono::microseconds(1))) {
            }
            break;
        default:
            while (!mutex.try_lock_until(std::chrono::steady_clock::now())) {
            }
        }
        data++;
        mutex.unlock();
    }
}

void deep() {
    for (int i = 0; i < rounds; i++) {
        std::lock_guard outer(recursive);
        std::lock_guard inner(recursive);
        data++;
    }
}

void reads_and_writes() {
    for (int i = 0; i < rounds; i++) {
        if (i % 4 == 0) {
            std::unique_lock guard(shared);
            data++;
        } else {
            std::shared_lock outer(shared);
            std::shared_lock inner(shared, std::chrono::hours(1));
            static_cast<void>(*static_cast<volatile long*>(&data));
        }
    }
}

void waits_for_turn(int me) {
    for (int i = 0; i < rounds / 10; i++) {
        std::unique_lock guard(first);
        changed.wait_for(guard, std::chrono::hours(1), [&] { return data % 2 == me; });
        data++;
        changed.notify_one();
    }
}

// As `wait`, by the C function that has a deadline.
void waits_until() {
    timespec soon{};
    clock_gettime(CLOCK_MONOTONIC, &soon);
    first.lock();
    data++;
    static_cast<void>(spinpark_cond_wait_until(changed.native_handle(), first.native_handle(), &soon));
    data++;
    spinpark_cond_broadcast(changed.native_handle());
    first.unlock();
}

void objects() {
    for (int i = 0; i < 10; i++) {
        spinpark_mutex_t mutex;
        spinpark_mutex_init(&mutex);
        long mine = 0;
        twice([&] {
            spinpark_mutex_lock(&mutex);
            mine++;
            spinpark_mutex_unlock(&mutex);
        });
        spinpark_mutex_destroy(&mutex);
        spinpark_rwlock_t lock;
        spinpark_rwlock_init(&lock);
        twice([&] {
            spinpark_rwlock_write_lock(&lock);
            mine++;
            spinpark_rwlock_write_unlock(&lock);
        });
        spinpark_rwlock_destroy(&lock);
        spinpark_recursive_mutex_t deep;
        spinpark_recursive_mutex_init(&deep);
        twice([&] {
            spinpark_recursive_mutex_lock(&deep);
            spinpark_recursive_mutex_lock(&deep);
            mine++;
            spinpark_recursive_mutex_unlock(&deep);
            spinpark_recursive_mutex_unlock(&deep);
        });
        spinpark_recursive_mutex_destroy(&deep);
    }
}

void writes_as_a_reader() {
    for (int i = 0; i < rounds; i++) {
        std::shared_lock guard(shared);
        data++;
    }
}

}  // namespace

int main(int, char** argv) {
    const auto is = [&](const char* name) { return std::strcmp(argv[1], name) == 0; };
    if (is("mutex")) {
        twice([] { counts(first); });
    } else if (is("recursive")) {
        twice([] { counts(recursive); });
        twice(deep);
    } else if (is("shared")) {
        twice([] { counts(shared); });
        twice(reads_and_writes);
    } else if (is("condition")) {
        both([] { waits_for_turn(0); }, [] { waits_for_turn(1); });
        twice(waits_until);
    } else if (is("objects")) {
        objects();
    } else if (is("race")) {
        // Each under a lock, but not the same one.
        both([] { counts(first); }, [] { counts(second); });
    } else if (is("race-of-readers")) {
        twice(writes_as_a_reader);
    } else if (is("bad-order")) {
        std::thread([] { std::lock_guard one(first); std::lock_guard two(second); }).join();
        std::thread([] { std::lock_guard one(second); std::lock_guard two(first); }).join();
    } else if (is("bad-unlock")) {
        first.unlock();
    }
    std::puts("done");
    return 0;
}
