/* What the programs share that do what a recorder may stumble over.
 *
 *   PROGRAM SCENE
 *
 * prints the address of `mutex`, and how often the process that says so has taken it; then what the scene says besides. */
#pragma once
#include "truth.h"

/* Not every program has a use for it. */
#define SOMETIMES __attribute__((unused))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE SOMETIMES static void lock_often(pthread_mutex_t *mutex, int times)
{
    for (int i = 0; i < times; i++) {
        OK(pthread_mutex_lock(mutex));
        OK(pthread_mutex_unlock(mutex));
    }
}

static inline void say(int times)
{
    printf("%ld %d\n", (long)(uintptr_t)&mutex, times);
    fflush(stdout);
}

static atomic_int is_held;

static inline void *holds(void *argument)
{
    (void)argument;
    OK(pthread_mutex_lock(&mutex));
    atomic_store(&is_held, 1);
    await_blocked();
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

/* Takes the mutex, for which it has to wait. */
NOINLINE SOMETIMES static void wait_for_mutex(void)
{
    about_to_block();
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
}

/* Lets a thread take the mutex, runs `waits` meanwhile, which is to wait for it. */
static inline void while_held(void (*waits)(void))
{
    pthread_t thread;
    atomic_store(&is_held, 0);
    OK(pthread_create(&thread, NULL, holds, NULL));
    while (!atomic_load(&is_held))
        sched_yield();
    waits();
    OK(pthread_join(thread, NULL));
}

/* The same as a thread. */
static inline void *waits(void *argument)
{
    (void)argument;
    wait_for_mutex();
    return NULL;
}

/* A scene of a program. */
struct scene {
    const char *name;
    void (*run)(void);
};

static inline int run_scene(const struct scene *scenes, size_t number, int count, char **arguments)
{
    CHECK(count >= 2);
    for (size_t i = 0; i < number; i++) {
        if (strcmp(scenes[i].name, arguments[1]) == 0) {
            scenes[i].run();
            return 0;
        }
    }
    FAIL("no scene %s", arguments[1]);
}

/* The program with these scenes. */
#define MAIN(...)                                                                                              \
    int main(int count, char **arguments)                                                                      \
    {                                                                                                          \
        static const struct scene scenes[] = {__VA_ARGS__};                                                    \
        return run_scene(scenes, sizeof scenes / sizeof *scenes, count, arguments);                            \
    }
