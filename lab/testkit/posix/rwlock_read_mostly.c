/* A read-mostly lock: long runs of reads, then a write, however the write comes (waiting, trying, with a deadline), with
 * readers that recurse, that hold several locks, and that are in the middle of it while the process forks. No reader sees
 * a half-written pair; no writer is inside with a reader; the lock may be freed by the last one out. */
#include "check.h"

#define READERS 6
#define RUN 300 /* reads in a row: more than any threshold for "read-mostly" on a small machine */

struct table {
    pthread_rwlock_t lock;
    long a, b;
};

static struct table tables[10];
static atomic_bool stop;
static atomic_long writes, reads;

static void check(struct table *table) { CHECK(table->a == table->b); }

static void read_once(struct table *table)
{
    OK(pthread_rwlock_rdlock(&table->lock));
    check(table);
    OK(pthread_rwlock_unlock(&table->lock));
}

static void *reader(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg + 1;
    while (!atomic_load(&stop)) {
        struct table *one = &tables[random_next(&seed) % 2];
        switch (random_next(&seed) % 4) {
        case 0: /* again, while it is held */
            OK(pthread_rwlock_rdlock(&one->lock));
            for (int i = 0; i < 3; i++)
                read_once(one);
            check(one);
            OK(pthread_rwlock_unlock(&one->lock));
            break;
        case 1: /* more than a thread remembers, given back in another order */
            for (int i = 0; i < 10; i++)
                OK(pthread_rwlock_rdlock(&tables[i].lock));
            for (int i = 0; i < 10; i++) {
                check(&tables[i]);
                OK(pthread_rwlock_unlock(&tables[(i * 7) % 10].lock));
            }
            break;
        case 2: /* held across a sleep */
            OK(pthread_rwlock_rdlock(&one->lock));
            sched_yield();
            check(one);
            OK(pthread_rwlock_unlock(&one->lock));
            break;
        default:
            for (int i = 0; i < RUN; i++)
                read_once(one);
        }
        atomic_fetch_add(&reads, 1);
    }
    return NULL;
}

static void *writer(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg + 77;
    while (!atomic_load(&stop)) {
        struct table *one = &tables[random_next(&seed) % 2];
        int error = 0;
        switch (random_next(&seed) % 3) {
        case 0: OK(pthread_rwlock_wrlock(&one->lock)); break;
        case 1: error = pthread_rwlock_trywrlock(&one->lock); CHECK(error == 0 || error == EBUSY); break;
        default: {
            struct timespec soon = in_us(CLOCK_REALTIME, 100);
            error = pthread_rwlock_timedwrlock(&one->lock, &soon);
            CHECK(error == 0 || error == ETIMEDOUT);
        }
        }
        if (error == 0) {
            one->a++;
            sched_yield();
            one->b++;
            OK(pthread_rwlock_unlock(&one->lock));
            atomic_fetch_add(&writes, 1);
        }
        for (int i = 0; i < RUN; i++)
            read_once(one);
    }
    return NULL;
}

static pthread_rwlock_t *shared;
static atomic_int users;

/* Counts while it holds the lock; the thread that counts to zero is alone once it has got the lock again. */
static void *last_one_frees(void *arg)
{
    bool write = arg != NULL;
    OK(write ? pthread_rwlock_wrlock(shared) : pthread_rwlock_rdlock(shared));
    bool last = atomic_fetch_sub(&users, 1) == 1;
    OK(pthread_rwlock_unlock(shared));
    if (last) {
        OK(pthread_rwlock_wrlock(shared));
        OK(pthread_rwlock_unlock(shared));
        OK(pthread_rwlock_destroy(shared));
        CHECK(munmap(shared, 4096) == 0);
    }
    return NULL;
}

static void freed_by_the_last(void)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    OK(pthread_rwlock_init(shared, NULL));
    for (int i = 0; i < RUN; i++) {
        OK(pthread_rwlock_rdlock(shared));
        OK(pthread_rwlock_unlock(shared));
    }
    atomic_store(&users, 3);
    struct thread thread[3];
    for (uintptr_t i = 0; i < 3; i++)
        start(&thread[i], last_one_frees, i == 0 ? (void *)1 : NULL);
    for (int i = 0; i < 3; i++)
        join(&thread[i]);
}

/* The child holds what its own thread held, in the parent's slots or wherever that is noted, and gives it back. */
static void fork_in_the_middle(struct table *table)
{
    for (int i = 0; i < RUN; i++)
        read_once(table);
    OK(pthread_rwlock_rdlock(&table->lock));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(pthread_rwlock_trywrlock(&table->lock) == EBUSY);
        OK(pthread_rwlock_unlock(&table->lock));
        CALL(pthread_rwlock_trywrlock(&table->lock), 0);
        OK(pthread_rwlock_unlock(&table->lock));
        for (int i = 0; i < RUN; i++)
            read_once(table);
        OK(pthread_rwlock_wrlock(&table->lock));
        OK(pthread_rwlock_unlock(&table->lock));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(pthread_rwlock_unlock(&table->lock));
    CALL(pthread_rwlock_trywrlock(&table->lock), 0);
    OK(pthread_rwlock_unlock(&table->lock));
}

static void *unlocks(void *arg)
{
    OK(pthread_rwlock_unlock(arg));
    return NULL;
}

/* POSIX leaves it undefined that another thread unlocks; glibc lets it pass. */
static void unlocked_by_another(struct table *table)
{
    for (int i = 0; i < RUN; i++)
        read_once(table);
    OK(pthread_rwlock_rdlock(&table->lock));
    struct thread other;
    start(&other, unlocks, &table->lock);
    join(&other);
    CALL(pthread_rwlock_trywrlock(&table->lock), 0);
    OK(pthread_rwlock_unlock(&table->lock));
}

int main(void)
{
    for (int i = 0; i < 10; i++)
        OK(pthread_rwlock_init(&tables[i].lock, NULL));
    fork_in_the_middle(&tables[9]);
    unlocked_by_another(&tables[8]);
    struct thread thread[READERS + 2];
    for (uintptr_t i = 0; i < READERS; i++)
        start(&thread[i], reader, (void *)i);
    start(&thread[READERS], writer, (void *)1);
    start(&thread[READERS + 1], writer, (void *)2);
    int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(stress_seconds(1) * 1e9);
    while (now_ns(CLOCK_MONOTONIC) < end || atomic_load(&reads) < 100 || atomic_load(&writes) < 10)
        freed_by_the_last();
    atomic_store(&stop, true);
    for (int i = 0; i < READERS + 2; i++)
        join(&thread[i]);
    for (int i = 0; i < 10; i++) {
        check(&tables[i]);
        OK(pthread_rwlock_wrlock(&tables[i].lock));
        OK(pthread_rwlock_unlock(&tables[i].lock));
        OK(pthread_rwlock_destroy(&tables[i].lock));
    }
    return 0;
}
