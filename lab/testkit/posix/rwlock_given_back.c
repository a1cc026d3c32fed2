/* A read lock that another thread gives back. POSIX leaves that undefined, glibc lets it pass, and programs do it: one thread
 * acquires for a request, another one completes it. The thread that acquired must not be taken for a reader ever after: its
 * later reads would pass a writer that starves for good. */
#include "check.h"

#define HANDED_OVER 40

static pthread_rwlock_t handed_over[HANDED_OVER];
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool stop;
static atomic_int wrote, ready;

static void *give_back(void *arg)
{
    (void)arg;
    for (int i = 0; i < HANDED_OVER; i++)
        OK(pthread_rwlock_unlock(&handed_over[i]));
    OK(pthread_rwlock_unlock(&table));
    return NULL;
}

static void *stream_reader(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    struct thread other;
    for (int i = 0; i < HANDED_OVER; i++)
        OK(pthread_rwlock_rdlock(&handed_over[i]));
    OK(pthread_rwlock_rdlock(&table));
    start(&other, give_back, NULL);
    join_soon(&other, "a thread that gives back read locks");
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&stop)) {
        OK(pthread_rwlock_rdlock(&table));
        sleep_us(200 + random_next(&seed) % 800);
        OK(pthread_rwlock_unlock(&table));
    }
    return NULL;
}

static void *write_once(void *arg)
{
    OK(pthread_rwlock_wrlock(arg));
    atomic_fetch_add(&wrote, 1);
    OK(pthread_rwlock_unlock(arg));
    return NULL;
}

int main(void)
{
    struct thread readers[8], writer;
    for (int i = 0; i < HANDED_OVER; i++)
        OK(pthread_rwlock_init(&handed_over[i], NULL));
    for (uintptr_t i = 0; i < 8; i++)
        start(&readers[i], stream_reader, (void *)(i + 1));
    await_flag(&ready, 8);
    sleep_ms(20);
    int writes = 0;
    for (; writes < 20; writes++) {
        start(&writer, write_once, &table);
        int64_t limit = now_ns(CLOCK_MONOTONIC) + (on_spinpark() ? LONG_MS : 1000) * 1000000LL;
        while (atomic_load(&wrote) == writes && now_ns(CLOCK_MONOTONIC) < limit)
            sleep_us(200);
        if (atomic_load(&wrote) == writes)
            break;
        join(&writer);
    }
    printf("%d writes through a stream of readers\n", writes);
    if (writes < 20 && on_spinpark()) /* glibc prefers readers */
        STUCK("readers whose earlier locks others gave back starve a writer");
    atomic_store(&stop, true);
    for (int i = 0; i < 8; i++)
        join_soon(&readers[i], "a reader of the stream");
    if (writes < 20)
        join_soon(&writer, "the starved writer");
    /* Recursion past a writer that waits works still. */
    OK(pthread_rwlock_rdlock(&table));
    atomic_store(&wrote, 0);
    start(&writer, write_once, &table);
    await_sleep(&writer);
    sleep_ms(5);
    for (int i = 0; i < 5; i++)
        OK(pthread_rwlock_rdlock(&table));
    CHECK(atomic_load(&wrote) == 0);
    for (int i = 0; i < 6; i++)
        OK(pthread_rwlock_unlock(&table));
    join_soon(&writer, "a writer after the last reader");
    for (int i = 0; i < HANDED_OVER; i++) {
        OK(pthread_rwlock_trywrlock(&handed_over[i]));
        OK(pthread_rwlock_unlock(&handed_over[i]));
        OK(pthread_rwlock_destroy(&handed_over[i]));
    }
    return 0;
}
