/* Shared by all programs of the suite: checks, threads, deadlines and the table of mutex kinds.
 *
 * A program exits with 0 if every promise held. A broken promise ends it with status 1 and one line that names
 * the source line. Environment:
 *   SPINPARK_TEST_CONFIGURATION        glibc, spinpark or disabled; set by the harness, unset when run by hand
 *   SPINPARK_STRESS_SECONDS  how long a stress program runs
 *   SPINPARK_EXHAUSTIVE      if set, counters are driven to their end
 */
#pragma once
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- arms ---------------------------------------------------------------------------------------------- */

/* True on the drop-in's own locks: checks of what glibc does not promise, or breaks, are made only there. */
static inline bool on_spinpark(void)
{
    const char *arm = getenv("SPINPARK_TEST_CONFIGURATION");
    return arm && strcmp(arm, "spinpark") == 0;
}

/* ---- checks -------------------------------------------------------------------------------------------- */

/* What the program was doing; printed with a failure. */
static _Thread_local const char *check_context = "";

#define FAIL(...)                                                                                              \
    do {                                                                                                       \
        fprintf(stderr, "%s:%d: [%s] ", __FILE__, __LINE__, check_context);                                    \
        fprintf(stderr, __VA_ARGS__);                                                                          \
        fputc('\n', stderr);                                                                                   \
        fflush(stderr);                                                                                        \
        _exit(1);                                                                                              \
    } while (0)

#define CHECK(condition)                                                                                       \
    do {                                                                                                       \
        if (!(condition))                                                                                      \
            FAIL("check failed: %s (errno %d)", #condition, errno);                                            \
    } while (0)

static inline const char *error_name(int error)
{
    switch (error) {
    case 0: return "0";
    case EPERM: return "EPERM";
    case EINTR: return "EINTR";
    case EAGAIN: return "EAGAIN";
    case EBUSY: return "EBUSY";
    case EINVAL: return "EINVAL";
    case EDEADLK: return "EDEADLK";
    case ENOSYS: return "ENOSYS";
    case ETIMEDOUT: return "ETIMEDOUT";
    case EOWNERDEAD: return "EOWNERDEAD";
    case ENOTRECOVERABLE: return "ENOTRECOVERABLE";
    default: return strerror(error);
    }
}

/* No pthread function sets errno. It is set to a known value before each call; another value after it is a
 * broken promise. */
#define ERRNO_MARK 4242

#define CALL_EITHER(call, want, also)                                                                          \
    do {                                                                                                       \
        errno = ERRNO_MARK;                                                                                    \
        int got_ = (call);                                                                                     \
        int errno_ = errno;                                                                                    \
        if (got_ != (want) && got_ != (also))                                                                  \
            FAIL("%s returned %s, not %s", #call, error_name(got_), error_name(want));                         \
        if (errno_ != ERRNO_MARK)                                                                              \
            FAIL("%s set errno to %d", #call, errno_);                                                         \
    } while (0)

#define CALL(call, want) CALL_EITHER(call, want, want)
#define OK(call) CALL(call, 0)

/* A hang that a program notices itself: say so, and stay, so that the harness can take the stacks. */
#define STUCK(...)                                                                                             \
    do {                                                                                                       \
        fprintf(stderr, "%s:%d: [%s] stuck: ", __FILE__, __LINE__, check_context);                             \
        fprintf(stderr, __VA_ARGS__);                                                                          \
        fputc('\n', stderr);                                                                                   \
        fflush(stderr);                                                                                        \
        if (!getenv("SPINPARK_TEST_CONFIGURATION"))                                                                      \
            _exit(1);                                                                                          \
        for (;;)                                                                                               \
            pause();                                                                                           \
    } while (0)

/* The harness has its own watchdog; this one is for a program that is run by hand. */
__attribute__((constructor)) static void watchdog(void)
{
    if (!getenv("SPINPARK_TEST_CONFIGURATION"))
        alarm(120);
}

/* ---- time ---------------------------------------------------------------------------------------------- */

static inline int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        FAIL("clock_gettime(%d)", (int)clock);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* The moment `us` microseconds from now, which may be negative. */
static inline struct timespec in_us(clockid_t clock, int64_t us) { return timespec_of(now_ns(clock) + us * 1000); }
static inline struct timespec in_ms(clockid_t clock, int64_t ms) { return in_us(clock, ms * 1000); }
static inline bool has_come(clockid_t clock, struct timespec t)
{
    return now_ns(clock) >= t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Far beyond anything that a working program waits for, on the busiest machine. */
#define LONG_MS 60000

static inline void sleep_us(long us) { nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL); }
static inline void sleep_ms(long ms) { sleep_us(ms * 1000); }

static inline double stress_seconds(double usual)
{
    const char *text = getenv("SPINPARK_STRESS_SECONDS");
    return text ? atof(text) : usual;
}

/* ---- CPUs and policies --------------------------------------------------------------------------------- */

/* The CPUs that this program may use. */
static cpu_set_t all_cpus;

__attribute__((constructor)) static void note_cpus(void)
{
    CHECK(sched_getaffinity(0, sizeof all_cpus, &all_cpus) == 0);
}

/* Binds the calling thread to the `n`th CPU that this program may use. */
static inline bool bind_to(int n)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all_cpus) && n-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            return sched_setaffinity(0, sizeof one, &one) == 0;
        }
    }
    return false;
}

