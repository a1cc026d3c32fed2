/*
 * spinpark: mutexes, read-write locks and condition variables for 64-bit Linux.
 *
 * Objects. All-zero memory is a valid object: unlocked, without waiters. So are the static initialisers,
 * and what the *_init functions make; nothing is allocated. An object's size and alignment stay as
 * long as the library is libspinpark.so.0. Its content is the library's.
 *
 * Moving. An object that no thread holds, waits for or is in a call on may be moved (memcpy, realloc). The
 * old place is no object any more. An object is not shared between processes.
 *
 * Holds. A hold is of one thread: the thread that acquired a lock releases it.
 *
 * Ordering. Acquiring is an acquire operation, releasing a release operation, as of C11's mutexes.
 *
 * Fairness. A running thread may take a lock before a sleeping one. The next release keeps it for a waiter
 * that has waited for 0.5 ms.
 *
 * Time. Deadlines are on CLOCK_MONOTONIC. The *_for functions wait for a number of nanoseconds by the
 * same clock; of UINT64_MAX, they wait for ever. A lock that is free is acquired whatever the deadline.
 * They return true if the lock was acquired, false once the time is up.
 *
 * Misuse. "Checked" below means: the library prints a line on standard error and calls abort(). What is
 * not called checked is undefined. A deadline's tv_nsec is checked. ThreadSanitizer knows these locks in
 * code that is compiled with -fsanitize=thread, and reports an unlock by another thread as well.
 *
 * Fork. In a child, locks work. What the forking thread held it holds in the child (a recursive mutex: see
 * there). What other threads held stays held for ever, except some of their read holds: initialise such
 * an object anew. Children of vfork() use no locks.
 *
 * Signals and cancellation. No function is a cancellation point, none sets errno, and none is safe in a
 * signal handler that may interrupt a call on the same object. A thread in a call is not cancelled
 * asynchronously, and no handler leaves the call by longjmp() or pthread_exit().
 */
#ifndef SPINPARK_H
#define SPINPARK_H

#if !defined(__linux__) || !defined(__LP64__)
#error "spinpark is for 64-bit Linux"
#endif

#include <stdbool.h>
#include <stdint.h>

#define SPINPARK_VERSION_MAJOR 0
#define SPINPARK_VERSION_MINOR 1
#define SPINPARK_VERSION_PATCH 0

