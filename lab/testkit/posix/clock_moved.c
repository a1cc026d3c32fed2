/* Locks in a process whose libc shows another time than the kernel's: under clock_mover.c, under libfaketime.
 *  - A lock that waits by no deadline waits by no clock that the program sees: threads that contend for mutexes, read-write
 *    locks and condition variables come to an end.
 *  - A deadline is the kernel's: one from the kernel's clock is not given up before it has come, nor as soon as it is asked
 *    for, nor a year later.
 *
 * With the argument "moved", another clock must be there. With "converts", what moves it also converts the deadlines of
 * pthread_cond_timedwait: these are then taken from the clock that the program sees. */
#include "check.h"

#define THREADS 6
#define ROUNDS 1000

static bool converts;

/* The kernel's clock, through nothing that a library could stand before. */
static int64_t kernel_ns(clockid_t clock)
{
    struct timespec now;
#ifdef __x86_64__
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_clock_gettime), "D"((long)clock), "S"(&now)
                     : "rcx", "r11", "memory");
    CHECK(result == 0);
#else
    CHECK(syscall(SYS_clock_gettime, clock, &now) == 0);
#endif
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Whether the program sees another time, or always the same. */
static bool is_moved(clockid_t clock)
{
    int64_t seen = now_ns(clock);
    int64_t ahead = seen - kernel_ns(clock);
    sleep_us(2000);
    return ahead > 1000000000000 || ahead < -1000000000000 || now_ns(clock) == seen;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t box = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static long under_mutex, under_rwlock, in_box;

enum { MUTEX, MUTEX_REAL, MUTEX_MONO, READ, READ_REAL, READ_MONO, WRITE, WRITE_REAL, WRITE_MONO, CALLS };

static clockid_t clock_of(int call)
{
    return call == MUTEX_MONO || call == READ_MONO || call == WRITE_MONO ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static int timed(int call, int64_t ns)
{
    struct timespec deadline = timespec_of(kernel_ns(clock_of(call)) + ns);
    clockid_t clock = clock_of(call);
    switch (call) {
    case MUTEX: return pthread_mutex_timedlock(&mutex, &deadline);
    case READ: return pthread_rwlock_timedrdlock(&rwlock, &deadline);
    case WRITE: return pthread_rwlock_timedwrlock(&rwlock, &deadline);
    case MUTEX_REAL:
    case MUTEX_MONO: return pthread_mutex_clocklock(&mutex, clock, &deadline);
    case READ_REAL:
    case READ_MONO: return pthread_rwlock_clockrdlock(&rwlock, clock, &deadline);
    default: return pthread_rwlock_clockwrlock(&rwlock, clock, &deadline);
    }
}

static void release(int call)
{
    if (call <= MUTEX_MONO)
        OK(pthread_mutex_unlock(&mutex));
    else
        OK(pthread_rwlock_unlock(&rwlock));
}

/* A section that others run into: now and then its thread leaves its CPU in it. */
static void section(uint32_t *seed)
{
    uint32_t dice = random_next(seed) % 64;
    if (dice == 0)
        sleep_us(200);
    else if (dice < 4)
        sched_yield();
    else
        for (volatile uint32_t i = 0; i < 20 * dice; i++)
            ;
}

static void locked(int call, uint32_t *seed)
{
    if (call <= MUTEX_MONO)
        under_mutex++;
    else if (call >= WRITE)
        under_rwlock++;
    section(seed);
    release(call);
}

static int wait_in_box(pthread_cond_t *cond, clockid_t clock, bool by_clock, int64_t ns)
{
    int64_t now = !by_clock && converts ? now_ns(clock) : kernel_ns(clock);
    struct timespec deadline = timespec_of(now + ns);
    return by_clock ? pthread_cond_clockwait(cond, &box, clock, &deadline) : pthread_cond_timedwait(cond, &box, &deadline);
}

/* Puts one in and takes one out: a waiter always gets something. */
static void exchange(uint32_t *seed)
{
    OK(pthread_mutex_lock(&box));
    in_box++;
    OK(pthread_cond_signal(&filled));
    OK(pthread_mutex_unlock(&box));
    section(seed);
    OK(pthread_mutex_lock(&box));
    while (in_box == 0) {
        if (random_next(seed) % 4)
            OK(pthread_cond_wait(&filled, &box));
        else
            CALL_EITHER(wait_in_box(&filled, CLOCK_REALTIME, false, 300000), 0, ETIMEDOUT);
    }
    in_box--;
    OK(pthread_mutex_unlock(&box));
}

static void *contend(void *arg)
{
    uint32_t seed = 2463534242u + 977 * (uint32_t)(uintptr_t)arg;
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_mutex_lock(&mutex));
        locked(MUTEX, &seed);
        if (random_next(&seed) % 4) {
            OK(pthread_rwlock_rdlock(&rwlock));
            locked(READ, &seed);
        } else {
            OK(pthread_rwlock_wrlock(&rwlock));
            locked(WRITE, &seed);
        }
        exchange(&seed);
        int call = random_next(&seed) % CALLS;
        if (i % 2) { /* far away: it is not over yet */
            OK(timed(call, LONG_MS * 1000000LL));
            locked(call, &seed);
        } else { /* near: it may be */
            if (!on_spinpark()) /* glibc's read-write locks may spin for ever then: see rwlock_timed.c */
                call %= READ;
            clockid_t clock = clock_of(call);
            int64_t before = kernel_ns(clock), span = random_next(&seed) % 1000000;
            int result = timed(call, span);
            if (result == 0) {
                locked(call, &seed);
            } else {
                CHECK(result == ETIMEDOUT);
                CHECK(kernel_ns(clock) >= before + span);
            }
        }
    }
    return NULL;
}

