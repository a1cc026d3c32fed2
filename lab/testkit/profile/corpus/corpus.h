/* What the programs of the corpus share: rounds in which it is certain which thread holds a lock and which waits for it.
 *
 * Each program has one known bottleneck. Its functions have the names that a report has to give. Times are sleeps, so that
 * they are the same on a loaded machine.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
/* Keeps the call before it from being a tail call, which would leave no trace of the caller. */
#define NOT_LAST() __asm__ volatile("" ::: "memory")
#define CHECK(condition) do { if (!(condition)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); abort(); } } while (0)

static inline void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0)
        ;
}

static inline void await_at_least(atomic_int *number, int least)
{
    while (atomic_load(number) < least)
        sleep_ms(1);
}

static inline pthread_t start(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    return thread;
}

static inline void join(pthread_t thread)
{
    CHECK(pthread_join(thread, NULL) == 0);
}