#ifdef __cplusplus
#define SPINPARK_NOTHROW noexcept
#define SPINPARK_NOTHROW_DEFINITION noexcept
extern "C" {
#else
#define SPINPARK_NOTHROW __attribute__((__nothrow__))
#define SPINPARK_NOTHROW_DEFINITION
#endif
/* No pointer is null. */
#define SPINPARK_CALL SPINPARK_NOTHROW __attribute__((__nonnull__))
/* The result is looked at: the lock is held, or not. */
#define SPINPARK_CHECK_RESULT __attribute__((__warn_unused_result__))

#if defined(__SANITIZE_THREAD__)
#define SPINPARK_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPINPARK_TSAN
#endif
#endif

/* <time.h> defines it; in C99, if _POSIX_C_SOURCE is 199309L or more. */
struct timespec;

/* ---- a mutex: held by one thread, once */

typedef struct spinpark_mutex {
    uint64_t spinpark_private[2];
} spinpark_mutex_t;

#define SPINPARK_MUTEX_INIT { { 0, 0 } }

/* Makes an unlocked mutex of whatever was there. */
void spinpark_mutex_init(spinpark_mutex_t *mutex) SPINPARK_CALL;
/* Ends the use of a mutex. Not needed, as nothing is to be freed. Checked: no thread holds it. */
void spinpark_mutex_destroy(spinpark_mutex_t *mutex) SPINPARK_CALL;
/*
 * Acquires. Checked: the calling thread does not hold the mutex already; also by the two functions with a
 * time.
 */
void spinpark_mutex_lock(spinpark_mutex_t *mutex) SPINPARK_CALL;
/* Acquires if the mutex is free; never waits. */
bool spinpark_mutex_try_lock(spinpark_mutex_t *mutex) SPINPARK_CALL SPINPARK_CHECK_RESULT;
bool spinpark_mutex_lock_for(spinpark_mutex_t *mutex, uint64_t nanoseconds)
    SPINPARK_CALL SPINPARK_CHECK_RESULT;
bool spinpark_mutex_lock_until(spinpark_mutex_t *mutex, const struct timespec *deadline)
    SPINPARK_CALL SPINPARK_CHECK_RESULT;
/*
 * Releases. The calling thread holds the mutex: not checked, since the release of a mutex without waiters
 * does not read who holds it. The mutex may be freed by the next thread that acquires and releases it.
 */
void spinpark_mutex_unlock(spinpark_mutex_t *mutex) SPINPARK_CALL;

/* ---- a recursive mutex: held by one thread, up to 4294967295 times (checked) */

typedef struct spinpark_recursive_mutex {
    uint64_t spinpark_private[3];
} spinpark_recursive_mutex_t;

#define SPINPARK_RECURSIVE_MUTEX_INIT { { 0, 0, 0 } }

/*
 * As for a mutex, but that the thread that holds it acquires it again at once. The owner is known by the
 * kernel's thread id, which is another one in a forked child: a child initialises a recursive mutex that
 * was held at the fork anew.
 */
void spinpark_recursive_mutex_init(spinpark_recursive_mutex_t *mutex) SPINPARK_CALL;
void spinpark_recursive_mutex_destroy(spinpark_recursive_mutex_t *mutex) SPINPARK_CALL;
void spinpark_recursive_mutex_lock(spinpark_recursive_mutex_t *mutex) SPINPARK_CALL;
bool spinpark_recursive_mutex_try_lock(spinpark_recursive_mutex_t *mutex)
    SPINPARK_CALL SPINPARK_CHECK_RESULT;
bool spinpark_recursive_mutex_lock_for(spinpark_recursive_mutex_t *mutex, uint64_t nanoseconds)
    SPINPARK_CALL SPINPARK_CHECK_RESULT;
bool spinpark_recursive_mutex_lock_until(spinpark_recursive_mutex_t *mutex, const struct timespec *deadline)
    SPINPARK_CALL SPINPARK_CHECK_RESULT;
/* Gives up one hold, and releases with the last one. Checked: the calling thread holds the mutex. */
void spinpark_recursive_mutex_unlock(spinpark_recursive_mutex_t *mutex) SPINPARK_CALL;

/* ---- a read-write lock: held by one writer, or by readers */

typedef struct spinpark_rwlock {
    uint64_t spinpark_private[3];
} spinpark_rwlock_t;

#define SPINPARK_RWLOCK_INIT { { 0, 0, 0 } }

/* Makes a free lock of whatever was there. */
void spinpark_rwlock_init(spinpark_rwlock_t *lock) SPINPARK_CALL;
/* Ends the use of a lock. Not needed. Checked: no thread holds it. */
void spinpark_rwlock_destroy(spinpark_rwlock_t *lock) SPINPARK_CALL;
/*
 * Acquires for reading. A thread may hold several read locks of one lock, also while a writer waits. Other
 * readers wait behind a writer that has waited for 0.5 ms; they come in from time to time, in case a
 * reader inside waits for one of them. Checked: the calling thread does not hold the lock for writing;
 * also by the two functions with a time.
 */
void spinpark_rwlock_read_lock(spinpark_rwlock_t *lock) SPINPARK_CALL;
bool spinpark_rwlock_try_read_lock(spinpark_rwlock_t *lock) SPINPARK_CALL SPINPARK_CHECK_RESULT;
bool spinpark_rwlock_read_lock_for(spinpark_rwlock_t *lock, uint64_t nanoseconds)
    SPINPARK_CALL SPINPARK_CHECK_RESULT;
bool spinpark_rwlock_read_lock_until(spinpark_rwlock_t *lock, const struct timespec *deadline)
    SPINPARK_CALL SPINPARK_CHECK_RESULT;
/* Gives up one read hold of the calling thread. Checked: the lock is held for reading, by whatever thread. */
void spinpark_rwlock_read_unlock(spinpark_rwlock_t *lock) SPINPARK_CALL;
/*
 * Acquires for writing. Checked: the calling thread does not hold the lock for writing; also by the two
 * functions with a time. Not checked: it does not hold it for reading, which would make it wait for
 * itself.
 */
void spinpark_rwlock_write_lock(spinpark_rwlock_t *lock) SPINPARK_CALL;
bool spinpark_rwlock_try_write_lock(spinpark_rwlock_t *lock) SPINPARK_CALL SPINPARK_CHECK_RESULT;
bool spinpark_rwlock_write_lock_for(spinpark_rwlock_t *lock, uint64_t nanoseconds)
    SPINPARK_CALL SPINPARK_CHECK_RESULT;
bool spinpark_rwlock_write_lock_until(spinpark_rwlock_t *lock, const struct timespec *deadline)
    SPINPARK_CALL SPINPARK_CHECK_RESULT;
/* Gives up the write hold of the calling thread. Checked: the lock is held for writing, by whatever thread. */
void spinpark_rwlock_write_unlock(spinpark_rwlock_t *lock) SPINPARK_CALL;

/* ---- a condition variable, with a spinpark_mutex_t */

typedef struct spinpark_cond {
    uint64_t spinpark_private[2];
} spinpark_cond_t;

#define SPINPARK_COND_INIT { { 0, 0 } }

/* Makes a condition variable without waiters of whatever was there. */
void spinpark_cond_init(spinpark_cond_t *cond) SPINPARK_CALL;
/*
 * Ends the use of a condition variable, before its memory is freed. May follow a broadcast at once.
 * Checked: no thread waits that has not been signalled.
 */
void spinpark_cond_destroy(spinpark_cond_t *cond) SPINPARK_CALL;
/*
 * Releases the mutex, waits for a signal, and acquires the mutex again. May return without a signal. The
 * calling thread holds the mutex (checked: some thread does). Checked: threads that wait at the same time
 * use one mutex.
 */
void spinpark_cond_wait(spinpark_cond_t *cond, spinpark_mutex_t *mutex) SPINPARK_CALL;
/*
 * The same until the time is up: true for a signal (or none, as above), false if the time is up, which
 * uses no signal up. The mutex is held in both cases.
 */
bool spinpark_cond_wait_for(spinpark_cond_t *cond, spinpark_mutex_t *mutex, uint64_t nanoseconds)
    SPINPARK_CALL;
bool spinpark_cond_wait_until(spinpark_cond_t *cond, spinpark_mutex_t *mutex, const struct timespec *deadline)
    SPINPARK_CALL;
/* Wakes the longest waiter, or all waiters; with the mutex held or not. */
void spinpark_cond_signal(spinpark_cond_t *cond) SPINPARK_CALL;
void spinpark_cond_broadcast(spinpark_cond_t *cond) SPINPARK_CALL;

/* ---- sandboxes */

/*
 * To be called before the process installs a seccomp filter that kills for system calls: from then on,
 * locks make no other than futex(). Takes a millisecond in a process with threads; locks are a little
 * slower afterwards.
 */
void spinpark_before_filter(void) SPINPARK_NOTHROW;

#ifdef __cplusplus
}
#define SPINPARK_ASSERT static_assert
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define SPINPARK_ASSERT _Static_assert
#endif
#ifdef SPINPARK_ASSERT
SPINPARK_ASSERT(sizeof(spinpark_mutex_t) == 16, "16 bytes");
SPINPARK_ASSERT(sizeof(spinpark_recursive_mutex_t) == 24, "24 bytes");
SPINPARK_ASSERT(sizeof(spinpark_rwlock_t) == 24, "24 bytes");
SPINPARK_ASSERT(sizeof(spinpark_cond_t) == 16, "16 bytes");
#undef SPINPARK_ASSERT
#endif