static void contention(void)
{
    struct thread threads[THREADS];
    check_context = "contention";
    for (long i = 0; i < THREADS; i++)
        start(&threads[i], contend, (void *)i);
    for (int i = 0; i < THREADS; i++)
        join(&threads[i]);
    CHECK(under_mutex >= (long)THREADS * ROUNDS && under_rwlock > 0 && in_box == 0);
}

static void *holds(void *arg)
{
    atomic_int *state = arg;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_rwlock_wrlock(&rwlock));
    atomic_store(&state[0], 1);
    while (!atomic_load(&state[1]))
        sleep_us(1000);
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

/* Deadlines of a lock that is held all the time. 150 ms: a reader that has waited for 100 asks for more. */
static void deadlines(void)
{
    static const int64_t SPANS[] = {-1000000000LL, 0, 300000, 20000000, 150000000};
    struct thread holder;
    atomic_int state[2] = {0, 0};
    check_context = "deadlines";
    start(&holder, holds, state);
    while (!atomic_load(&state[0]))
        sleep_us(1000);
    for (int call = 0; call < CALLS; call++)
        for (size_t i = 0; i < COUNT(SPANS); i++) {
            int64_t at = kernel_ns(clock_of(call)) + SPANS[i];
            CALL(timed(call, SPANS[i]), ETIMEDOUT);
            CHECK(kernel_ns(clock_of(call)) >= at);
        }
    atomic_store(&state[1], 1);
    join(&holder);

    OK(pthread_mutex_lock(&box));
    for (int by_clock = 0; by_clock <= !converts; by_clock++)
        for (clockid_t clock = CLOCK_REALTIME; clock <= (by_clock ? CLOCK_MONOTONIC : CLOCK_REALTIME); clock++)
            for (size_t i = 0; i < COUNT(SPANS); i++) {
                int64_t at = kernel_ns(clock) + SPANS[i];
                CALL(wait_in_box(&never, clock, by_clock, SPANS[i]), ETIMEDOUT);
                /* A library that converts a deadline rounds it. */
                CHECK(kernel_ns(clock) >= at - (converts ? 1000000 : 0));
            }
    OK(pthread_mutex_unlock(&box));
}

int main(int argc, char **argv)
{
    converts = argc > 1 && !strcmp(argv[1], "converts");
    if (argc > 1)
        CHECK(is_moved(CLOCK_REALTIME) && is_moved(CLOCK_MONOTONIC));
    contention();
    deadlines();
    return 0;
}
