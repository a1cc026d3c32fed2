/* Read-write locks of every kind: readers share, a writer excludes, an unlock wakes who can go;
 *  - EBUSY from tryrdlock and trywrlock, EDEADLK when the writer locks again in any way but try;
 *  - static initialisers, zeroed memory, destroy and initialise again. */
#include "check.h"

static pthread_rwlock_t *lock;
static atomic_int readers, writers, step;
static long counter;

struct rw_kind {
    const char *name;
    int kind, pshared;
};
static const struct rw_kind KINDS[] = {
    {"prefer reader", PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_PROCESS_PRIVATE},
    {"prefer writer", PTHREAD_RWLOCK_PREFER_WRITER_NP, PTHREAD_PROCESS_PRIVATE},
    {"prefer writer nonrecursive", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, PTHREAD_PROCESS_PRIVATE},
    {"shared", PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_PROCESS_SHARED},
    {"shared nonrecursive", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, PTHREAD_PROCESS_SHARED},
};

/* The results in another thread. */
enum { TRYRD, TRYWR };
static void *try_main(void *arg)
{
    errno = ERRNO_MARK;
    int *call = arg;
    *call = *call == TRYRD ? pthread_rwlock_tryrdlock(lock) : pthread_rwlock_trywrlock(lock);
    CHECK(errno == ERRNO_MARK);
    if (*call == 0)
        OK(pthread_rwlock_unlock(lock));
    return NULL;
}
static int other_try(int call)
{
    struct thread thread;
    start(&thread, try_main, &call);
    join(&thread);
    return call;
}

static void *mixed(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    long writes = 0;
    for (int i = 0; i < 3000; i++) {
        uint32_t r = random_next(&seed) % 8;
        int error = 0;
        if (r < 2) {
            if (r == 0)
                OK(pthread_rwlock_wrlock(lock));
            else if ((error = pthread_rwlock_trywrlock(lock)) != 0)
                CHECK(error == EBUSY);
            if (error)
                continue;
            CHECK(atomic_fetch_add(&writers, 1) == 0 && atomic_load(&readers) == 0);
            counter++, writes++;
            atomic_fetch_sub(&writers, 1);
        } else {
            if (r < 6)
                OK(pthread_rwlock_rdlock(lock));
            else if ((error = pthread_rwlock_tryrdlock(lock)) != 0)
                CHECK(error == EBUSY || error == EAGAIN);
            if (error)
                continue;
            atomic_fetch_add(&readers, 1);
            CHECK(atomic_load(&writers) == 0);
            atomic_fetch_sub(&readers, 1);
        }
        OK(pthread_rwlock_unlock(lock));
    }
    return (void *)writes;
}

static void *reader_together(void *arg)
{
    OK(pthread_rwlock_rdlock(lock));
    pthread_barrier_wait(arg); /* only passable if all hold the lock at the same time */
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

static void *read_once(void *arg)
{
    (void)arg;
    OK(pthread_rwlock_rdlock(lock));
    atomic_fetch_add(&step, 1);
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

static void *write_once(void *arg)
{
    (void)arg;
    OK(pthread_rwlock_wrlock(lock));
    atomic_fetch_add(&step, 1);
    OK(pthread_rwlock_unlock(lock));
    return NULL;
}

static void errors(void)
{
    OK(pthread_rwlock_rdlock(lock));
    OK(other_try(TRYRD));
    CALL(other_try(TRYWR), EBUSY);
    CALL(pthread_rwlock_trywrlock(lock), EBUSY);
    OK(pthread_rwlock_rdlock(lock));
    OK(pthread_rwlock_tryrdlock(lock));
    OK(pthread_rwlock_unlock(lock));
    OK(pthread_rwlock_unlock(lock));
    CALL(other_try(TRYWR), EBUSY);
    OK(pthread_rwlock_unlock(lock));
    OK(other_try(TRYWR));

    struct timespec real = in_ms(CLOCK_REALTIME, LONG_MS), mono = in_ms(CLOCK_MONOTONIC, LONG_MS);
    for (int by_try = 0; by_try < 2; by_try++) {
        if (by_try)
            OK(pthread_rwlock_trywrlock(lock));
        else
            OK(pthread_rwlock_wrlock(lock));
        CALL(pthread_rwlock_rdlock(lock), EDEADLK);
        CALL(pthread_rwlock_wrlock(lock), EDEADLK);
        CALL(pthread_rwlock_timedrdlock(lock, &real), EDEADLK);
        CALL(pthread_rwlock_timedwrlock(lock, &real), EDEADLK);
        CALL(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &mono), EDEADLK);
        CALL(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &mono), EDEADLK);
        CALL(pthread_rwlock_tryrdlock(lock), EBUSY);
        CALL(pthread_rwlock_trywrlock(lock), EBUSY);
        CALL(other_try(TRYRD), EBUSY);
        CALL(other_try(TRYWR), EBUSY);
        OK(pthread_rwlock_unlock(lock));
        OK(other_try(TRYWR));
        OK(other_try(TRYRD));
    }
}