/* ---- a free mutex is locked without a call */

/*
 * What the calling thread writes into a free mutex, or 0: then it calls the function, as in its first call
 * and for some time after a wait. A library that locks in another way leaves it 0. So programs that have
 * this code inside work with each libspinpark.so.0. Define SPINPARK_NO_INLINE to have calls only.
 */
#if !defined(SPINPARK_NO_INLINE) && !defined(SPINPARK_TSAN)
#ifdef __cplusplus
extern "C" {
#endif
__extension__ extern __thread uint32_t spinpark_hold __attribute__((__tls_model__("initial-exec")));
void spinpark_call_mutex_lock(spinpark_mutex_t *mutex) SPINPARK_NOTHROW_DEFINITION
    __asm__("spinpark_mutex_lock") __attribute__((__nonnull__));

/* Another name for the function of the library, which is meant where an address is taken. */
extern inline __attribute__((__always_inline__, __gnu_inline__, __artificial__)) void
spinpark_mutex_lock(spinpark_mutex_t *mutex) SPINPARK_NOTHROW_DEFINITION {
    uint32_t unlocked = 0, hold = spinpark_hold;
    if (__builtin_expect(
            hold == 0 || !__atomic_compare_exchange_n((uint32_t *)(void *)mutex, &unlocked, hold, 0,
                                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED), 0))
        spinpark_call_mutex_lock(mutex);
}
#ifdef __cplusplus
}
#endif
#endif

/* ---- ThreadSanitizer: functions that tell it of the locks, in code that is compiled for it */