/* 0: the usual policy. */
static inline bool set_fifo(int priority)
{
    struct sched_param param = {.sched_priority = priority};
    return sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param) == 0;
}

/* ---- threads ------------------------------------------------------------------------------------------- */

struct thread {
    pthread_t handle;
    _Atomic pid_t tid;
    void *(*body)(void *);
    void *arg;
    const char *context;
};

static inline pid_t my_tid(void) { return (pid_t)syscall(SYS_gettid); }

static inline void *thread_main(void *arg)
{
    struct thread *thread = arg;
    check_context = thread->context;
    void *(*body)(void *) = thread->body;
    void *body_arg = thread->arg;
    atomic_store(&thread->tid, my_tid());
    return body(body_arg);
}

static inline void start(struct thread *thread, void *(*body)(void *), void *arg)
{
    *thread = (struct thread){.body = body, .arg = arg, .context = check_context};
    int error = pthread_create(&thread->handle, NULL, thread_main, thread);
    if (error)
        FAIL("pthread_create: %s", error_name(error));
    while (!atomic_load(&thread->tid))
        sched_yield();
}

static inline void *join(struct thread *thread)
{
    void *result;
    int error = pthread_join(thread->handle, &result);
    if (error)
        FAIL("pthread_join: %s", error_name(error));
    return result;
}

/* Like join, but a thread that never ends is reported. */
static inline void *join_soon(struct thread *thread, const char *what)
{
    void *result;
    struct timespec limit = in_ms(CLOCK_REALTIME, LONG_MS);
    int error = pthread_timedjoin_np(thread->handle, &result, &limit);
    if (error)
        STUCK("%s: %s", what, error_name(error));
    return result;
}

/* Cancels a thread that may have ended: before glibc 2.34 that is an error (BZ 19511). */
static inline void cancel(struct thread *thread)
{
    int error = pthread_cancel(thread->handle);
    if (error && (__GLIBC_PREREQ(2, 34) || error != ESRCH))
        FAIL("pthread_cancel: %s", error_name(error));
}

/* Waits until the thread sleeps in a futex call. It gives up after a second (a sandbox may hide the state), so a
 * test must not fail because the thread is not there yet; it only checks less then. */
static inline void await_sleep(struct thread *thread)
{
    char path[64], state[16];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", atomic_load(&thread->tid));
    int64_t limit = now_ns(CLOCK_MONOTONIC) + 1000000000;
    while (now_ns(CLOCK_MONOTONIC) < limit) {
        FILE *file = fopen(path, "r");
        if (!file)
            break;
        bool sleeps = fgets(state, sizeof state, file) && atoi(state) == SYS_futex;
        fclose(file);
        if (sleeps)
            return;
        sleep_us(200);
    }
}

static inline void await_flag(atomic_int *flag, int at_least)
{
    int64_t limit = now_ns(CLOCK_MONOTONIC) + LONG_MS * 1000000LL;
    for (int i = 0; atomic_load(flag) < at_least; i++) {
        if (i < 100)
            sched_yield();
        else
            sleep_us(100);
        if (now_ns(CLOCK_MONOTONIC) > limit)
            STUCK("a flag stays %d, below %d", atomic_load(flag), at_least);
    }
}

static inline uint32_t random_next(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    return *seed ^= *seed << 5;
}

/* ---- shared memory and processes ----------------------------------------------------------------------- */

static inline void *map(size_t size, int flags)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        FAIL("mmap: %s", strerror(errno));
    return memory;
}

static inline pid_t fork_checked(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        FAIL("fork: %s", strerror(errno));
    return pid;
}

/* Waits for a child that must exit with 0. */
static inline void expect_exit(pid_t pid)
{
    int status;
    int64_t limit = now_ns(CLOCK_MONOTONIC) + LONG_MS * 1000000LL;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            break;
        if (got < 0 && errno != EINTR)
            FAIL("waitpid: %s", strerror(errno));
        if (now_ns(CLOCK_MONOTONIC) > limit)
            STUCK("child %d", pid);
        sleep_us(200);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        FAIL("child %d ended with status %#x", pid, status);
}

/* ---- mutex kinds --------------------------------------------------------------------------------------- */

