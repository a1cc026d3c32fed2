/* Ten thousand short-lived threads: nothing that belongs to a thread outlives it or runs out. Each thread takes a
 * mutex, a read-write lock both ways, and waits on a condition variable; some are detached, some are cancelled. */
#include "check.h"

enum { THREADS = 10000, WAVE = 100 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static long counter, read_sum;
static int arrived, open_gate;
static atomic_int detached_done;

static void unlock(void *arg) { pthread_mutex_unlock(arg); }

static void *short_life(void *arg)
{
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_lock(&recursive));
    counter++;
    OK(pthread_mutex_unlock(&recursive));
    OK(pthread_mutex_unlock(&recursive));
    OK(pthread_rwlock_wrlock(&rwlock));
    read_sum++;
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_rdlock(&rwlock));
    CHECK(read_sum > 0);
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_mutex_lock(&mutex));
    arrived++;
    pthread_cleanup_push(unlock, &mutex);
    if (arg)
        for (;;)
            pthread_cond_wait(&never, &mutex);
    while (!open_gate)
        OK(pthread_cond_wait(&cond, &mutex));
    pthread_cleanup_pop(1);
    return NULL;
}

static void *detached(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    counter++;
    OK(pthread_mutex_unlock(&mutex));
    atomic_fetch_add(&detached_done, 1);
    return NULL;
}

int main(void)
{
    pthread_attr_t small, loose;
    size_t size = sysconf(_SC_THREAD_STACK_MIN);
    if (size < 64 * 1024)
        size = 64 * 1024;
    CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, size) == 0);
    CHECK(pthread_attr_init(&loose) == 0 && pthread_attr_setstacksize(&loose, size) == 0);
    CHECK(pthread_attr_setdetachstate(&loose, PTHREAD_CREATE_DETACHED) == 0);
    for (int wave = 0; wave < THREADS / WAVE; wave++) {
        pthread_t threads[WAVE], unused;
        open_gate = arrived = 0;
        for (int i = 0; i < WAVE; i++)
            CHECK(pthread_create(&threads[i], &small, short_life, i % 10 ? NULL : &mutex) == 0);
        for (int now = 0; now < WAVE; sched_yield()) {
            OK(pthread_mutex_lock(&mutex));
            now = arrived;
            OK(pthread_mutex_unlock(&mutex));
        }
        for (int i = 0; i < WAVE; i += 10)
            CHECK(pthread_cancel(threads[i]) == 0);
        OK(pthread_mutex_lock(&mutex));
        open_gate = 1;
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&mutex));
        for (int i = 0; i < WAVE; i++) {
            void *result;
            CHECK(pthread_join(threads[i], &result) == 0);
            CHECK(result == (i % 10 ? NULL : PTHREAD_CANCELED));
        }
        CHECK(counter == read_sum + atomic_load(&detached_done));
        CHECK(pthread_create(&unused, &loose, detached, NULL) == 0);
        await_flag(&detached_done, wave + 1);
    }
    CHECK(read_sum == THREADS);
    return 0;
}
