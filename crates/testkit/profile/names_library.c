/* A library: what it exports calls a helper that locks. The test strips it. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;
static long shelf;

__attribute__((noinline)) static void helper(void)
{
    pthread_mutex_lock(&shelf_lock);
    shelf++;
    usleep(2000);
    pthread_mutex_unlock(&shelf_lock);
}

void shelf_put(void)
{
    helper();
    __asm__ volatile("" ::: "memory");
}
