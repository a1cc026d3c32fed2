/* A thread with the smallest legal stack can wait on everything, be cancelled there, and take signals meanwhile. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int waiting, passed;
static bool go;

static void unlock(void *arg) { pthread_mutex_unlock(arg); }
static void nothing(int signal) { (void)signal; }

static void *body(void *cancelled)
{
    atomic_fetch_add(&waiting, 1);
    struct timespec late = {LONG_MAX, 0};
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_timedlock(&mutex, &late));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_timedwrlock(&rwlock, &late));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_mutex_lock(&gate));
    atomic_fetch_add(&passed, 1);
    pthread_cleanup_push(unlock, &gate);
    while (!go || cancelled)
        OK(pthread_cond_wait(&cond, &gate));
    pthread_cleanup_pop(1);
    return NULL;
}

int main(void)
{
    signal(SIGUSR1, nothing);
    pthread_attr_t attr;
    CHECK(pthread_attr_init(&attr) == 0);
    /* A little more than the minimum: the cancellation itself, glibc's unwinder, needs some 10 KB. */
    size_t size = PTHREAD_STACK_MIN;
    for (int round = 0; round < 2; round++, size += 16384) {
        CHECK(pthread_attr_setstacksize(&attr, size) == 0);
        pthread_t threads[4];
        atomic_store(&waiting, 0);
        atomic_store(&passed, 0);
        go = false;
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_rwlock_wrlock(&rwlock));
        for (int i = 0; i < 4; i++)
            CHECK(pthread_create(&threads[i], &attr, body, round && i == 0 ? &mutex : NULL) == 0);
        await_flag(&waiting, 4);
        sleep_ms(2);
        for (int i = 0; i < 4 * round; i++)
            CHECK(pthread_kill(threads[i], SIGUSR1) == 0);
        OK(pthread_mutex_unlock(&mutex));
        sleep_ms(2);
        OK(pthread_rwlock_unlock(&rwlock));
        await_flag(&passed, 4);
        if (round)
            CHECK(pthread_cancel(threads[0]) == 0);
        OK(pthread_mutex_lock(&gate));
        go = true;
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&gate));
        for (int i = 0; i < 4; i++) {
            void *result;
            CHECK(pthread_join(threads[i], &result) == 0);
            CHECK(result == (round && i == 0 ? PTHREAD_CANCELED : NULL));
        }
    }
    return 0;
}
