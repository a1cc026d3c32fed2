/* A plugin: one function that waits for its own lock, -DUPDATE and -DLOCK. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t LOCK = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void UPDATE(void)
{
    pthread_mutex_lock(&LOCK);
    usleep(2000);
    pthread_mutex_unlock(&LOCK);
}

void *plugin_run(void *argument)
{
    for (int round = 0; round < 30; round++)
        UPDATE();
    return argument;
}
