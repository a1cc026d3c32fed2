/* The plug-in of dlopen.c. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int turn;
static int constructed;

static void *player(void *arg)
{
    int me = arg != NULL;
    for (int i = 0; i < 20; i++) {
        OK(pthread_mutex_lock(&mutex));
        while (turn != me)
            OK(pthread_cond_wait(&cond, &mutex));
        turn = !me;
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&mutex));
        OK(me ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
    }
    return NULL;
}

static void play(void)
{
    struct thread threads[2];
    start(&threads[0], player, NULL);
    start(&threads[1], player, &mutex);
    join_soon(&threads[0], "a player of the plug-in");
    join_soon(&threads[1], "the other player of the plug-in");
}

__attribute__((constructor)) static void load(void)
{
    play();
    constructed = 1;
}
__attribute__((destructor)) static void unload(void) { play(); }

int plugin_run(pthread_mutex_t *of_the_program)
{
    CALL(pthread_mutex_trylock(of_the_program), EBUSY);
    play();
    OK(pthread_mutex_unlock(of_the_program));
    return constructed;
}
