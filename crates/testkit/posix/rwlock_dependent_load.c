/* Readers that depend on each other go on at their pace while writers come. A coordinator holds the read lock and has a helper
 * read under the same lock, item by item. The default kind lets the helper in past a writer that waits; a lock that makes it
 * wait for each item, for however short a time beyond the microseconds of a switch, stops the program. The writer gets its
 * turn between two holds of the coordinator. */
#include "check.h"
#include <semaphore.h>

#define ITEMS 10000

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t wanted, done;
static atomic_bool stop;
static atomic_int wrote;

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        CHECK(errno == EINTR);
}

static void *help(void *arg)
{
    (void)arg;
    for (;;) {
        wait_for(&wanted);
        if (atomic_load(&stop))
            return NULL;
        OK(pthread_rwlock_rdlock(&lock));
        OK(pthread_rwlock_unlock(&lock));
        CHECK(sem_post(&done) == 0);
    }
}

static void *write_now_and_then(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        sleep_ms(1);
        OK(pthread_rwlock_wrlock(&lock));
        atomic_fetch_add(&wrote, 1);
        OK(pthread_rwlock_unlock(&lock));
    }
    return NULL;
}

/* The coordinator, which holds the lock for `batch` items at a time. */
static void *coordinate(void *arg)
{
    int batch = *(int *)arg;
    for (int items = 0; items < ITEMS; items += batch) {
        OK(pthread_rwlock_rdlock(&lock));
        for (int i = 0; i < batch; i++) {
            CHECK(sem_post(&wanted) == 0);
            wait_for(&done);
        }
        OK(pthread_rwlock_unlock(&lock));
    }
    return NULL;
}

static void run(int batch)
{
    struct thread coordinator, helper, writer;
    CHECK(sem_init(&wanted, 0, 0) == 0 && sem_init(&done, 0, 0) == 0);
    atomic_store(&stop, false);
    atomic_store(&wrote, 0);
    start(&helper, help, NULL);
    start(&writer, write_now_and_then, NULL);
    int64_t begin = now_ns(CLOCK_MONOTONIC);
    start(&coordinator, coordinate, &batch);
    join_soon(&coordinator, "a coordinator whose helper reads beside a writer that waits");
    int64_t ns = now_ns(CLOCK_MONOTONIC) - begin;
    int turns = atomic_load(&wrote);
    atomic_store(&stop, true);
    CHECK(sem_post(&wanted) == 0);
    join_soon(&helper, "the helper");
    join_soon(&writer, "the writer");
    printf("%d items at a time: %d items and %d writes in %lld ms\n", batch, ITEMS, turns, (long long)ns / 1000000);
    CHECK(turns > 0);
}

int main(void)
{
    for (int i = 0; i < 3; i++)
        run((int[]){10, 100, 1000}[i]);
    return 0;
}
