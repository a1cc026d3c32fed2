/* A program with a `dlsym` of another library in front of glibc's (dlsym_wrapper.c): it starts, its locks work across a fork
 * and a condition variable, and what `dlsym` finds is usable. */
#include "check.h"
#include <dlfcn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void *answer(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    while (turn != 1)
        OK(pthread_cond_wait(&changed, &mutex));
    turn = 2;
    OK(pthread_cond_signal(&changed));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

int main(void)
{
    CHECK(dlsym(RTLD_DEFAULT, "wrapped_calls")); /* the library is there */
    int (*lock)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
    CHECK(lock);
    pthread_t thread;
    OK(pthread_create(&thread, NULL, answer, NULL));
    OK(lock(&mutex));
    turn = 1;
    OK(pthread_cond_signal(&changed));
    while (turn != 2)
        OK(pthread_cond_wait(&changed, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_join(thread, NULL));
    pid_t child = fork();
    if (child == 0) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
