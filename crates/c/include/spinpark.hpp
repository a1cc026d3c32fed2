// spinpark in C++17: types that meet the standard's requirements of theirs, over spinpark.h, whose head has the
// rules of holds, misuse and fork.
//
// | type                                     | requirements                                 | bytes |
// |------------------------------------------|----------------------------------------------|-------|
// | mutex; timed_mutex is the same           | Mutex, TimedMutex                            | 16    |
// | recursive_mutex, recursive_timed_mutex   | Mutex, TimedMutex                            | 24    |
// | shared_mutex, shared_timed_mutex         | SharedMutex, SharedTimedMutex                | 24    |
// | condition_variable                       | as std::condition_variable, with a           | 16    |
// |                                          | std::unique_lock<spinpark::mutex>            |       |
//
// Constructors are constexpr, so static objects are ready before any code runs. Mutexes have no destructor that
// runs, so a detached thread may use one while the program ends. The locks do not throw: where std's functions
// may throw a std::system_error, the process ends (spinpark.h: Misuse).
#ifndef SPINPARK_HPP
#define SPINPARK_HPP

#if __cplusplus < 201703L
#error "spinpark.hpp needs C++17"
#endif

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "spinpark.h"

namespace spinpark {

namespace detail {

// In nanoseconds, rounded up: 0 if it is over, UINT64_MAX (for ever) if it is centuries long.
template <class Rep, class Period>
std::uint64_t nanoseconds(const std::chrono::duration<Rep, Period>& span) {
    // Of whatever unit: its largest values do not fit into nanoseconds.
    const double seconds = std::chrono::duration_cast<std::chrono::duration<double>>(span).count();
    if (!(seconds > 0)) {
        return 0;
    }
    if (seconds > 9e9) {
        return UINT64_MAX;
    }
    return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::nanoseconds>(span).count());
}

// Makes `attempt`, which takes nanoseconds, until it succeeds or `Clock` has reached the deadline. That clock
// may be set meanwhile, or run at another speed than the locks' own.
template <class Clock, class Duration, class Attempt>
bool until(const std::chrono::time_point<Clock, Duration>& deadline, Attempt attempt) {
    for (;;) {
        const auto now = Clock::now();
        if (attempt(now < deadline ? nanoseconds(deadline - now) : 0)) {
            return true;
        }
        if (!(Clock::now() < deadline)) {
            return false;
        }
    }
}

}  // namespace detail

class mutex {
public:
    using native_handle_type = spinpark_mutex_t*;

    constexpr mutex() noexcept = default;
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;

    void lock() noexcept { spinpark_mutex_lock(&native_); }
    [[nodiscard]] bool try_lock() noexcept { return spinpark_mutex_try_lock(&native_); }
    void unlock() noexcept { spinpark_mutex_unlock(&native_); }

    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& span) {
        return spinpark_mutex_lock_for(&native_, detail::nanoseconds(span));
    }

    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& deadline) {
        return detail::until(deadline,
                             [this](std::uint64_t span) { return spinpark_mutex_lock_for(&native_, span); });
    }

    native_handle_type native_handle() noexcept { return &native_; }

private:
    spinpark_mutex_t native_ = SPINPARK_MUTEX_INIT;
};

using timed_mutex = mutex;

class recursive_mutex {
public:
    using native_handle_type = spinpark_recursive_mutex_t*;

    constexpr recursive_mutex() noexcept = default;
    recursive_mutex(const recursive_mutex&) = delete;
    recursive_mutex& operator=(const recursive_mutex&) = delete;

    void lock() noexcept { spinpark_recursive_mutex_lock(&native_); }
    [[nodiscard]] bool try_lock() noexcept { return spinpark_recursive_mutex_try_lock(&native_); }
    void unlock() noexcept { spinpark_recursive_mutex_unlock(&native_); }

    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& span) {
        return spinpark_recursive_mutex_lock_for(&native_, detail::nanoseconds(span));
    }

    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& deadline) {
        return detail::until(
            deadline, [this](std::uint64_t span) { return spinpark_recursive_mutex_lock_for(&native_, span); });
    }

    native_handle_type native_handle() noexcept { return &native_; }

