/* Locks are no cancellation points: neither a pending cancellation nor one that arrives while a thread waits for a
 * lock is acted upon by any lock or unlock call. pthread_exit runs clean-up handlers that unlock. */
#include "check.h"
#include <threads.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static mtx_t mtx;
static atomic_int step, cleaned;

static void *passes_everything(void *arg)
{
    (void)arg;
    atomic_store(&step, 1);
    await_flag(&step, 2); /* usleep in there is a cancellation point, so: */
    FAIL("not cancelled");
}

static void lock_everything(void)
{
    struct timespec real = in_ms(CLOCK_REALTIME, LONG_MS), mono = in_ms(CLOCK_MONOTONIC, LONG_MS);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_timedlock(&mutex, &real));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &mono));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_trylock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_timedrdlock(&rwlock, &real));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_timedwrlock(&rwlock, &real));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &mono));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &mono));
    OK(pthread_rwlock_unlock(&rwlock));
    CALL(mtx_lock(&mtx), thrd_success);
    CALL(mtx_unlock(&mtx), thrd_success);
    OK(pthread_cond_signal(&cond));
    OK(pthread_cond_broadcast(&cond));
}

static void *with_a_pending_cancellation(void *arg)
{
    (void)arg;
    CHECK(pthread_cancel(pthread_self()) == 0);
    lock_everything();
    atomic_fetch_add(&cleaned, 1);
    pthread_testcancel();
    FAIL("the cancellation was forgotten");
}

/* Waits in each lock, one after the other; the main thread cancels it during the first wait. */
static void *waits(void *arg)
{
    int way = *(int *)arg;
    struct timespec real = in_ms(CLOCK_REALTIME, LONG_MS);
    atomic_store(&step, 1);
    switch (way) {
    case 0: OK(pthread_mutex_lock(&mutex)); break;
    case 1: OK(pthread_mutex_timedlock(&mutex, &real)); break;
    case 2: OK(pthread_rwlock_rdlock(&rwlock)); break;
    case 3: OK(pthread_rwlock_wrlock(&rwlock)); break;
    case 4: OK(pthread_rwlock_timedwrlock(&rwlock, &real)); break;
    default: CALL(mtx_lock(&mtx), thrd_success); break;
    }
    atomic_fetch_add(&cleaned, 1);
    if (way < 2)
        OK(pthread_mutex_unlock(&mutex));
    else if (way < 5)
        OK(pthread_rwlock_unlock(&rwlock));
    else
        CALL(mtx_unlock(&mtx), thrd_success);
    lock_everything();
    pthread_testcancel();
    FAIL("the cancellation was forgotten");
}

static void unlock_handler(void *arg)
{
    CALL(pthread_mutex_lock(arg), EDEADLK);
    OK(pthread_mutex_unlock(arg));
    atomic_fetch_add(&cleaned, 1);
}

static void *exits(void *arg)
{
    OK(pthread_mutex_lock(&errorcheck));
    pthread_cleanup_push(unlock_handler, &errorcheck);
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void)
{
    struct thread thread;
    CHECK(mtx_init(&mtx, mtx_plain) == thrd_success);

    start(&thread, passes_everything, NULL);
    CHECK(pthread_cancel(thread.handle) == 0);
    CHECK(join_soon(&thread, "a sleeping thread") == PTHREAD_CANCELED);

    atomic_store(&cleaned, 0);
    start(&thread, with_a_pending_cancellation, NULL);
    CHECK(join_soon(&thread, "a thread with a pending cancellation") == PTHREAD_CANCELED);
    CHECK(atomic_load(&cleaned) == 1);

    for (int way = 0; way < 6; way++) {
        atomic_store(&cleaned, 0);
        atomic_store(&step, 0);
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_rwlock_wrlock(&rwlock));
        CALL(mtx_lock(&mtx), thrd_success);
        start(&thread, waits, &way);
        await_flag(&step, 1);
        await_sleep(&thread);
        CHECK(pthread_cancel(thread.handle) == 0);
        sleep_ms(5);
        CHECK(atomic_load(&cleaned) == 0);
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_rwlock_unlock(&rwlock));
        CALL(mtx_unlock(&mtx), thrd_success);
        CHECK(join_soon(&thread, "a thread that was cancelled while it waited for a lock") == PTHREAD_CANCELED);
        CHECK(atomic_load(&cleaned) == 1);
        OK(pthread_mutex_trylock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_rwlock_trywrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        CALL(mtx_trylock(&mtx), thrd_success);
        CALL(mtx_unlock(&mtx), thrd_success);
    }

    atomic_store(&cleaned, 0);
    start(&thread, exits, &thread);
    CHECK(join_soon(&thread, "a thread that exits") == &thread);
    CHECK(atomic_load(&cleaned) == 1);
    OK(other_trylock(&errorcheck));
    return 0;
}
