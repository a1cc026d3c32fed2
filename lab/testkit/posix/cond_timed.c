/* timedwait and clockwait on both clocks:
 *  - timedwait uses the clock of condattr_setclock, real time by default; clockwait the one it is given;
 *  - ETIMEDOUT not before the deadline, in the past as well, always with the mutex held again, even if another
 *    thread keeps it beyond the deadline;
 *  - EINVAL for tv_nsec out of range and for unknown clocks, without a wait;
 *  - the far end of time_t means waiting. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond;
static bool go;
static atomic_int held;

enum { TIMED, CLOCK_REAL, CLOCK_MONO, CALLS };
static int wait_until(int call, struct timespec deadline)
{
    if (call == TIMED)
        return pthread_cond_timedwait(&cond, &mutex, &deadline);
    return pthread_cond_clockwait(&cond, &mutex, call == CLOCK_MONO ? CLOCK_MONOTONIC : CLOCK_REALTIME, &deadline);
}

static void *signal_later(void *arg)
{
    (void)arg;
    sleep_ms(20);
    OK(pthread_mutex_lock(&mutex)); /* proves that the wait released it */
    go = true;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *occupy(void *deadline)
{
    OK(pthread_mutex_lock(&mutex));
    atomic_store(&held, 1);
    while (!has_come(CLOCK_REALTIME, *(struct timespec *)deadline))
        sleep_ms(1);
    sleep_ms(30);
    atomic_store(&held, 2);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

/* Waits out a deadline; a spurious wake-up is allowed but not always. */
static void times_out(int call, clockid_t clock, struct timespec deadline)
{
    for (int i = 0; i < 100; i++) {
        errno = ERRNO_MARK;
        int error = wait_until(call, deadline);
        CHECK(errno == ERRNO_MARK);
        CALL(other_trylock(&mutex), EBUSY);
        if (error == ETIMEDOUT) {
            CHECK(deadline.tv_sec <= 0 || has_come(clock, deadline));
            return;
        }
        CHECK(error == 0);
    }
    FAIL("only spurious wake-ups");
}

static void deadlines(int call, clockid_t clock)
{
    OK(pthread_mutex_lock(&mutex));
    times_out(call, clock, in_ms(clock, -1));
    times_out(call, clock, (struct timespec){0, 0});
    times_out(call, clock, (struct timespec){-1, 0});
    times_out(call, clock, (struct timespec){LONG_MIN, 999999999});
    for (int us = 0; us < 30000; us = us * 2 + 50)
        times_out(call, clock, in_us(clock, us));
    CALL(wait_until(call, (struct timespec){LONG_MAX, 1000000000}), EINVAL);
    CALL(wait_until(call, (struct timespec){0, -1}), EINVAL);
    CALL(wait_until(call, (struct timespec){0, LONG_MIN}), EINVAL);
    CALL(other_trylock(&mutex), EBUSY);

    struct thread signaller, occupier;
    go = false;
    start(&signaller, signal_later, NULL);
    while (!go)
        OK(wait_until(call, (struct timespec){LONG_MAX, 999999999}));
    OK(pthread_mutex_unlock(&mutex));
    join(&signaller);

    /* The deadline bounds the wait, not the time to get the mutex back. */
    OK(pthread_mutex_lock(&mutex));
    struct timespec real = in_ms(CLOCK_REALTIME, 20), deadline = in_ms(clock, 20);
    atomic_store(&held, 0);
    start(&occupier, occupy, &real);
    int error;
    while ((error = wait_until(call, deadline)) == 0)
        ;
    CHECK(error == ETIMEDOUT);
    CHECK(atomic_load(&held) != 1);
    CALL(other_trylock(&mutex), EBUSY);
    OK(pthread_mutex_unlock(&mutex));
    join(&occupier);
}

int main(void)
{
    const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    for (int pshared = 0; pshared < 2; pshared++) {
        for (int c = 0; c < 2; c++) {
            pthread_condattr_t attr;
            clockid_t clock;
            CHECK(pthread_condattr_init(&attr) == 0);
            CHECK(pthread_condattr_setpshared(&attr, pshared) == 0);
            CHECK(pthread_condattr_setclock(&attr, CLOCK_PROCESS_CPUTIME_ID) == EINVAL);
            CHECK(pthread_condattr_setclock(&attr, clocks[c]) == 0);
            CHECK(pthread_condattr_getclock(&attr, &clock) == 0 && clock == clocks[c]);
            memset(&cond, 0xa5, sizeof cond);
            OK(pthread_cond_init(&cond, &attr));
            deadlines(TIMED, clocks[c]);
            deadlines(CLOCK_REAL, CLOCK_REALTIME);
            deadlines(CLOCK_MONO, CLOCK_MONOTONIC);
            OK(pthread_mutex_lock(&mutex));
            struct timespec soon = in_ms(CLOCK_REALTIME, 1000);
            CALL(pthread_cond_clockwait(&cond, &mutex, CLOCK_PROCESS_CPUTIME_ID, &soon), EINVAL);
            CALL(pthread_cond_clockwait(&cond, &mutex, 12345, &soon), EINVAL);
            CALL(pthread_cond_clockwait(&cond, &mutex, -1, &soon), EINVAL);
            OK(pthread_mutex_unlock(&mutex));
            OK(pthread_cond_destroy(&cond));
        }
    }
    check_context = "static initialiser";
    cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    deadlines(TIMED, CLOCK_REALTIME);
    deadlines(CLOCK_MONO, CLOCK_MONOTONIC);
    OK(pthread_cond_destroy(&cond));
    check_context = "default attributes";
    OK(pthread_cond_init(&cond, NULL));
    deadlines(TIMED, CLOCK_REALTIME);
    OK(pthread_cond_destroy(&cond));
    return 0;
}
