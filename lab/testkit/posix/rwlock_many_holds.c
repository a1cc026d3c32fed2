/* Readers that hold many other read locks keep no writer out: they are not taken for holders of this one, which may read again
 * before a writer. (glibc's default kind lets readers in for ever.) */
#include "check.h"

enum { READERS = 4, HELD = 12, WRITES = 5, MOST_S = 20 };

static pthread_rwlock_t lock;
static atomic_int stop;

static void *reads(void *arg)
{
    pthread_rwlock_t *others = arg;
    for (int i = 0; i < HELD; i++)
        OK(pthread_rwlock_rdlock(&others[i]));
    while (!atomic_load(&stop)) {
        OK(pthread_rwlock_rdlock(&lock));
        sleep_ms(1);
        OK(pthread_rwlock_unlock(&lock));
    }
    for (int i = 0; i < HELD; i++)
        OK(pthread_rwlock_unlock(&others[i]));
    return arg;
}

static void writer_goes_on(int kind)
{
    static pthread_rwlock_t others[READERS][HELD];
    struct thread readers[READERS];
    pthread_rwlockattr_t attributes;
    OK(pthread_rwlockattr_init(&attributes));
    OK(pthread_rwlockattr_setkind_np(&attributes, kind));
    OK(pthread_rwlock_init(&lock, &attributes));
    atomic_store(&stop, 0);
    for (int i = 0; i < READERS; i++) {
        for (int j = 0; j < HELD; j++)
            OK(pthread_rwlock_init(&others[i][j], NULL));
        start(&readers[i], reads, others[i]);
    }
    sleep_ms(20);
    for (int i = 0; i < WRITES; i++) {
        struct timespec limit = in_ms(CLOCK_REALTIME, MOST_S * 1000);
        OK(pthread_rwlock_timedwrlock(&lock, &limit));
        OK(pthread_rwlock_unlock(&lock));
        sleep_ms(3);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < READERS; i++)
        join_soon(&readers[i], "a reader");
}

int main(void)
{
    writer_goes_on(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    if (on_spinpark())
        writer_goes_on(PTHREAD_RWLOCK_PREFER_READER_NP);
    return 0;
}
