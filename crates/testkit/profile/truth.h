/* What the programs share whose use of locks is known by construction.
 *
 * Threads take turns by way of atomics, so it is certain which waits for which; how long is measured by the program itself,
 * around its calls. A thread that is preempted between its own look at the clock and the recorder's makes the two differ:
 * for how long, the kernel knows (UNSURE). It prints:
 *
 *   lock ROLE ADDRESS ACQUISITIONS CONTENDED FAILED WAITED LONGEST HELD HOLDS UNSURE     times in ns
 *   function NAME ADDRESS                                                        where a thread calls from
 */
#pragma once
#include "../posix/check.h"
#include <fcntl.h>
#include <sys/resource.h>

#define NOINLINE __attribute__((noinline, noclone))
/* Keeps the call before it from being a tail call, which would leave no trace of the caller. */
#define NOT_LAST() __asm__ volatile("" ::: "memory")

struct truth {
    long acquisitions, contended, failed, holds;
    int64_t waited, longest, held, unsure;
    int64_t started;
};

static inline int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* How often this thread was preempted, and for how long it was runnable without a CPU, ns. */
struct preempted {
    long times;
    int64_t ns;
};

static __thread struct preempted preempted_before;

static inline struct preempted preempted_now(void)
{
    static __thread int file;
    struct rusage usage;
    OK(getrusage(RUSAGE_THREAD, &usage));
    if (file == 0)
        file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    char text[128] = "";
    long long ran = 0, delayed = 0;
    /* A kernel without it: nothing is known to be unsure. */
    if (file > 0 && pread(file, text, sizeof text - 1, 0) > 0)
        CHECK(sscanf(text, "%lld %lld", &ran, &delayed) == 2);
    return (struct preempted){usage.ru_nivcsw, delayed};
}

/* The time just before a call that the recorder sees; the call ends with `call_ends`. */
static inline int64_t call_begins(void)
{
    preempted_before = preempted_now();
    return clock_now();
}

/* The time just after it. A thread that was only woken up late has not been preempted. */
static inline int64_t call_ends(int64_t *unsure)
{
    int64_t end = clock_now();
    struct preempted after = preempted_now();
    if (after.times != preempted_before.times)
        *unsure += after.ns - preempted_before.ns;
    return end;
}

static inline void truth_waited(struct truth *truth, int64_t ns)
{
    truth->contended++;
    truth->waited += ns;
    if (ns > truth->longest)
        truth->longest = ns;
}

/* `now`: when the call returned that acquired the lock, or when the one begins that releases it. */
static inline void truth_hold_begins(struct truth *truth, int64_t now)
{
    truth->started = now;
}

static inline void truth_hold_ends(struct truth *truth, int64_t now)
{
    truth->held += now - truth->started;
    truth->holds++;
}

static inline void truth_print(const struct truth *truth, const char *role, const void *lock)
{
    printf("lock %s %ld %ld %ld %ld %lld %lld %lld %ld %lld\n", role, (long)(uintptr_t)lock, truth->acquisitions,
           truth->contended, truth->failed, (long long)truth->waited, (long long)truth->longest,
           (long long)truth->held, truth->holds, (long long)truth->unsure);
}

#define PRINT_FUNCTION(name) printf("function " #name " %ld\n", (long)(uintptr_t)(name))

static inline void sleep_ns(int64_t ns)
{
    int64_t end = clock_now() + ns;
    struct timespec until = {end / 1000000000, end % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* ---- turns --------------------------------------------------------------------------------------------- */

static atomic_int turn;

/* By a bare call: a loop of sched_yield is a wait that is recorded, and these waits are not the program's. */
static inline void yield_unrecorded(void)
{
    syscall(SYS_sched_yield);
}

static inline void await_turn(int mine)
{
    while (atomic_load(&turn) != mine)
        yield_unrecorded();
}

static inline void next_turn(void)
{
    atomic_fetch_add(&turn, 1);
}

/* A thread says who it is, and that it is about to block. */
static atomic_int blocker;

static inline void about_to_block(void)
{
    atomic_store(&blocker, (int)syscall(SYS_gettid));
}

/* Waits until that thread sleeps; it stays asleep, since the caller has what it waits for. */
static inline void await_blocked(void)
{
    int thread;
    while ((thread = atomic_load(&blocker)) == 0)
        yield_unrecorded();
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    for (;;) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(file >= 0);
        ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        CHECK(length > 0);
        text[length] = 0;
        char *state = strrchr(text, ')');
        if (state && state[2] == 'S')
            break;
        yield_unrecorded();
    }
    atomic_store(&blocker, 0);
}
