/* A lock's holder is told from equal frames, or no more. */
#include "safe.h"

enum { ROUNDS = 40 };

NOINLINE static void take(void)
{
    OK(pthread_mutex_lock(&mutex));
    NOT_LAST();
}

NOINLINE static void quick(void)
{
    take();
    OK(pthread_mutex_unlock(&mutex));
    NOT_LAST();
}

NOINLINE static void slow(void)
{
    take();
    atomic_store(&is_held, 1);
    await_blocked();
    OK(pthread_mutex_unlock(&mutex));
    NOT_LAST();
}

static void *serves(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(2 * round);
        for (int i = 0; i < 7; i++)
            quick();
        slow();
        next_turn();
    }
    return NULL;
}

/* A function of the program's own locks: its callers have equal frames. All wait for `slow`. */
static void scene_wrapper(void)
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, serves, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        while (!atomic_load(&is_held))
            sched_yield();
        wait_for_mutex();
        await_turn(2 * round + 1);
        atomic_store(&is_held, 0);
        next_turn();
    }
    OK(pthread_join(thread, NULL));
    say(9 * ROUNDS);
    printf("%ld %ld\n", (long)(uintptr_t)quick, (long)(uintptr_t)slow);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE static void stale(void)
{
    OK(pthread_rwlock_rdlock(&rwlock));
    NOT_LAST();
}

/* Reads, after a wait, and leaves it to another thread to say that it has read. */
static void *reads(void *argument)
{
    (void)argument;
    about_to_block();
    stale();
    next_turn();
    await_turn(-1);
    return NULL;
}

static void *writes(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_rwlock_wrlock(&rwlock));
        atomic_store(&is_held, 1);
        await_blocked();
        sleep_ns(1000 * 1000); /* after a long wait it is looked whether the one that is noted has it */
        OK(pthread_rwlock_unlock(&rwlock));
        while (atomic_load(&is_held))
            sched_yield();
    }
    return NULL;
}

static void scene_stale_reader(void)
{
    pthread_t reader, writer;
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_create(&reader, NULL, reads, NULL));
    await_blocked();
    OK(pthread_rwlock_unlock(&rwlock));
    await_turn(1);
    OK(pthread_rwlock_unlock(&rwlock)); /* the reader's */
    OK(pthread_create(&writer, NULL, writes, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        while (!atomic_load(&is_held))
            sched_yield();
        about_to_block();
        OK(pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        atomic_store(&is_held, 0);
    }
    OK(pthread_join(writer, NULL));
    atomic_store(&turn, -1);
    OK(pthread_join(reader, NULL));
    say(0);
    printf("%ld\n", (long)(uintptr_t)stale);
}

MAIN({"wrapper", scene_wrapper}, {"stale-reader", scene_stale_reader})
