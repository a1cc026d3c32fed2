/* A process-shared condition variable, used with a process-shared mutex first (glibc's: it leaves numbers in the object) and
 * then, when no thread waits, with a private one. */
#include "check.h"

static pthread_mutex_t shared_mutex, private_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond;
static int turn;

static void *answers(void *argument)
{
    pthread_mutex_t *mutex = argument;
    OK(pthread_mutex_lock(mutex));
    for (int i = 0; i < 100; i++) {
        while (turn != 1)
            OK(pthread_cond_wait(&cond, mutex));
        turn = 0;
        OK(pthread_cond_broadcast(&cond));
    }
    OK(pthread_mutex_unlock(mutex));
    return NULL;
}

static void play(pthread_mutex_t *mutex)
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, answers, mutex));
    OK(pthread_mutex_lock(mutex));
    for (int i = 0; i < 100; i++) {
        turn = 1;
        OK(pthread_cond_signal(&cond));
        while (turn != 0)
            OK(pthread_cond_wait(&cond, mutex));
    }
    OK(pthread_mutex_unlock(mutex));
    OK(pthread_join(thread, NULL));
}

int main(void)
{
    pthread_mutexattr_t mutexes;
    OK(pthread_mutexattr_init(&mutexes));
    OK(pthread_mutexattr_setpshared(&mutexes, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutex_init(&shared_mutex, &mutexes));
    pthread_condattr_t conds;
    OK(pthread_condattr_init(&conds));
    OK(pthread_condattr_setpshared(&conds, PTHREAD_PROCESS_SHARED));
    OK(pthread_cond_init(&cond, &conds));
    play(&shared_mutex);
    play(&private_mutex);
    OK(pthread_cond_destroy(&cond));
    return 0;
}
