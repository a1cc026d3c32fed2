/* A library whose constructor takes its time, with the loader's lock held: see not_running.c. */
#include <time.h>

__attribute__((constructor)) static void begin(void)
{
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
}
