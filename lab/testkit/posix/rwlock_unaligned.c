/* Locks at addresses that are multiples of 4 only, as in a packed structure: readers and a writer of a read-mostly lock get
 * on, and exclude each other; so do users of a mutex and a condition variable there. */
#include "check.h"

enum { READERS = 3, READS = 60000, WRITES = 60 };
static _Alignas(64) char memory[512];
static pthread_rwlock_t *rwlock;
static pthread_mutex_t *mutex;
static pthread_cond_t *cond;
static volatile long a, b;
static atomic_int left;

static void *reads(void *arg)
{
    for (int i = 0; i < READS; i++) {
        OK(pthread_rwlock_rdlock(rwlock));
        CHECK(a == b);
        OK(pthread_rwlock_unlock(rwlock));
    }
    OK(pthread_mutex_lock(mutex));
    atomic_fetch_sub(&left, 1);
    OK(pthread_cond_signal(cond));
    OK(pthread_mutex_unlock(mutex));
    return arg;
}

static void *writes(void *arg)
{
    for (int i = 0; i < WRITES; i++) {
        OK(pthread_rwlock_wrlock(rwlock));
        a++;
        sched_yield();
        b++;
        OK(pthread_rwlock_unlock(rwlock));
        sleep_us(300);
    }
    return arg;
}

static void *writes_once(void *arg)
{
    OK(pthread_rwlock_wrlock(rwlock));
    OK(pthread_rwlock_unlock(rwlock));
    return arg;
}

/* A writer comes to a read-mostly lock while a reader is inside, and waits for it. */
static void one_by_one(void)
{
    struct thread writer;
    for (int i = 0; i < 20000; i++) {
        OK(pthread_rwlock_rdlock(rwlock));
        OK(pthread_rwlock_unlock(rwlock));
    }
    OK(pthread_rwlock_rdlock(rwlock));
    start(&writer, writes_once, NULL);
    await_sleep(&writer);
    OK(pthread_rwlock_unlock(rwlock));
    join_soon(&writer, "the writer after the reader");
}

static void at(size_t offset)
{
    rwlock = (void *)(memory + offset), mutex = (void *)(memory + 128 + offset), cond = (void *)(memory + 256 + offset);
    OK(pthread_rwlock_init(rwlock, NULL));
    OK(pthread_mutex_init(mutex, NULL));
    OK(pthread_cond_init(cond, NULL));
    one_by_one();
    struct thread reader[READERS], writer;
    atomic_store(&left, READERS);
    for (int i = 0; i < READERS; i++)
        start(&reader[i], reads, NULL);
    start(&writer, writes, NULL);
    OK(pthread_mutex_lock(mutex));
    while (atomic_load(&left) > 0)
        OK(pthread_cond_wait(cond, mutex));
    OK(pthread_mutex_unlock(mutex));
    join_soon(&writer, "the writer of a lock at such an address");
    for (int i = 0; i < READERS; i++)
        join(&reader[i]);
    CHECK(a == b);
    CALL(pthread_rwlock_trywrlock(rwlock), 0);
    OK(pthread_rwlock_unlock(rwlock));
    OK(pthread_rwlock_destroy(rwlock));
}

int main(void)
{
    for (int i = 0; i < 3; i++) {
        at(4);
        at(12);
        at(0);
    }
    return 0;
}
