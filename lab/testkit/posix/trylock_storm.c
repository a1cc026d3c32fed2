/* Threads that only try, and threads that lock: a try returns 0 or EBUSY at once, and never blocks; threads
 * that lock get in. */
#include "check.h"

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool stop;
static atomic_int inside, readers, writers;
static long counter;
static atomic_long locked_rounds;

static void *tries(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    uintptr_t won = 0;
    while (!atomic_load(&stop)) {
        errno = ERRNO_MARK;
        int error = pthread_mutex_trylock(&mutex);
        CHECK(errno == ERRNO_MARK);
        if (error == 0) {
            CHECK(atomic_fetch_add(&inside, 1) == 0);
            counter++, won++;
            atomic_fetch_sub(&inside, 1);
            OK(pthread_mutex_unlock(&mutex));
        } else {
            CHECK(error == EBUSY);
        }
        bool write = random_next(&seed) % 4 == 0;
        error = write ? pthread_rwlock_trywrlock(&rwlock) : pthread_rwlock_tryrdlock(&rwlock);
        if (error == 0) {
            atomic_fetch_add(write ? &writers : &readers, 1);
            CHECK(atomic_load(&writers) <= write && (!write || atomic_load(&readers) == 0));
            atomic_fetch_sub(write ? &writers : &readers, 1);
            OK(pthread_rwlock_unlock(&rwlock));
        } else {
            CHECK(error == EBUSY);
        }
    }
    return (void *)won;
}

static void *locks(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    uintptr_t rounds = 0;
    while (!atomic_load(&stop)) {
        OK(pthread_mutex_lock(&mutex));
        CHECK(atomic_fetch_add(&inside, 1) == 0);
        counter++, rounds++;
        if (random_next(&seed) % 16 == 0)
            sched_yield();
        atomic_fetch_sub(&inside, 1);
        OK(pthread_mutex_unlock(&mutex));
        bool write = random_next(&seed) % 4 == 0;
        OK(write ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock));
        atomic_fetch_add(write ? &writers : &readers, 1);
        CHECK(atomic_load(&writers) <= write && (!write || atomic_load(&readers) == 0));
        atomic_fetch_sub(write ? &writers : &readers, 1);
        OK(pthread_rwlock_unlock(&rwlock));
        atomic_fetch_add(&locked_rounds, 1);
    }
    return (void *)rounds;
}

int main(void)
{
    for (size_t k = 0; k < 4; k++) {
        check_context = MUTEX_KINDS[k].name;
        mutex_make(&mutex, &MUTEX_KINDS[k]);
        struct thread threads[6];
        long sum = 0;
        counter = 0;
        atomic_store(&stop, false);
        atomic_store(&locked_rounds, 0);
        for (uintptr_t i = 0; i < 6; i++)
            start(&threads[i], i < 3 ? tries : locks, (void *)(i + 1));
        sleep_ms((long)(stress_seconds(1.2) * 1000 / 4));
        int64_t limit = now_ns(CLOCK_MONOTONIC) + LONG_MS * 1000000LL;
        while (atomic_load(&locked_rounds) < 100) {
            sleep_ms(5);
            if (now_ns(CLOCK_MONOTONIC) > limit)
                STUCK("threads that lock get nowhere beside threads that try");
        }
        atomic_store(&stop, true);
        for (int i = 0; i < 6; i++)
            sum += (long)(uintptr_t)join_soon(&threads[i], "a thread of the storm");
        CHECK(sum == counter);
        OK(pthread_mutex_destroy(&mutex));
    }
    return 0;
}
