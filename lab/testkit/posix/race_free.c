/* A program without data races: a race detector that sees its locks has nothing to say. Each thread's last step is a
 * signal, so that the waiter sees what it wrote by the condition variable and its mutex alone. */
#include "check.h"

enum { THREADS = 3, ROUNDS = 500 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int by_mutex, by_rwlock, done;

static void *work(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_mutex_lock(&mutex));
        by_mutex++;
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_rwlock_wrlock(&rwlock));
        by_rwlock++;
        OK(pthread_rwlock_unlock(&rwlock));
    }
    OK(pthread_mutex_lock(&mutex));
    done++;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        OK(pthread_create(&threads[i], NULL, work, NULL));
    OK(pthread_mutex_lock(&mutex));
    while (done < THREADS)
        OK(pthread_cond_wait(&cond, &mutex));
    CHECK(by_mutex == THREADS * ROUNDS);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_rdlock(&rwlock));
    CHECK(by_rwlock == THREADS * ROUNDS);
    OK(pthread_rwlock_unlock(&rwlock));
    for (int i = 0; i < THREADS; i++)
        OK(pthread_join(threads[i], NULL));
    return 0;
}
