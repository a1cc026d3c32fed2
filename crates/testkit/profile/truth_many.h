/* Scenes of many locks, many threads and many holds. */
#pragma once
#include "truth_locks.h"

enum { LOCKS = 1000, THREADS = 256, SHORT = 10000, EACH = 50 };

static void scene_many_locks(void)
{
    static pthread_mutex_t locks[LOCKS];
    static struct truth truths[LOCKS];
    for (int i = 0; i < LOCKS; i++)
        OK(pthread_mutex_init(&locks[i], NULL));
    for (int round = 0; round < 7; round++) {
        for (int i = 0; i < LOCKS; i++) {
            if (i % 7 < round)
                continue;
            OK(pthread_mutex_lock(&locks[i]));
            truths[i].acquisitions++;
            OK(pthread_mutex_unlock(&locks[i]));
        }
    }
    for (int i = 0; i < LOCKS; i++)
        truth_print(&truths[i], "write", &locks[i]);
}

static pthread_barrier_t all_began;

static void *locks_often(void *argument)
{
    struct truth *truth = argument;
    /* Its first call of the recorder, which is not waiting. */
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&own));
    OK(pthread_mutex_unlock(&own));
    pthread_barrier_wait(&all_began);
    for (int i = 0; i < EACH; i++) {
        int64_t begin = call_begins();
        OK(pthread_mutex_lock(&mutex));
        truth_hold_begins(truth, call_ends(&truth->unsure));
        truth->waited += truth->started - begin;
        for (int64_t end = clock_now() + 20000; clock_now() < end;)
            ;
        truth_hold_ends(truth, call_begins());
        OK(pthread_mutex_unlock(&mutex));
        call_ends(&truth->unsure);
        truth->acquisitions++;
    }
    return NULL;
}

static void scene_many_threads(void)
{
    static pthread_t threads[THREADS];
    static struct truth truths[THREADS];
    OK(pthread_barrier_init(&all_began, NULL, THREADS));
    for (int i = 0; i < THREADS; i++)
        threads[i] = begin_thread(locks_often, &truths[i]);
    for (int i = 0; i < THREADS; i++) {
        OK(pthread_join(threads[i], NULL));
        writing.acquisitions += truths[i].acquisitions;
        writing.waited += truths[i].waited;
        writing.held += truths[i].held;
        writing.holds += truths[i].holds;
        writing.unsure += truths[i].unsure;
    }
    writing.contended = -1; /* not known */
    truth_print(&writing, "write", &mutex);
}

/* Threads that do nothing but lock: more than can be recorded. */
enum { OFTEN_THREADS = 4, OFTEN = 1000000 };

static void *locks_all_the_time(void *argument)
{
    about_to_block();
    for (int i = 0; i < OFTEN; i++) {
        OK(pthread_mutex_lock(&mutex));
        writing.acquisitions++;
        OK(pthread_mutex_unlock(&mutex));
    }
    return argument;
}

static void scene_often(void)
{
    pthread_t threads[OFTEN_THREADS];
    /* They wait once: what was never waited for is not looked at. */
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < OFTEN_THREADS; i++) {
        threads[i] = begin_thread(locks_all_the_time, NULL);
        await_blocked();
    }
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < OFTEN_THREADS; i++)
        OK(pthread_join(threads[i], NULL));
    writing.contended = -1;
    truth_print(&writing, "write", &mutex);
}

/* One puts something into a queue, and one takes it out. */
static int queued;

static void *takes_out(void *argument)
{
    for (int i = 0; i < OFTEN / 4; i++) {
        OK(pthread_mutex_lock(&mutex));
        writing.acquisitions++;
        while (queued == 0) {
            OK(pthread_cond_wait(&cond, &mutex));
            writing.acquisitions++;
        }
        queued--;
        OK(pthread_mutex_unlock(&mutex));
    }
    return argument;
}

static void scene_queue(void)
{
    pthread_t thread = begin_thread(takes_out, NULL);
    for (int i = 0; i < OFTEN / 4; i++) {
        OK(pthread_mutex_lock(&mutex));
        writing.acquisitions++;
        queued++;
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_cond_signal(&cond));
    }
    OK(pthread_join(thread, NULL));
    writing.contended = -1;
    truth_print(&writing, "write", &mutex);
}

static void *locks_once(void *argument)
{
    (void)argument;
    OK(pthread_mutex_lock(&mutex));
    writing.acquisitions++;
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void scene_short_threads(void)
{
    pthread_t threads[20];
    for (int i = 0; i < SHORT / 20; i++) {
        for (int j = 0; j < 20; j++)
            threads[j] = begin_thread(locks_once, NULL);
        for (int j = 0; j < 20; j++)
            OK(pthread_join(threads[j], NULL));
    }
    writing.contended = -1;
    truth_print(&writing, "write", &mutex);
}

/* Holds of two lengths, which only samples know. A thread that is preempted while it holds the lock, holds it for long. */
static void scene_samples(void)
{
    uint32_t seed = 1;
    long is_long = 0;
    for (int i = 0; i < 200000; i++) {
        OK(pthread_mutex_lock(&mutex));
        truth_hold_begins(&writing, clock_now());
        writing.acquisitions++;
        for (int64_t end = writing.started + (random_next(&seed) % 10 < 3 ? 12000 : 3000); clock_now() < end;)
            ;
        int64_t before = writing.held;
        truth_hold_ends(&writing, clock_now());
        is_long += writing.held - before >= 8192;
        OK(pthread_mutex_unlock(&mutex));
    }
    truth_print(&writing, "write", &mutex);
    printf("long %ld\n", is_long);
}
