/* Contended locks, used so that it is known how often threads wait; for recordings in spans of time.
 *
 *   spans waits N    a thread waits N times for a mutex, and says so: `waits MUTEX N`
 *   spans deadlock   two threads use two mutexes in one order, then in both, and the process is killed */
#include "truth.h"
#include <sched.h>
#include <signal.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static long rounds;
static volatile long asked, answered;

static int word_of(pthread_mutex_t *mutex) { return __atomic_load_n((int *)mutex, __ATOMIC_RELAXED); }

/* Comes for the mutex once the other thread has it. */
static void *wait_often(void *none)
{
    for (long round = 1; round <= rounds; round++) {
        while (__atomic_load_n(&asked, __ATOMIC_ACQUIRE) < round)
            sched_yield();
        OK(pthread_mutex_lock(&first));
        OK(pthread_mutex_unlock(&first));
        __atomic_store_n(&answered, round, __ATOMIC_RELEASE);
    }
    return none;
}

static void scene_waits(void)
{
    pthread_t waiter;
    OK(pthread_create(&waiter, NULL, wait_often, NULL));
    for (long round = 1; round <= rounds; round++) {
        OK(pthread_mutex_lock(&first));
        __atomic_store_n(&asked, round, __ATOMIC_RELEASE);
        /* Until it sleeps: then the lock word says so. */
        while (word_of(&first) != 2)
            sched_yield();
        OK(pthread_mutex_unlock(&first));
        while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) < round)
            sched_yield();
    }
    OK(pthread_join(waiter, NULL));
    printf("waits %lu %ld\n", (unsigned long)(uintptr_t)&first, rounds);
}

static void both_come_to(volatile long *place)
{
    __atomic_add_fetch(place, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(place, __ATOMIC_ACQUIRE) < 2)
        sched_yield();
}

static void *use_both(void *other_order)
{
    pthread_mutex_t *outer = other_order ? &second : &first, *inner = other_order ? &first : &second;
    /* Both are locks that have been waited for. */
    OK(pthread_mutex_lock(outer));
    OK(pthread_mutex_unlock(outer));
    for (int64_t start = clock_now(); clock_now() < start + 50 * 1000 * 1000;) {
        OK(pthread_mutex_lock(&first));
        OK(pthread_mutex_lock(&second));
        OK(pthread_mutex_unlock(&second));
        OK(pthread_mutex_unlock(&first));
    }
    both_come_to(&asked);
    OK(pthread_mutex_lock(outer));
    both_come_to(&answered);
    OK(pthread_mutex_lock(inner));
    FAIL("no deadlock");
    return NULL;
}

static void scene_deadlock(void)
{
    pthread_t threads[2];
    OK(pthread_mutex_lock(&first));
    OK(pthread_mutex_lock(&second));
    OK(pthread_create(&threads[0], NULL, use_both, NULL));
    OK(pthread_create(&threads[1], NULL, use_both, &first));
    while (word_of(&first) != 2 || word_of(&second) != 2)
        usleep(1000);
    OK(pthread_mutex_unlock(&second));
    OK(pthread_mutex_unlock(&first));
    while (word_of(&first) != 2 || word_of(&second) != 2 || answered < 2)
        usleep(1000);
    raise(SIGKILL);
}

int main(int count, char **arguments)
{
    CHECK(count > 1);
    if (strcmp(arguments[1], "waits") == 0) {
        rounds = atol(arguments[2]);
        scene_waits();
    } else {
        scene_deadlock();
    }
    return 0;
}
