/* The default kind prefers readers: a new reader comes in although writers wait, however long they have been waiting.
 * A program may rely on it: a reader may wait for another thread that reads under the same lock (a
 * parallel loop under a read lock, for example). A lock that makes new readers wait for a starving writer until the
 * readers are gone deadlocks here; it may delay them, but not for ever. */
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

int main(void)
{
    for (int i = 0; i < 20; i++)
        round_of((int[]){0, 2, 5, 20, 50}[i % 5]);
    return 0;
}
