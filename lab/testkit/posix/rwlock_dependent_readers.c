/* The default kind prefers readers: a new reader comes in although writers wait, however long they have been waiting.
 * A program may rely on it: a reader may wait for another thread that reads under the same lock (a
 * parallel loop under a read lock, for example). A lock that makes new readers wait for a starving writer until the
 * readers are gone deadlocks here; it may delay them, but not for ever. The same for a thread that only tries: a reader may wait
 * until that has succeeded. */
#include "check.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int wrote;

static void *write_once(void *arg)
{
    (void)arg;
    OK(pthread_rwlock_wrlock(&lock));
    atomic_fetch_add(&wrote, 1);
    OK(pthread_rwlock_unlock(&lock));
    return NULL;
}

static void *write_soon(void *arg)
{
    (void)arg;
    struct timespec limit = in_ms(CLOCK_REALTIME, 100);
    CALL(pthread_rwlock_timedwrlock(&lock, &limit), ETIMEDOUT);
    return NULL;
}

static void *read_once(void *arg)
{
    if (arg) {
        struct timespec limit = in_ms(CLOCK_REALTIME, LONG_MS);
        OK(pthread_rwlock_timedrdlock(&lock, &limit));
    } else {
        OK(pthread_rwlock_rdlock(&lock));
    }
    OK(pthread_rwlock_unlock(&lock));
    return NULL;
}

static void round_of(int patience_ms)
{
    struct thread writers[2], reader;
    atomic_store(&wrote, 0);
    OK(pthread_rwlock_rdlock(&lock));
    for (int i = 0; i < 2; i++) {
        start(&writers[i], write_once, NULL);
        await_sleep(&writers[i]);
    }
    sleep_ms(patience_ms);
    for (int i = 0; i < 6; i++) {
        start(&reader, read_once, i % 2 ? &lock : NULL);
        join_soon(&reader, "a second reader while writers wait");
        sleep_ms(patience_ms / 10);
    }
    CHECK(atomic_load(&wrote) == 0);
    OK(pthread_rwlock_unlock(&lock));
    for (int i = 0; i < 2; i++)
        join_soon(&writers[i], "a writer after the last reader");
    CHECK(atomic_load(&wrote) == 2);
}

/* Tries until one succeeds; returns after how long that was, ns. */
static void *try_to_read(void *arg)
{
    int64_t begin = now_ns(CLOCK_MONOTONIC);
    (void)arg;
    while (pthread_rwlock_tryrdlock(&lock) != 0) {
        if (now_ns(CLOCK_MONOTONIC) - begin > LONG_MS * 1000000LL)
            STUCK("a thread that tries to read beside a reader");
        sleep_us(20);
    }
    OK(pthread_rwlock_unlock(&lock));
    return (void *)(uintptr_t)(now_ns(CLOCK_MONOTONIC) - begin);
}

/* A reader stays while others come and go, so that a waiting writer starves and requests a hand-off, again and again. */
static void tries(bool gives_up)
{
    struct thread writer, reader;
    int64_t longest = 0;
    atomic_store(&wrote, 0);
    OK(pthread_rwlock_rdlock(&lock));
    start(&writer, gives_up ? write_soon : write_once, NULL);
    await_sleep(&writer);
    for (int64_t end = now_ns(CLOCK_MONOTONIC) + 200 * 1000000LL; now_ns(CLOCK_MONOTONIC) < end;) {
        start(&reader, try_to_read, NULL);
        int64_t span = (int64_t)(uintptr_t)join_soon(&reader, "a thread that tries");
        longest = span > longest ? span : longest;
    }
    CHECK(atomic_load(&wrote) == 0);
    if (gives_up)
        join_soon(&writer, "a writer with a deadline");
    OK(pthread_rwlock_unlock(&lock));
    if (!gives_up)
        join_soon(&writer, "a writer after the last reader");
    printf("beside a writer%s, a try succeeded after at most %lld us\n", gives_up ? " that gives up" : "",
           (long long)longest / 1000);
}

int main(void)
{
    for (int i = 0; i < 20; i++)
        round_of((int[]){0, 2, 5, 20, 50}[i % 5]);
    tries(false);
    tries(true);
    return 0;
}
