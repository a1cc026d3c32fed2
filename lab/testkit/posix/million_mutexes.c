/* A million mutexes: zeroed memory used without any init, and initialised ones; all held at the same time by one
 * thread; taken at random by four. Then read-write locks and condition variables by the hundred thousand. A library
 * that keeps state outside the objects runs out here. */
#include "check.h"

enum { COUNT_MUTEXES = 1000000, COUNT_OTHERS = 100000, THREADS = 4, PICKS = 200000 };
static pthread_mutex_t *mutexes;
static pthread_rwlock_t *rwlocks;
static long *counters;

static void *picks(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    for (int i = 0; i < PICKS; i++) {
        /* Half of the picks meet on a few. */
        uint32_t n = random_next(&seed) % (i % 2 ? 4 : COUNT_MUTEXES);
        OK(pthread_mutex_lock(&mutexes[n]));
        counters[n]++;
        OK(pthread_mutex_unlock(&mutexes[n]));
    }
    return NULL;
}

static void use(void)
{
    struct thread threads[THREADS];
    for (int i = 0; i < COUNT_MUTEXES; i++)
        OK(pthread_mutex_lock(&mutexes[i]));
    for (int i = 0; i < COUNT_MUTEXES; i += 99999)
        CALL(other_trylock(&mutexes[i]), EBUSY);
    for (int i = 0; i < COUNT_MUTEXES; i++)
        OK(pthread_mutex_unlock(&mutexes[i]));
    memset(counters, 0, COUNT_MUTEXES * sizeof *counters);
    for (uintptr_t i = 0; i < THREADS; i++)
        start(&threads[i], picks, (void *)(i * 77 + 1));
    for (int i = 0; i < THREADS; i++)
        join_soon(&threads[i], "a thread that picks mutexes");
    long sum = 0;
    for (int i = 0; i < COUNT_MUTEXES; i++) {
        sum += counters[i];
        OK(pthread_mutex_destroy(&mutexes[i]));
    }
    CHECK(sum == (long)THREADS * PICKS);
}

int main(void)
{
    counters = calloc(COUNT_MUTEXES, sizeof *counters);
    check_context = "zeroed";
    mutexes = calloc(COUNT_MUTEXES, sizeof *mutexes);
    CHECK(counters && mutexes);
    use();
    check_context = "initialised";
    memset(mutexes, 0xa5, COUNT_MUTEXES * sizeof *mutexes);
    for (int i = 0; i < COUNT_MUTEXES; i++)
        mutex_make(&mutexes[i], &MUTEX_KINDS[i % 4]);
    use();
    free(mutexes);

    check_context = "others";
    rwlocks = calloc(COUNT_OTHERS, sizeof *rwlocks);
    pthread_cond_t *conds = calloc(COUNT_OTHERS, sizeof *conds);
    CHECK(rwlocks && conds);
    for (int i = 0; i < COUNT_OTHERS; i++) {
        OK(i % 2 ? pthread_rwlock_rdlock(&rwlocks[i]) : pthread_rwlock_wrlock(&rwlocks[i]));
        OK(pthread_cond_broadcast(&conds[i]));
    }
    for (int i = 0; i < COUNT_OTHERS; i++) {
        CALL(pthread_rwlock_trywrlock(&rwlocks[i]), EBUSY);
        OK(pthread_rwlock_unlock(&rwlocks[i]));
        OK(pthread_rwlock_destroy(&rwlocks[i]));
        OK(pthread_cond_destroy(&conds[i]));
    }
    return 0;
}
