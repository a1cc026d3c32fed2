/* Threads that call one function of a library (-DCALL), or one of its own, which waits for a mutex.
 * With an argument: creates that file when they have ended, and stays. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#ifdef CALL
void CALL(void);
#else
#define CALL move_money
static pthread_mutex_t account_lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void move_money(void)
{
    pthread_mutex_lock(&account_lock);
    usleep(2000);
    pthread_mutex_unlock(&account_lock);
}
#endif

__attribute__((noinline)) static void copier(void)
{
    CALL();
    __asm__ volatile("" ::: "memory");
}

static void *run(void *rounds)
{
    for (long round = 0; round < (long)rounds; round++)
        copier();
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[3];
    for (int thread = 0; thread < 3; thread++)
        pthread_create(&threads[thread], NULL, run, (void *)30);
    for (int thread = 0; thread < 3; thread++)
        pthread_join(threads[thread], NULL);
    if (count > 1) {
        FILE *file = fopen(arguments[1], "w");
        if (file)
            fclose(file);
        for (;;)
            pause();
    }
    return 0;
}
