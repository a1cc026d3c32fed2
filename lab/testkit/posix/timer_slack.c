/* A thread's timers may be late by its timer slack. In a process that has announced a seccomp filter, locks do not ask for it, and
 * must not rely on such timers: of two threads that use a mutex in turn, one stops, and the other has a slack of 100 s. */
#include "check.h"
#include <sys/prctl.h>

enum { ROUNDS = 60 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static atomic_bool runs;

static void busy_ns(int64_t ns)
{
    for (int64_t end = now_ns(CLOCK_MONOTONIC) + ns; now_ns(CLOCK_MONOTONIC) < end;)
        ;
}

/* Stops in the middle of a run of its own, while the other sleeps. */
static void *stops(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        int64_t end = now_ns(CLOCK_MONOTONIC) + 3000000 + round * 37111 % 1000000;
        int64_t latest = end + 10000000;
        for (int run = 0; (now_ns(CLOCK_MONOTONIC) < end || run < 100) && now_ns(CLOCK_MONOTONIC) < latest;) {
            int64_t begin = now_ns(CLOCK_MONOTONIC);
            OK(pthread_mutex_lock(&mutex));
            run = now_ns(CLOCK_MONOTONIC) - begin < 2000 ? run + 1 : 0;
            busy_ns(200);
            OK(pthread_mutex_unlock(&mutex));
        }
        atomic_store(&runs, false);
        sleep_ms(1);
    }
    return arg;
}

static void *goes_on(void *arg)
{
    CHECK(prctl(PR_SET_TIMERSLACK, 100000000000UL, 0, 0, 0) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&runs, true);
        pthread_barrier_wait(&barrier);
        for (bool last = false; !last;) {
            OK(pthread_mutex_lock(&mutex));
            last = !atomic_load(&runs);
            busy_ns(200);
            OK(pthread_mutex_unlock(&mutex));
        }
    }
    return arg;
}

int main(void)
{
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    OK(pthread_barrier_init(&barrier, NULL, 2));
    struct thread first, second;
    start(&first, stops, NULL);
    start(&second, goes_on, NULL);
    join_soon(&second, "the thread that wants a free mutex");
    join_soon(&first, "the other");
    return 0;
}