struct mutex_kind {
    const char *name;
    int type, robust, protocol, pshared;
};

#define KIND(n, t) {n, PTHREAD_MUTEX_##t, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE}
#define ROBUST(n, t) {n, PTHREAD_MUTEX_##t, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE}
#define INHERIT(n, t) {n, PTHREAD_MUTEX_##t, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, PTHREAD_PROCESS_PRIVATE}
#define SHARED(n, t) {n, PTHREAD_MUTEX_##t, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED}

/* Every kind that any thread may lock; priority-protected ones need a real-time thread. */
static const struct mutex_kind MUTEX_KINDS[] = {
    KIND("normal", NORMAL),
    KIND("recursive", RECURSIVE),
    KIND("errorcheck", ERRORCHECK),
    KIND("adaptive", ADAPTIVE_NP),
    ROBUST("robust normal", NORMAL),
    ROBUST("robust recursive", RECURSIVE),
    ROBUST("robust errorcheck", ERRORCHECK),
    INHERIT("inherit normal", NORMAL),
    INHERIT("inherit recursive", RECURSIVE),
    INHERIT("inherit errorcheck", ERRORCHECK),
    SHARED("shared normal", NORMAL),
    SHARED("shared recursive", RECURSIVE),
    SHARED("shared errorcheck", ERRORCHECK),
    SHARED("shared adaptive", ADAPTIVE_NP),
    {"robust inherit", PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT, PTHREAD_PROCESS_PRIVATE},
    {"robust shared", PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define FOR_EACH_KIND(kind)                                                                                    \
    for (const struct mutex_kind *kind = MUTEX_KINDS;                                                          \
         kind < MUTEX_KINDS + COUNT(MUTEX_KINDS) && (check_context = kind->name); kind++)                      \
        if (kind_exists(kind))

/* Neither robust nor shared nor with a protocol: the kinds that the drop-in does not leave to glibc. */
static inline bool is_plain(const struct mutex_kind *kind)
{
    return kind->robust == PTHREAD_MUTEX_STALLED && kind->protocol == PTHREAD_PRIO_NONE &&
           kind->pshared == PTHREAD_PROCESS_PRIVATE;
}

static inline int mutex_try_make(pthread_mutex_t *mutex, const struct mutex_kind *kind)
{
    pthread_mutexattr_t attr;
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_settype(&attr, kind->type) == 0);
    CHECK(pthread_mutexattr_setrobust(&attr, kind->robust) == 0);
    CHECK(pthread_mutexattr_setprotocol(&attr, kind->protocol) == 0);
    CHECK(pthread_mutexattr_setpshared(&attr, kind->pshared) == 0);
    errno = ERRNO_MARK;
    int error = pthread_mutex_init(mutex, &attr);
    CHECK(errno == ERRNO_MARK);
    CHECK(pthread_mutexattr_destroy(&attr) == 0);
    return error;
}

static inline void mutex_make(pthread_mutex_t *mutex, const struct mutex_kind *kind)
{
    OK(mutex_try_make(mutex, kind));
}

/* Priority inheritance needs a futex operation that a sandbox may refuse. */
static inline bool kind_exists(const struct mutex_kind *kind)
{
    pthread_mutex_t mutex;
    int error = mutex_try_make(&mutex, kind);
    CHECK(error == 0 || (error == ENOTSUP && kind->protocol == PTHREAD_PRIO_INHERIT));
    return error == 0;
}

/* The result in another thread: locks with the function, and unlocks again. */
struct other_call {
    pthread_mutex_t *mutex;
    enum { OTHER_TRYLOCK, OTHER_LOCK, OTHER_UNLOCK } what;
    int result;
};

static inline void *other_main(void *arg)
{
    struct other_call *call = arg;
    errno = ERRNO_MARK;
    if (call->what == OTHER_UNLOCK) {
        call->result = pthread_mutex_unlock(call->mutex);
    } else {
        call->result = call->what == OTHER_LOCK ? pthread_mutex_lock(call->mutex) : pthread_mutex_trylock(call->mutex);
        if (call->result == 0)
            OK(pthread_mutex_unlock(call->mutex));
    }
    CHECK(errno == ERRNO_MARK);
    return NULL;
}

static inline int other(pthread_mutex_t *mutex, int what)
{
    struct other_call call = {mutex, what, -1};
    struct thread thread;
    start(&thread, other_main, &call);
    join(&thread);
    return call.result;
}

static inline int other_trylock(pthread_mutex_t *mutex) { return other(mutex, OTHER_TRYLOCK); }
static inline int other_lock(pthread_mutex_t *mutex) { return other(mutex, OTHER_LOCK); }
static inline int other_unlock(pthread_mutex_t *mutex) { return other(mutex, OTHER_UNLOCK); }
