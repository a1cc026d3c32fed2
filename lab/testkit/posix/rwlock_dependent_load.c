/* Two loads that no lock can tell apart at first, one after the other on the same lock:
 *  - readers that depend on each other. A coordinator holds the read lock and has a helper read under the same lock, item by item.
 *    The default kind lets the helper in past a writer that waits. A lock that makes it wait for each item, for however short a
 *    time beyond the microseconds of a switch, stops the program. Writers acquire between two holds.
 *  - independent readers with long holds that overlap: they do not keep a writer out for seconds. glibc does not promise this. */
#include "check.h"
#include <semaphore.h>

#define ITEMS 5000
#define READERS 16

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
        sleep_ms(5);
        OK(pthread_rwlock_wrlock(&lock));
        atomic_fetch_add(&wrote, 1);
        OK(pthread_rwlock_unlock(&lock));
    }
    return NULL;
}

/* Does the items, `batch` in a hold; returns the time that takes. */
static int64_t coordinate(int batch)
{
    int64_t begin = now_ns(CLOCK_MONOTONIC);
    for (int items = 0; items < ITEMS; items += batch) {
        OK(pthread_rwlock_rdlock(&lock));
        for (int i = 0; i < batch; i++) {
            CHECK(sem_post(&wanted) == 0);
            wait_for(&done);
        }
        OK(pthread_rwlock_unlock(&lock));
    }
    return now_ns(CLOCK_MONOTONIC) - begin;
}

static void dependent(int batch)
{
    struct thread helper, writer;
    CHECK(sem_init(&wanted, 0, 0) == 0 && sem_init(&done, 0, 0) == 0);
    atomic_store(&stop, false);
    atomic_store(&wrote, 0);
    start(&helper, help, NULL);
    int64_t without = coordinate(batch);
    start(&writer, write_now_and_then, NULL);
    int64_t with = coordinate(batch);
    int turns = atomic_load(&wrote);
    atomic_store(&stop, true);
    CHECK(sem_post(&wanted) == 0);
    join_soon(&helper, "the helper");
    join_soon(&writer, "the writer");
    printf("%d items in a hold: %d items in %lld ms, and in %lld ms with %d writes\n", batch, ITEMS,
           (long long)without / 1000000, (long long)with / 1000000, turns);
    /* With a stop of 20 ms at each hundred items it would be this long. */
    CHECK(with < 10 * without + ITEMS / 100 * 20000000LL);
    /* A hold ends every few milliseconds. A writer that has been handed the lock has yet to count its
     * acquisition. */
    CHECK(batch > 100 || atomic_load(&wrote) > 0);
}

static void *read_long(void *arg)
{
    sleep_ms((long)(intptr_t)arg * 3);
    while (!atomic_load(&stop)) {
        OK(pthread_rwlock_rdlock(&lock));
        sleep_ms(50);
        OK(pthread_rwlock_unlock(&lock));
    }
    return NULL;
}

static void *write_once(void *arg)
{
    (void)arg;
    OK(pthread_rwlock_wrlock(&lock));
    atomic_fetch_add(&wrote, 1);
    OK(pthread_rwlock_unlock(&lock));
    return NULL;
}

static void independent(void)
{
    struct thread readers[READERS], writer;
    atomic_store(&stop, false);
    atomic_store(&wrote, 0);
    for (intptr_t i = 0; i < READERS; i++)
        start(&readers[i], read_long, (void *)i);
    sleep_ms(100);
    int64_t longest = 0;
    for (int i = 1; i <= (on_spinpark() ? 5 : 1); i++) {
        int64_t begin = now_ns(CLOCK_MONOTONIC);
        start(&writer, write_once, NULL);
        while (atomic_load(&wrote) < i && now_ns(CLOCK_MONOTONIC) < begin + 2000000000LL)
            sleep_ms(1);
        int64_t took = now_ns(CLOCK_MONOTONIC) - begin;
        longest = took > longest ? took : longest;
        if (on_spinpark() && atomic_load(&wrote) < i)
            FAIL("%d readers with holds of 50 ms keep a writer out for 2 s", READERS);
        if (atomic_load(&wrote) == i)
            join_soon(&writer, "a writer past overlapping readers");
    }
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++)
        join_soon(&readers[i], "a reader with long holds");
    if (!on_spinpark() && atomic_load(&wrote) == 0)
        join_soon(&writer, "the writer after them");
    printf("%d readers with holds of 50 ms: a writer waits for up to %lld ms\n", READERS, (long long)longest / 1000000);
}

int main(void)
{
    check_context = "dependent readers";
    dependent(10);
    dependent(100);
    check_context = "independent readers";
    independent();
    check_context = "dependent readers again";
    dependent(1000);
    dependent(ITEMS);
    check_context = "independent readers again";
    independent();
    return 0;
}
