/* timedrdlock, timedwrlock, clockrdlock, clockwrlock on both clocks and all kinds:
 *  - ETIMEDOUT not before the deadline, for deadlines in the past as well; EINVAL for tv_nsec out of range while
 *    the lock is held, and for an unknown clock; the far end of time_t means waiting;
 *  - a free lock is acquired whatever the deadline;
 *  - a waiter that gave up leaves no trace: others get in as if it had never waited.
 *
 * With the argument "storm": threads with deadlines of some microseconds, for reading and writing. No thread enters with a
 * writer inside, and each comes to an end. glibc does not promise this: all threads of this part have been found in its
 * lock, spinning for a hand-over that was not to come, minutes after their deadlines (in 2.36 a reader whose time is
 * over while a writer hands over waits for that without a look at the clock). */
#include "check.h"

static pthread_rwlock_t lock;
static atomic_int held, release_it;

enum { TIMED, CLOCK_REAL, CLOCK_MONO, CALLS };
static clockid_t clock_of(int call) { return call == CLOCK_MONO ? CLOCK_MONOTONIC : CLOCK_REALTIME; }
static int timed(int call, bool write, struct timespec t)
{
    if (call == TIMED)
        return write ? pthread_rwlock_timedwrlock(&lock, &t) : pthread_rwlock_timedrdlock(&lock, &t);
    return write ? pthread_rwlock_clockwrlock(&lock, clock_of(call), &t)
                 : pthread_rwlock_clockrdlock(&lock, clock_of(call), &t);
}

static void *hold(void *write)
{
    if (write)
        OK(pthread_rwlock_wrlock(&lock));
    else
        OK(pthread_rwlock_rdlock(&lock));
    atomic_store(&held, 1);
    await_flag(&release_it, 1);
    OK(pthread_rwlock_unlock(&lock));
    return NULL;
}

static void *release_later(void *arg)
{
    (void)arg;
    sleep_ms(20);
    atomic_store(&release_it, 1);
    return NULL;
}

static void blocked(int call, bool holder_writes, bool write)
{
    clockid_t clock = clock_of(call);
    struct thread holder, releaser;
    atomic_store(&held, 0);
    atomic_store(&release_it, 0);
    start(&holder, hold, holder_writes ? &lock : NULL);
    await_flag(&held, 1);

    CALL(timed(call, write, in_ms(clock, -1)), ETIMEDOUT);
    CALL(timed(call, write, (struct timespec){0, 0}), ETIMEDOUT);
    CALL(timed(call, write, (struct timespec){-1, 0}), ETIMEDOUT);
    CALL(timed(call, write, (struct timespec){LONG_MIN, 999999999}), ETIMEDOUT);
    for (int us = 0; us < 15000; us = us * 2 + 50) {
        struct timespec deadline = in_us(clock, us);
        CALL(timed(call, write, deadline), ETIMEDOUT);
        CHECK(has_come(clock, deadline));
    }
    CALL(timed(call, write, (struct timespec){LONG_MAX, 1000000000}), EINVAL);
    CALL(timed(call, write, (struct timespec){0, -1}), EINVAL);
    if (!holder_writes) { /* the writer that gave up keeps no reader out */
        OK(pthread_rwlock_tryrdlock(&lock));
        OK(pthread_rwlock_unlock(&lock));
    }

    start(&releaser, release_later, NULL);
    OK(timed(call, write, (struct timespec){LONG_MAX, 999999999}));
    CHECK(atomic_load(&release_it));
    OK(pthread_rwlock_unlock(&lock));
    join(&releaser);
    join(&holder);
    OK(pthread_rwlock_trywrlock(&lock));
    OK(pthread_rwlock_unlock(&lock));
}

static void free_lock(int call, bool write)
{
    const struct timespec deadlines[] = {{0, 0}, {-1, 0}, {LONG_MIN, 0}, {LONG_MAX, 999999999}};
    for (size_t i = 0; i < COUNT(deadlines); i++) {
        OK(timed(call, write, deadlines[i]));
        OK(pthread_rwlock_unlock(&lock));
    }
    /* "The validity of the abstime parameter need not be checked if the lock can be immediately acquired." */
    errno = ERRNO_MARK;
    int error = timed(call, write, (struct timespec){0, 1000000000});
    CHECK((error == 0 || error == EINVAL) && errno == ERRNO_MARK);
    if (error == 0)
        OK(pthread_rwlock_unlock(&lock));
    OK(pthread_rwlock_trywrlock(&lock));
    OK(pthread_rwlock_unlock(&lock));
}

