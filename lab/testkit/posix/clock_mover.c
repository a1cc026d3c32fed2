/* A library to preload that shows another time than the kernel's, on every clock: by CLOCK_MOVER seconds ahead or behind, or
 * standing still (CLOCK_MOVER=frozen). It reads the clock by a system call itself. */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int is_frozen;
static time_t ahead;
static struct timespec stands[2];

__attribute__((constructor)) static void start(void)
{
    const char *text = getenv("CLOCK_MOVER");
    is_frozen = text && !strcmp(text, "frozen");
    ahead = text && !is_frozen ? atol(text) : 0;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &stands[CLOCK_REALTIME]);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &stands[CLOCK_MONOTONIC]);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (is_frozen && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC)) {
        *time = stands[clock];
        return 0;
    }
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC))
        time->tv_sec += ahead;
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