#ifdef SPINPARK_TSAN
#include <sanitizer/tsan_interface.h>

#ifdef __cplusplus
#define SPINPARK_TSAN_FUNCTION(result) inline result
extern "C" {
#else
#define SPINPARK_TSAN_FUNCTION(result) static inline __attribute__((__unused__)) result
#endif

/* To ThreadSanitizer, a call with a time is a try: it ends, so it is no part of a deadlock. */
#define SPINPARK_TSAN_TRY(flags, call)                                                                     \
    bool acquired;                                                                                         \
    __tsan_mutex_pre_lock(lock, (flags) | __tsan_mutex_try_lock);                                          \
    acquired = call;                                                                                       \
    __tsan_mutex_post_lock(                                                                                \
        lock, (flags) | __tsan_mutex_try_lock | (acquired ? 0 : __tsan_mutex_try_lock_failed), 1);         \
    return acquired;

/* The functions of one kind of hold: LOCK is mutex_lock, say, and TRY mutex_try_lock. */
#define SPINPARK_TSAN_HOLD(type, LOCK, TRY, UNLOCK, flags)                                                 \
    SPINPARK_TSAN_FUNCTION(void) spinpark_tsan_##LOCK(type *lock) {                                        \
        __tsan_mutex_pre_lock(lock, flags);                                                                \
        spinpark_##LOCK(lock);                                                                             \
        __tsan_mutex_post_lock(lock, flags, 1);                                                            \
    }                                                                                                      \
    SPINPARK_TSAN_FUNCTION(bool) spinpark_tsan_##TRY(type *lock) {                                         \
        SPINPARK_TSAN_TRY(flags, spinpark_##TRY(lock))                                                     \
    }                                                                                                      \
    SPINPARK_TSAN_FUNCTION(bool) spinpark_tsan_##LOCK##_for(type *lock, uint64_t nanoseconds) {            \
        SPINPARK_TSAN_TRY(flags, spinpark_##LOCK##_for(lock, nanoseconds))                                 \
    }                                                                                                      \
    SPINPARK_TSAN_FUNCTION(bool)                                                                           \
    spinpark_tsan_##LOCK##_until(type *lock, const struct timespec *deadline) {                            \
        SPINPARK_TSAN_TRY(flags, spinpark_##LOCK##_until(lock, deadline))                                  \
    }                                                                                                      \
    SPINPARK_TSAN_FUNCTION(void) spinpark_tsan_##UNLOCK(type *lock) {                                      \
        (void)__tsan_mutex_pre_unlock(lock, flags);                                                        \
        spinpark_##UNLOCK(lock);                                                                           \
        __tsan_mutex_post_unlock(lock, flags);                                                             \
    }

#define SPINPARK_TSAN_OBJECT(type, name, flags)                                                            \
    SPINPARK_TSAN_FUNCTION(void) spinpark_tsan_##name##_init(type *lock) {                                 \
        spinpark_##name##_init(lock);                                                                      \
        __tsan_mutex_create(lock, flags);                                                                  \
    }                                                                                                      \
    SPINPARK_TSAN_FUNCTION(void) spinpark_tsan_##name##_destroy(type *lock) {                              \
        __tsan_mutex_destroy(lock, flags);                                                                 \
        spinpark_##name##_destroy(lock);                                                                   \
    }

/* A wait releases the mutex, and acquires it again. */
#define SPINPARK_TSAN_WAIT(call)                                                                           \
    (void)__tsan_mutex_pre_unlock(mutex, 0);                                                               \
    __tsan_mutex_post_unlock(mutex, 0);                                                                    \
    call;                                                                                                  \
    __tsan_mutex_pre_lock(mutex, 0);                                                                       \
    __tsan_mutex_post_lock(mutex, 0, 1);

SPINPARK_TSAN_OBJECT(spinpark_mutex_t, mutex, 0)
SPINPARK_TSAN_HOLD(spinpark_mutex_t, mutex_lock, mutex_try_lock, mutex_unlock, 0)
SPINPARK_TSAN_OBJECT(spinpark_recursive_mutex_t, recursive_mutex, __tsan_mutex_write_reentrant)
SPINPARK_TSAN_HOLD(spinpark_recursive_mutex_t, recursive_mutex_lock, recursive_mutex_try_lock,
                   recursive_mutex_unlock, __tsan_mutex_write_reentrant)
SPINPARK_TSAN_OBJECT(spinpark_rwlock_t, rwlock, __tsan_mutex_read_reentrant)
SPINPARK_TSAN_HOLD(spinpark_rwlock_t, rwlock_read_lock, rwlock_try_read_lock, rwlock_read_unlock,
                   __tsan_mutex_read_lock | __tsan_mutex_read_reentrant)
