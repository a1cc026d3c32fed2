/* Which thread goes first.
 *  - Default kind: a reader may read again although a writer waits, however long that has been waiting.
 *  - Default kind: a stream of overlapping readers does not keep a writer out for ever. glibc does not promise
 *    this (it prefers readers), so there it is only reported.
 *  - PREFER_WRITER_NONRECURSIVE_NP: new readers wait behind a waiting writer. */
#include "check.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t nonrecursive = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static atomic_int wrote;
static atomic_bool stop;

static void *write_once(void *arg)
{
    OK(pthread_rwlock_wrlock(arg));
    atomic_fetch_add(&wrote, 1);
    OK(pthread_rwlock_unlock(arg));
    return NULL;
}

static void *read_untimed(void *arg)
{
    OK(pthread_rwlock_rdlock(arg));
    OK(pthread_rwlock_unlock(arg));
    return NULL;
}

/* Readers may recurse while writers wait; `patience_ms` is how long those have waited already. */
static void recursion(int patience_ms)
{
    struct thread writers[2];
    atomic_store(&wrote, 0);
    OK(pthread_rwlock_rdlock(&lock));
    for (int i = 0; i < 2; i++) {
        start(&writers[i], write_once, &lock);
        await_sleep(&writers[i]);
    }
    sleep_ms(patience_ms);
    for (int depth = 0; depth < 20; depth++) {
        struct timespec limit = in_ms(CLOCK_REALTIME, LONG_MS);
        if (depth % 2)
            OK(pthread_rwlock_timedrdlock(&lock, &limit));
        else
            OK(pthread_rwlock_rdlock(&lock));
    }
    CHECK(atomic_load(&wrote) == 0);
    for (int depth = 0; depth < 20; depth++)
        OK(pthread_rwlock_unlock(&lock));
    CHECK(atomic_load(&wrote) == 0);
    OK(pthread_rwlock_unlock(&lock));
    for (int i = 0; i < 2; i++)
        join_soon(&writers[i], "a writer after the last reader");
    CHECK(atomic_load(&wrote) == 2);
}

static void *recursive_reader(void *arg)
{
    uintptr_t rounds = 0;
    (void)arg;
    while (!atomic_load(&stop)) {
        OK(pthread_rwlock_rdlock(&lock));
        sched_yield();
        OK(pthread_rwlock_rdlock(&lock));
        OK(pthread_rwlock_unlock(&lock));
        OK(pthread_rwlock_unlock(&lock));
        rounds++;
    }
    return (void *)rounds;
}

static void *busy_writer(void *arg)
{
    uintptr_t rounds = 0;
    (void)arg;
    while (!atomic_load(&stop)) {
        OK(pthread_rwlock_wrlock(&lock));
        OK(pthread_rwlock_unlock(&lock));
        rounds++;
    }
    return (void *)rounds;
}

/* Recursive readers against busy writers: none may deadlock. */
static void recursion_under_load(void)
{
    struct thread threads[4];
    atomic_store(&stop, false);
    for (int i = 0; i < 4; i++)
        start(&threads[i], i < 2 ? recursive_reader : busy_writer, NULL);
    sleep_ms(1000);
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++)
        printf("%s: %lu rounds\n", i < 2 ? "recursive reader" : "writer",
               (unsigned long)join_soon(&threads[i], "recursion under load"));
}

static void *stream_reader(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    while (!atomic_load(&stop)) {
        OK(pthread_rwlock_rdlock(&lock));
        sleep_us(200 + random_next(&seed) % 800);
        OK(pthread_rwlock_unlock(&lock));
    }
    return NULL;
}

static void starvation(void)
{
    struct thread readers[8], writer;
    atomic_store(&stop, false);
    atomic_store(&wrote, 0);
    for (uintptr_t i = 0; i < 8; i++)
        start(&readers[i], stream_reader, (void *)(i + 1));
    sleep_ms(20);
    int writes = 0;
    int64_t begin = now_ns(CLOCK_MONOTONIC);
    for (; writes < 20; writes++) {
        start(&writer, write_once, &lock);
        int64_t limit = now_ns(CLOCK_MONOTONIC) + (on_spinpark() ? LONG_MS : 2000) * 1000000LL;
        while (atomic_load(&wrote) == writes && now_ns(CLOCK_MONOTONIC) < limit)
            sleep_us(200);
        if (atomic_load(&wrote) == writes)
            break;
        join(&writer);
    }
    printf("%d writes through a stream of readers in %lld ms\n", writes,
           (long long)(now_ns(CLOCK_MONOTONIC) - begin) / 1000000);
    if (writes < 20 && on_spinpark())
        STUCK("a stream of readers starves a writer");
    atomic_store(&stop, true);
    for (int i = 0; i < 8; i++)
        join_soon(&readers[i], "a reader of the stream");
    if (writes < 20)
        join_soon(&writer, "the starved writer");
}

static void *writer_blocks(void *arg)
{
    (void)arg;
    struct timespec limit = in_ms(CLOCK_REALTIME, 50);
    CALL(pthread_rwlock_tryrdlock(&nonrecursive), EBUSY);
    CALL(pthread_rwlock_timedrdlock(&nonrecursive, &limit), ETIMEDOUT);
    CHECK(has_come(CLOCK_REALTIME, limit));
    limit = in_ms(CLOCK_MONOTONIC, 5);
    CALL(pthread_rwlock_clockrdlock(&nonrecursive, CLOCK_MONOTONIC, &limit), ETIMEDOUT);
    return NULL;
}

static void writers_first(void)
{
    struct thread writer, reader;
    atomic_store(&wrote, 0);
    OK(pthread_rwlock_rdlock(&nonrecursive));
    start(&writer, write_once, &nonrecursive);
    await_sleep(&writer);
    start(&reader, writer_blocks, NULL);
    join_soon(&reader, "a reader with a deadline behind a writer");
    CHECK(atomic_load(&wrote) == 0);
    start(&reader, read_untimed, &nonrecursive);
    await_sleep(&reader);
    OK(pthread_rwlock_unlock(&nonrecursive));
    join_soon(&writer, "the writer that new readers wait for");
    join_soon(&reader, "the reader behind it");
}

/* On one CPU, a reader that comes back right after its release waits behind a writer that had queued before. */
static void one_cpu(void)
{
    for (int i = 0; i < 20; i++) {
        struct thread writer;
        int before = atomic_load(&wrote);
        OK(pthread_rwlock_rdlock(&nonrecursive));
        start(&writer, write_once, &nonrecursive);
        sleep_us(3000);
        OK(pthread_rwlock_unlock(&nonrecursive));
        if (pthread_rwlock_tryrdlock(&nonrecursive) == 0) {
            CHECK(atomic_load(&wrote) > before);
            OK(pthread_rwlock_unlock(&nonrecursive));
        }
        join(&writer);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2) { /* so that it has one CPU from its start */
        CHECK(bind_to(0));
        execl("/proc/self/exe", argv[0], "on", "one", NULL);
        CHECK(0);
    }
    if (argc == 3) {
        check_context = "one CPU";
        one_cpu();
        return 0;
    }
    check_context = "recursion";
    recursion(0);
    recursion(5);
    recursion(100);
    recursion_under_load();
    check_context = "nonrecursive";
    for (int i = 0; i < 5; i++)
        writers_first();
    check_context = "starvation";
    starvation();
    return 0;
}
