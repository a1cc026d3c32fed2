/* The locks of the scenes, and what is known of their use. */
#pragma once
#include "truth.h"

enum { ROUNDS = 20 };
static const int64_t HOLD = 10 * 1000 * 1000;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct truth writing, reading, outside, signalled, back;

static pthread_t begin_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, run, argument));
    return thread;
}