static atomic_bool stop;
static atomic_int inside;
static void *storm(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    uintptr_t timeouts = 0;
    while (!atomic_load(&stop)) {
        int call = random_next(&seed) % CALLS;
        bool write = random_next(&seed) % 4 == 0;
        int error = timed(call, write, in_us(clock_of(call), random_next(&seed) % 100));
        if (error == ETIMEDOUT) {
            timeouts++;
            continue;
        }
        CHECK(error == 0);
        int before = atomic_fetch_add(&inside, write ? 1000 : 1);
        CHECK(write ? before == 0 : before < 1000);
        for (volatile int i = 0; i < 2000; i++)
            ;
        if (random_next(&seed) % 64 == 0)
            sleep_us(50);
        atomic_fetch_sub(&inside, write ? 1000 : 1);
        OK(pthread_rwlock_unlock(&lock));
    }
    return (void *)timeouts;
}

static void every_call(void)
{
    for (int call = 0; call < CALLS; call++) {
        for (int write = 0; write < 2; write++) {
            free_lock(call, write);
            blocked(call, true, write);
        }
        blocked(call, false, true);
    }
    struct timespec soon = in_ms(CLOCK_REALTIME, 1000);
    const clockid_t bad[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_MONOTONIC_RAW, 12345, -1};
    for (size_t c = 0; c < COUNT(bad); c++) {
        CALL(pthread_rwlock_clockrdlock(&lock, bad[c], &soon), EINVAL);
        CALL(pthread_rwlock_clockwrlock(&lock, bad[c], &soon), EINVAL);
    }
    /* Upgrading is a deadlock; the timed form says so by its deadline. */
    OK(pthread_rwlock_rdlock(&lock));
    struct timespec deadline = in_ms(CLOCK_REALTIME, 10);
    CALL_EITHER(pthread_rwlock_timedwrlock(&lock, &deadline), ETIMEDOUT, EDEADLK);
    OK(pthread_rwlock_unlock(&lock));
}

static void storms(void)
{
    struct thread threads[4];
    uintptr_t timeouts = 0;
    for (uintptr_t t = 0; t < 4; t++)
        start(&threads[t], storm, (void *)(t + 1));
    sleep_ms(300);
    atomic_store(&stop, true);
    for (int t = 0; t < 4; t++)
        timeouts += (uintptr_t)join_soon(&threads[t], "a thread with short deadlines");
    printf("%s: %lu timeouts\n", check_context, (unsigned long)timeouts);
}

int main(int argc, char **argv)
{
    CHECK(argc == 1 || strcmp(argv[1], "storm") == 0);
    void (*part)(void) = argc == 1 ? every_call : storms;
    const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
                         PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
    const char *const names[] = {"prefer reader", "prefer writer", "nonrecursive"};
    /* Nearly all of it is waiting for deadlines: the kinds wait at the same time, each in its own process. */
    pid_t children[COUNT(kinds) * 2];
    for (size_t i = 0; i < COUNT(kinds) * 2; i++) {
        check_context = names[i / 2];
        children[i] = fork_checked();
        if (children[i] == 0) {
            pthread_rwlockattr_t attr;
            CHECK(pthread_rwlockattr_init(&attr) == 0);
            CHECK(pthread_rwlockattr_setkind_np(&attr, kinds[i / 2]) == 0);
            /* Process-shared ones are glibc's in each configuration, and its threads can wait for ever in a storm. */
            CHECK(pthread_rwlockattr_setpshared(&attr, argc == 1 && i % 2) == 0);
            OK(pthread_rwlock_init(&lock, &attr));
            part();
            OK(pthread_rwlock_trywrlock(&lock));
            OK(pthread_rwlock_unlock(&lock));
            OK(pthread_rwlock_destroy(&lock));
            fflush(stdout);
            _exit(0);
        }
    }
    for (size_t i = 0; i < COUNT(kinds) * 2; i++)
        expect_exit(children[i]);
    return 0;
}
