/* Priority inheritance and protection: the ceiling is kept and changed, protection refuses a thread above the
 * ceiling (EINVAL), both exclude. Locking a protected mutex needs the right to be a real-time thread; without it
 * only the ceiling is checked. */
#include "check.h"

enum { THREADS = 3, ROUNDS = 2000 };
static pthread_mutex_t mutex;
static long counter;

static void be_fifo(int priority, bool *allowed)
{
    struct sched_param param = {.sched_priority = priority};
    *allowed = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) == 0;
}

static void *count(void *arg)
{
    bool allowed;
    be_fifo(sched_get_priority_min(SCHED_FIFO), &allowed);
    if (!allowed && arg)
        return NULL;
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_mutex_lock(&mutex));
        counter++;
        OK(pthread_mutex_unlock(&mutex));
    }
    return &counter;
}

static void *above_the_ceiling(void *arg)
{
    bool allowed;
    be_fifo(*(int *)arg + 1, &allowed);
    if (allowed) {
        struct timespec deadline = in_ms(CLOCK_REALTIME, LONG_MS);
        CALL(pthread_mutex_lock(&mutex), EINVAL);
        CALL(pthread_mutex_trylock(&mutex), EINVAL);
        CALL(pthread_mutex_timedlock(&mutex, &deadline), EINVAL);
    }
    return NULL;
}

static void excludes(bool needs_real_time)
{
    struct thread threads[THREADS];
    counter = 0;
    long finished = 0;
    for (int i = 0; i < THREADS; i++)
        start(&threads[i], count, needs_real_time ? &mutex : NULL);
    for (int i = 0; i < THREADS; i++)
        finished += join_soon(&threads[i], "a counting thread") != NULL;
    CHECK(counter == finished * ROUNDS);
    printf("%s: %ld of %d threads locked\n", check_context, finished, THREADS);
}

int main(void)
{
    pthread_mutexattr_t attr;
    const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    int low = sched_get_priority_min(SCHED_FIFO), ceiling = low + 3, value;
    for (size_t i = 0; i < COUNT(types); i++) {
        check_context = "inherit";
        CHECK(pthread_mutexattr_init(&attr) == 0 && pthread_mutexattr_settype(&attr, types[i]) == 0);
        CHECK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == 0);
        OK(pthread_mutex_init(&mutex, &attr));
        CALL(pthread_mutex_getprioceiling(&mutex, &value), EINVAL);
        excludes(false);
        OK(pthread_mutex_destroy(&mutex));

        check_context = "protect";
        CHECK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT) == 0);
        CHECK(pthread_mutexattr_setprioceiling(&attr, ceiling) == 0);
        OK(pthread_mutex_init(&mutex, &attr));
        OK(pthread_mutex_getprioceiling(&mutex, &value));
        CHECK(value == ceiling);
        OK(pthread_mutex_setprioceiling(&mutex, ceiling + 1, &value));
        CHECK(value == ceiling);
        OK(pthread_mutex_getprioceiling(&mutex, &value));
        CHECK(value == ceiling + 1);
        CALL(pthread_mutex_setprioceiling(&mutex, 100000, &value), EINVAL);
        OK(pthread_mutex_setprioceiling(&mutex, ceiling, &value));
        struct thread thread;
        start(&thread, above_the_ceiling, &ceiling);
        join(&thread);
        excludes(true);
        OK(pthread_mutex_destroy(&mutex));
    }
    return 0;
}
