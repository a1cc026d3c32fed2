/* Locks and the end of threads:
 *  - destructors of thread-specific data may lock and wait;
 *  - a thread that ends with a normal mutex or a read-write lock held leaves it held: others time out on it (and do
 *    not spin for an owner that is gone), and wait until another thread releases it;
 *  - the main thread may end by pthread_exit while others go on. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, left_held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t left_read = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static int destroyed;
static pthread_t main_thread;

static void destructor(void *value)
{
    OK(pthread_mutex_lock(value));
    destroyed++;
    struct timespec soon = in_us(CLOCK_REALTIME, 100);
    CALL_EITHER(pthread_cond_timedwait(&cond, value, &soon), ETIMEDOUT, 0);
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(value));
}

static void *has_destructor(void *arg)
{
    CHECK(pthread_setspecific(key, arg) == 0);
    return NULL;
}

static void *leaves_locks_held(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&left_held));
    OK(pthread_rwlock_rdlock(&left_read));
    return NULL;
}

static void *waits_for_left_lock(void *arg)
{
    OK(pthread_mutex_lock(&left_held));
    OK(pthread_mutex_unlock(&left_held));
    OK(pthread_rwlock_wrlock(&left_read));
    OK(pthread_rwlock_unlock(&left_read));
    return arg;
}

static void *outlives_main(void *arg)
{
    (void)arg;
    CHECK(pthread_join(main_thread, NULL) == 0);
    struct thread threads[4];
    for (int i = 0; i < 4; i++)
        start(&threads[i], has_destructor, &mutex);
    for (int i = 0; i < 4; i++)
        join_soon(&threads[i], "a thread after the end of main");
    CHECK(destroyed == 12);
    exit(0);
}

int main(void)
{
    struct thread threads[8], survivor;
    CHECK(pthread_key_create(&key, destructor) == 0);
    for (int i = 0; i < 8; i++)
        start(&threads[i], has_destructor, &mutex);
    for (int i = 0; i < 8; i++)
        join_soon(&threads[i], "a thread with a destructor");
    CHECK(destroyed == 8);

    for (int round = 0; round < 5; round++) {
        start(&threads[0], leaves_locks_held, NULL);
        join_soon(&threads[0], "a thread that leaves locks held");
        CALL(pthread_mutex_trylock(&left_held), EBUSY);
        CALL(pthread_rwlock_trywrlock(&left_read), EBUSY);
        struct timespec soon = in_ms(CLOCK_MONOTONIC, 10);
        CALL(pthread_mutex_clocklock(&left_held, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
        CALL(pthread_rwlock_clockwrlock(&left_read, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
        for (int i = 0; i < 3; i++) {
            start(&threads[i], waits_for_left_lock, &mutex);
            await_sleep(&threads[i]);
        }
        OK(pthread_mutex_unlock(&left_held));
        OK(pthread_rwlock_unlock(&left_read));
        for (int i = 0; i < 3; i++)
            CHECK(join_soon(&threads[i], "a waiter for a lock whose holder is gone") == &mutex);
    }

    main_thread = pthread_self();
    start(&survivor, outlives_main, NULL);
    pthread_exit(NULL);
}