SPINPARK_TSAN_HOLD(spinpark_rwlock_t, rwlock_write_lock, rwlock_try_write_lock, rwlock_write_unlock,
                   __tsan_mutex_read_reentrant)

SPINPARK_TSAN_FUNCTION(void) spinpark_tsan_cond_wait(spinpark_cond_t *cond, spinpark_mutex_t *mutex) {
    SPINPARK_TSAN_WAIT(spinpark_cond_wait(cond, mutex))
}
SPINPARK_TSAN_FUNCTION(bool)
spinpark_tsan_cond_wait_for(spinpark_cond_t *cond, spinpark_mutex_t *mutex, uint64_t nanoseconds) {
    bool signalled;
    SPINPARK_TSAN_WAIT(signalled = spinpark_cond_wait_for(cond, mutex, nanoseconds))
    return signalled;
}
SPINPARK_TSAN_FUNCTION(bool)
spinpark_tsan_cond_wait_until(spinpark_cond_t *cond, spinpark_mutex_t *mutex,
                              const struct timespec *deadline) {
    bool signalled;
    SPINPARK_TSAN_WAIT(signalled = spinpark_cond_wait_until(cond, mutex, deadline))
    return signalled;
}

#ifdef __cplusplus
}
#endif
#undef SPINPARK_TSAN_FUNCTION
#undef SPINPARK_TSAN_TRY
#undef SPINPARK_TSAN_HOLD
#undef SPINPARK_TSAN_OBJECT
#undef SPINPARK_TSAN_WAIT

#define spinpark_mutex_init spinpark_tsan_mutex_init
#define spinpark_mutex_destroy spinpark_tsan_mutex_destroy
#define spinpark_mutex_lock spinpark_tsan_mutex_lock
#define spinpark_mutex_try_lock spinpark_tsan_mutex_try_lock
#define spinpark_mutex_lock_for spinpark_tsan_mutex_lock_for
#define spinpark_mutex_lock_until spinpark_tsan_mutex_lock_until
#define spinpark_mutex_unlock spinpark_tsan_mutex_unlock
#define spinpark_recursive_mutex_init spinpark_tsan_recursive_mutex_init
#define spinpark_recursive_mutex_destroy spinpark_tsan_recursive_mutex_destroy
#define spinpark_recursive_mutex_lock spinpark_tsan_recursive_mutex_lock
#define spinpark_recursive_mutex_try_lock spinpark_tsan_recursive_mutex_try_lock
#define spinpark_recursive_mutex_lock_for spinpark_tsan_recursive_mutex_lock_for
#define spinpark_recursive_mutex_lock_until spinpark_tsan_recursive_mutex_lock_until
#define spinpark_recursive_mutex_unlock spinpark_tsan_recursive_mutex_unlock
#define spinpark_rwlock_init spinpark_tsan_rwlock_init
#define spinpark_rwlock_destroy spinpark_tsan_rwlock_destroy
#define spinpark_rwlock_read_lock spinpark_tsan_rwlock_read_lock
#define spinpark_rwlock_try_read_lock spinpark_tsan_rwlock_try_read_lock
#define spinpark_rwlock_read_lock_for spinpark_tsan_rwlock_read_lock_for
#define spinpark_rwlock_read_lock_until spinpark_tsan_rwlock_read_lock_until
#define spinpark_rwlock_read_unlock spinpark_tsan_rwlock_read_unlock
#define spinpark_rwlock_write_lock spinpark_tsan_rwlock_write_lock
#define spinpark_rwlock_try_write_lock spinpark_tsan_rwlock_try_write_lock
#define spinpark_rwlock_write_lock_for spinpark_tsan_rwlock_write_lock_for
#define spinpark_rwlock_write_lock_until spinpark_tsan_rwlock_write_lock_until
#define spinpark_rwlock_write_unlock spinpark_tsan_rwlock_write_unlock
#define spinpark_cond_wait spinpark_tsan_cond_wait
#define spinpark_cond_wait_for spinpark_tsan_cond_wait_for
#define spinpark_cond_wait_until spinpark_tsan_cond_wait_until
#endif /* SPINPARK_TSAN */

#undef SPINPARK_CHECK_RESULT
#undef SPINPARK_CALL
#undef SPINPARK_NOTHROW
#undef SPINPARK_NOTHROW_DEFINITION

#endif /* SPINPARK_H */