private:
    spinpark_recursive_mutex_t native_ = SPINPARK_RECURSIVE_MUTEX_INIT;
};

using recursive_timed_mutex = recursive_mutex;

class shared_mutex {
public:
    using native_handle_type = spinpark_rwlock_t*;

    constexpr shared_mutex() noexcept = default;
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;

    void lock() noexcept { spinpark_rwlock_write_lock(&native_); }
    [[nodiscard]] bool try_lock() noexcept { return spinpark_rwlock_try_write_lock(&native_); }
    void unlock() noexcept { spinpark_rwlock_write_unlock(&native_); }

    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& span) {
        return spinpark_rwlock_write_lock_for(&native_, detail::nanoseconds(span));
    }

    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& deadline) {
        return detail::until(
            deadline, [this](std::uint64_t span) { return spinpark_rwlock_write_lock_for(&native_, span); });
    }

    void lock_shared() noexcept { spinpark_rwlock_read_lock(&native_); }
    [[nodiscard]] bool try_lock_shared() noexcept { return spinpark_rwlock_try_read_lock(&native_); }
    void unlock_shared() noexcept { spinpark_rwlock_read_unlock(&native_); }

    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& span) {
        return spinpark_rwlock_read_lock_for(&native_, detail::nanoseconds(span));
    }

    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& deadline) {
        return detail::until(
            deadline, [this](std::uint64_t span) { return spinpark_rwlock_read_lock_for(&native_, span); });
    }

    native_handle_type native_handle() noexcept { return &native_; }

private:
    spinpark_rwlock_t native_ = SPINPARK_RWLOCK_INIT;
};

using shared_timed_mutex = shared_mutex;

class condition_variable {
public:
    using native_handle_type = spinpark_cond_t*;

    constexpr condition_variable() noexcept = default;
    // All waiters have been notified (checked: spinpark_cond_destroy).
    ~condition_variable() { spinpark_cond_destroy(&native_); }
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;

    void notify_one() noexcept { spinpark_cond_signal(&native_); }
    void notify_all() noexcept { spinpark_cond_broadcast(&native_); }

    void wait(std::unique_lock<mutex>& lock) noexcept {
        spinpark_cond_wait(&native_, lock.mutex()->native_handle());
    }

    template <class Predicate>
    void wait(std::unique_lock<mutex>& lock, Predicate is_over) {
        while (!is_over()) {
            wait(lock);
        }
    }

    template <class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& span) {
        return wait_for_nanoseconds(lock, detail::nanoseconds(span)) ? std::cv_status::no_timeout
                                                                     : std::cv_status::timeout;
    }

    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& span,
                  Predicate is_over) {
        using clock = std::chrono::steady_clock;
        const auto now = clock::now();
        const auto left = detail::nanoseconds(span);
        const std::chrono::nanoseconds most = clock::time_point::max() - now;
        if (left >= static_cast<std::uint64_t>(most.count())) {
            wait(lock, is_over);
            return true;
        }
        return wait_until(lock, now + std::chrono::nanoseconds(left), is_over);
    }

    template <class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<mutex>& lock,
                              const std::chrono::time_point<Clock, Duration>& deadline) {
        const auto now = Clock::now();
        const bool is_notified =
            wait_for_nanoseconds(lock, now < deadline ? detail::nanoseconds(deadline - now) : 0);
        // If that clock was set meanwhile, the wait ends for no reason.
        return is_notified || Clock::now() < deadline ? std::cv_status::no_timeout : std::cv_status::timeout;
    }

    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<mutex>& lock, const std::chrono::time_point<Clock, Duration>& deadline,
                    Predicate is_over) {
        while (!is_over()) {
            if (wait_until(lock, deadline) == std::cv_status::timeout) {
                return is_over();
            }
        }
        return true;
    }

    native_handle_type native_handle() noexcept { return &native_; }

private:
    bool wait_for_nanoseconds(std::unique_lock<mutex>& lock, std::uint64_t nanoseconds) noexcept {
        return spinpark_cond_wait_for(&native_, lock.mutex()->native_handle(), nanoseconds);
    }

    spinpark_cond_t native_ = SPINPARK_COND_INIT;
};

}  // namespace spinpark

#endif  // SPINPARK_HPP