static void waking(void)
{
    struct thread threads[6];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        start(&threads[i], reader_together, &barrier);
    for (int i = 0; i < 4; i++)
        join_soon(&threads[i], "readers that share");

    /* A writer's unlock lets all readers in, together. */
    OK(pthread_rwlock_wrlock(lock));
    for (int i = 0; i < 4; i++)
        start(&threads[i], reader_together, &barrier);
    for (int i = 0; i < 4; i++)
        await_sleep(&threads[i]);
    OK(pthread_rwlock_unlock(lock));
    for (int i = 0; i < 4; i++)
        join_soon(&threads[i], "readers that share after a writer");
    pthread_barrier_destroy(&barrier);

    /* The last reader's unlock lets the writer in; a mixed queue drains completely. */
    for (int by_writer = 0; by_writer < 2; by_writer++) {
        atomic_store(&step, 0);
        if (by_writer)
            OK(pthread_rwlock_wrlock(lock));
        else
            OK(pthread_rwlock_rdlock(lock));
        start(&threads[0], write_once, NULL);
        await_sleep(&threads[0]);
        CHECK(atomic_load(&step) == 0);
        for (int i = 1; i < 6; i++) {
            start(&threads[i], i % 2 ? read_once : write_once, NULL);
            if (by_writer || i % 2 == 0)
                await_sleep(&threads[i]);
        }
        OK(pthread_rwlock_unlock(lock));
        for (int i = 0; i < 6; i++)
            join_soon(&threads[i], "a mixed queue");
        CHECK(atomic_load(&step) == 6);
    }
}

static void everything(void)
{
    errors();
    waking();
    counter = 0;
    long written = 0;
    struct thread threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        start(&threads[i], mixed, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        written += (long)join_soon(&threads[i], "a mixed thread");
    CHECK(counter == written);
    errors();
}

int main(void)
{
    lock = malloc(sizeof *lock);
    for (size_t i = 0; i < COUNT(KINDS); i++) {
        check_context = KINDS[i].name;
        pthread_rwlockattr_t attr;
        CHECK(pthread_rwlockattr_init(&attr) == 0);
        CHECK(pthread_rwlockattr_setkind_np(&attr, 99) == EINVAL);
        CHECK(pthread_rwlockattr_setkind_np(&attr, KINDS[i].kind) == 0);
        CHECK(pthread_rwlockattr_setpshared(&attr, KINDS[i].pshared) == 0);
        for (int again = 0; again < 2; again++) {
            memset(lock, 0xa5, sizeof *lock);
            OK(pthread_rwlock_init(lock, &attr));
            everything();
            OK(pthread_rwlock_destroy(lock));
        }
        CHECK(pthread_rwlockattr_destroy(&attr) == 0);
    }
    check_context = "default attributes";
    memset(lock, 0xa5, sizeof *lock);
    OK(pthread_rwlock_init(lock, NULL));
    everything();
    OK(pthread_rwlock_destroy(lock));
    check_context = "zeroed memory";
    memset(lock, 0, sizeof *lock);
    everything();
    OK(pthread_rwlock_destroy(lock));
    free(lock);

    check_context = "static initialisers";
    static pthread_rwlock_t usual = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_rwlock_t nonrecursive = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    lock = &usual;
    everything();
    OK(pthread_rwlock_destroy(lock));
    lock = &nonrecursive;
    everything();
    OK(pthread_rwlock_destroy(lock));
    return 0;
}
