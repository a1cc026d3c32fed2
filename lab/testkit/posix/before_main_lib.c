/* The shared library of before_main.c: uses locks in its constructor and destructor, and lends them to the program. */
#include "check.h"

pthread_mutex_t library_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t library_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_rwlock_t library_rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t library_cond = PTHREAD_COND_INITIALIZER;
int library_uses;

static void *sets(void *arg)
{
    OK(pthread_mutex_lock(&library_mutex));
    *(bool *)arg = true;
    OK(pthread_cond_signal(&library_cond));
    OK(pthread_mutex_unlock(&library_mutex));
    return NULL;
}

void library_use(void)
{
    OK(pthread_mutex_lock(&library_mutex));
    CALL(pthread_mutex_trylock(&library_mutex), EBUSY);
    library_uses++;
    OK(pthread_mutex_unlock(&library_mutex));
    OK(pthread_mutex_lock(&library_recursive));
    OK(pthread_mutex_lock(&library_recursive));
    OK(pthread_mutex_unlock(&library_recursive));
    OK(pthread_mutex_unlock(&library_recursive));
    OK(pthread_rwlock_rdlock(&library_rwlock));
    OK(pthread_rwlock_unlock(&library_rwlock));
    OK(pthread_rwlock_wrlock(&library_rwlock));
    CALL(pthread_rwlock_rdlock(&library_rwlock), EDEADLK);
    OK(pthread_rwlock_unlock(&library_rwlock));

    struct thread thread;
    bool set = false;
    OK(pthread_mutex_lock(&library_mutex));
    start(&thread, sets, &set);
    while (!set)
        OK(pthread_cond_wait(&library_cond, &library_mutex));
    struct timespec soon = in_ms(CLOCK_REALTIME, 1);
    CALL_EITHER(pthread_cond_timedwait(&library_cond, &library_mutex, &soon), ETIMEDOUT, 0);
    OK(pthread_mutex_unlock(&library_mutex));
    join(&thread);
}

__attribute__((constructor(101))) static void first(void)
{
    library_use();
    OK(pthread_mutex_lock(&library_recursive)); /* stays locked until main */
}

__attribute__((destructor)) static void last(void)
{
    library_use();
    if (library_uses != 7)
        FAIL("the library was used %d times", library_uses);
}
