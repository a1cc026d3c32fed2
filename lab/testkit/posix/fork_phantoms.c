/* What glibc does not promise: threads that waited for a read-write lock or on a condition variable at the moment
 * of a fork do not exist in the child, and nothing there may be given to them or wait for them.
 *  - The child releases the read lock that the forking thread held while a writer waited: readers and writers of the
 *    child get in. (In glibc the lock is handed to the writer that is not there.)
 *  - The child broadcasts on a condition variable that had waiters: its own waiters wake. (In glibc the broadcast
 *    waits for the absent ones to confirm.)
 *  - A reader of the child that tries gets in, although a writer that is not there has starved.
 * Run on the drop-in's own locks only. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int waiting, ready;

static void *cond_waiter(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    while (!ready)
        OK(pthread_cond_wait(&cond, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void until_waiting(int count)
{
    for (int now = -1; now != count; sched_yield()) {
        OK(pthread_mutex_lock(&mutex));
        now = waiting;
        OK(pthread_mutex_unlock(&mutex));
    }
}

static void *rw_writer(void *arg)
{
    (void)arg;
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    return NULL;
}

static void *rw_user(void *arg)
{
    (void)arg;
    for (int i = 0; i < 500; i++) {
        OK(i % 3 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
    }
    return NULL;
}

static void wake_waiters(struct thread *threads, int count)
{
    OK(pthread_mutex_lock(&mutex));
    ready = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < count; i++)
        join_soon(&threads[i], "a waiter");
}

static void round_of(int waiters, bool hold_mutex)
{
    struct thread threads[4], writers[2], own[4];
    waiting = ready = 0;
    OK(pthread_rwlock_rdlock(&rwlock));
    for (int i = 0; i < waiters; i++)
        start(&threads[i], cond_waiter, NULL);
    until_waiting(waiters);
    for (int i = 0; i < waiters; i++)
        await_sleep(&threads[i]);
    for (int i = 0; i < 2; i++) {
        start(&writers[i], rw_writer, NULL);
        await_sleep(&writers[i]);
    }
    if (hold_mutex) {
        OK(pthread_mutex_lock(&mutex));
        /* Perhaps moved to the mutex' queue: the mutex is handed to a thread that is not there. */
        OK(pthread_cond_signal(&cond));
    }
    pid_t child = fork_checked();
    if (child == 0) {
        check_context = "condition variable in the child";
        waiting = 0;
        if (hold_mutex)
            OK(pthread_mutex_unlock(&mutex));
        for (int i = 0; i < 4; i++)
            start(&own[i], cond_waiter, NULL);
        until_waiting(4);
        for (int i = 0; i < 4; i++)
            await_sleep(&own[i]);
        OK(pthread_cond_signal(&cond));
        wake_waiters(own, 4);

        check_context = "read-write lock in the child";
        OK(pthread_rwlock_unlock(&rwlock));
        for (int i = 0; i < 4; i++)
            start(&own[i], rw_user, NULL);
        for (int i = 0; i < 4; i++)
            join_soon(&own[i], "a user of the read-write lock");
        OK(pthread_rwlock_destroy(&rwlock));
        OK(pthread_cond_destroy(&cond));
        _exit(0);
    }
    expect_exit(child);
    if (hold_mutex)
        OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_unlock(&rwlock));
    for (int i = 0; i < 2; i++)
        join_soon(&writers[i], "a writer across the fork");
    wake_waiters(threads, waiters);
}

static atomic_int tried;

static void *try_to_read(void *arg)
{
    (void)arg;
    int error = pthread_rwlock_tryrdlock(&rwlock);
    if (error == 0)
        OK(pthread_rwlock_unlock(&rwlock));
    atomic_store(&tried, error);
    return NULL;
}

/* The result of a try to read, in another thread. */
static int error_of_try(void)
{
    struct thread reader;
    start(&reader, try_to_read, NULL);
    join_soon(&reader, "a reader that tries");
    return atomic_load(&tried);
}

/* A writer that has starved keeps new readers out, also those that only try, for a part of the time (its hand-off
 * request backs off). It does not exist in the child. */
static void with_a_starved_writer(void)
{
    struct thread writer;
    check_context = "tryrdlock beside a starved writer";
    OK(pthread_rwlock_rdlock(&rwlock));
    start(&writer, rw_writer, NULL);
    await_sleep(&writer);
    OK(pthread_rwlock_rdlock(&rwlock)); /* again */
    OK(pthread_rwlock_unlock(&rwlock)); /* the writer is woken, loses, and starves */
    int refused = 0;
    /* If the reader that tries is refused before the fork and behind it, the request most likely stood at the fork.
     * */
    for (int i = 0; i < 20 && !refused; i++) {
        for (int tries = 0; error_of_try() != EBUSY; tries++) {
            CHECK(tries < 10000);
            sleep_ms(1);
        }
        pid_t child = fork_checked();
        if (child == 0) {
            CHECK(error_of_try() == 0);
            _exit(0);
        }
        refused = error_of_try() == EBUSY;
        expect_exit(child);
    }
    OK(pthread_rwlock_unlock(&rwlock));
    join_soon(&writer, "a writer across the fork");
}

int main(void)
{
    for (int i = 0; i < 20; i++)
        round_of(1 + i % 4, i & 4);
    with_a_starved_writer();
    return 0;
}
