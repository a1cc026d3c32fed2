/* Waits of known number and length, for C and C++: one thread waits, another lets it go.
 *
 * `rounds(hold, wait_for)` runs both ROUNDS times. `hold` takes what the waiter wants, if it is a lock, calls `let_come`, and lets
 * the waiter go. Before `let_come` returns the waiter sleeps, and has slept for HOLD_MS. Nothing here waits in a way that is
 * recorded. At the end it prints `waits NUMBER LEAST MOST`, in nanoseconds: for so long the waiter was seen to sleep, and its calls
 * took so long. */
#pragma once
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 10
#define HOLD_MS 20
#define OF_ITS_OWN __attribute__((noinline, noclone, unused))
/* The function is still on the stack when the call before this returns. */
#define STAYS __asm__ volatile("")

#define SET(variable, value) __atomic_store_n(&(variable), (value), __ATOMIC_SEQ_CST)
#define GET(variable) __atomic_load_n(&(variable), __ATOMIC_SEQ_CST)

static struct {
    int round, ready, coming, done, waiter;
    long long slept, waited;
    void (*wait_for)(int);
} shared_rounds;

static inline long long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static inline void pause_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&time, &time))
        ;
}

static inline void until(int *variable, int value)
{
    while (GET(*variable) < value)
        pause_us(100);
}

/* Whether a thread of this process sleeps. */
static inline int sleeps(int thread)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    int is_read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *name_end = is_read ? strrchr(line, ')') : NULL;
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

/* Lets the waiter wait for HOLD_MS. */
static inline void let_wait(void)
{
    long long start = now_ns();
    pause_us(HOLD_MS * 1000);
    shared_rounds.slept += now_ns() - start;
}

/* Lets the waiter come and wait without sleeping. */
static inline void let_come_awake(void)
{
    SET(shared_rounds.ready, shared_rounds.round + 1);
    until(&shared_rounds.coming, shared_rounds.round + 1);
    let_wait();
}

static inline void let_come(void)
{
    SET(shared_rounds.ready, shared_rounds.round + 1);
    until(&shared_rounds.coming, shared_rounds.round + 1);
    while (!sleeps(shared_rounds.waiter))
        pause_us(100);
    let_wait();
}

static inline void *waiter_of_rounds(void *unused)
{
    (void)unused;
    SET(shared_rounds.waiter, (int)syscall(SYS_gettid));
    for (int round = 0; round < ROUNDS; round++) {
        until(&shared_rounds.ready, round + 1);
        long long start = now_ns();
        SET(shared_rounds.coming, round + 1);
        shared_rounds.wait_for(round);
        shared_rounds.waited += now_ns() - start;
        SET(shared_rounds.done, round + 1);
    }
    while (pause())
        ;
    return NULL;
}

static inline void rounds(void (*hold)(int), void (*wait_for)(int))
{
    pthread_t waiter;
    shared_rounds.wait_for = wait_for;
    if (pthread_create(&waiter, NULL, waiter_of_rounds, NULL) != 0)
        exit(1);
    until(&shared_rounds.waiter, 1);
    for (; shared_rounds.round < ROUNDS; shared_rounds.round++) {
        hold(shared_rounds.round);
        until(&shared_rounds.done, shared_rounds.round + 1);
    }
    printf("waits %d %lld %lld\n", ROUNDS, shared_rounds.slept, shared_rounds.waited);
}

struct scene {
    const char *name;
    void (*hold)(int), (*wait_for)(int);
};

/* Runs the scene that the argument names. */
static inline int run_scene(int argc, char **argv, const struct scene *scenes, size_t number)
{
    for (size_t i = 0; argc == 2 && i < number; i++) {
        if (strcmp(argv[1], scenes[i].name) == 0) {
            rounds(scenes[i].hold, scenes[i].wait_for);
            return 0;
        }
    }
    fprintf(stderr, "no such scene\n");
    return 2;
}

#define SCENE(name) {#name, name##_lets_go, name##_waits}
