/* timedlock and clocklock, on every kind of mutex and both clocks:
 *  - ETIMEDOUT on a lock held by another thread for deadlines in the past (also before 1970), and for one in the
 *    future, not before it has come; the far end of time_t means waiting;
 *  - EINVAL for a tv_nsec outside 0..999999999 if the lock is held, and for an unknown clock always;
 *  - a free lock is acquired whatever the deadline; the owner's call deadlocks until the deadline (normal), nests
 *    (recursive) or fails with EDEADLK (errorcheck). */
#include "check.h"

static pthread_mutex_t mutex;
static atomic_int held, release_it;

/* The call under test, by number, so that all three share every check. */
enum { TIMEDLOCK, CLOCK_REAL, CLOCK_MONO, CALLS };
static clockid_t clock_of(int call) { return call == CLOCK_MONO ? CLOCK_MONOTONIC : CLOCK_REALTIME; }
static int timed(int call, struct timespec deadline)
{
    return call == TIMEDLOCK ? pthread_mutex_timedlock(&mutex, &deadline)
                             : pthread_mutex_clocklock(&mutex, clock_of(call), &deadline);
}

static void *hold(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    atomic_store(&held, 1);
    await_flag(&release_it, 1);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *release_later(void *arg)
{
    (void)arg;
    sleep_ms(20);
    atomic_store(&release_it, 1);
    return NULL;
}

static void held_by_another(int call, bool inherits)
{
    clockid_t clock = clock_of(call);
    struct thread holder, releaser;
    atomic_store(&held, 0);
    atomic_store(&release_it, 0);
    start(&holder, hold, NULL);
    await_flag(&held, 1);

    CALL(timed(call, in_ms(clock, -1)), ETIMEDOUT);
    CALL(timed(call, (struct timespec){0, 0}), ETIMEDOUT);
    CALL(timed(call, (struct timespec){0, 999999999}), ETIMEDOUT);
    /* The kernel refuses times before 1970; glibc 2.36 passes that on for inheriting mutexes. */
    CALL_EITHER(timed(call, (struct timespec){-1, 0}), ETIMEDOUT, inherits ? EINVAL : ETIMEDOUT);
    CALL_EITHER(timed(call, (struct timespec){LONG_MIN, 999999999}), ETIMEDOUT, inherits ? EINVAL : ETIMEDOUT);
    for (int ms = 0; ms <= 30; ms += 10) {
        struct timespec deadline = in_ms(clock, ms);
        CALL(timed(call, deadline), ETIMEDOUT);
        CHECK(has_come(clock, deadline));
    }
    for (int i = 0; i < 50; i++) {
        struct timespec deadline = in_us(clock, 30 * i);
        CALL(timed(call, deadline), ETIMEDOUT);
        CHECK(has_come(clock, deadline));
    }
    CALL(timed(call, (struct timespec){now_ns(clock) / 1000000000 + 1000, 1000000000}), EINVAL);
    CALL(timed(call, (struct timespec){now_ns(clock) / 1000000000 + 1000, -1}), EINVAL);
    CALL(timed(call, (struct timespec){0, LONG_MAX}), EINVAL);
    CALL(timed(call, (struct timespec){0, LONG_MIN}), EINVAL);

    /* The far end of time_t is not the past, whatever the arithmetic inside. */
    start(&releaser, release_later, NULL);
    OK(timed(call, (struct timespec){LONG_MAX, 999999999}));
    CHECK(atomic_load(&release_it));
    OK(pthread_mutex_unlock(&mutex));
    join(&releaser);
    join(&holder);
}

static void free_lock(int call)
{
    const struct timespec deadlines[] = {{0, 0}, {-1, 0}, {LONG_MIN, 0}, {LONG_MAX, 999999999}};
    for (size_t i = 0; i < COUNT(deadlines); i++) {
        OK(timed(call, deadlines[i]));
        CALL(other_trylock(&mutex), EBUSY);
        OK(pthread_mutex_unlock(&mutex));
        OK(other_trylock(&mutex));
    }
    /* "The validity of the abstime parameter need not be checked if the mutex can be locked immediately." */
    errno = ERRNO_MARK;
    int error = timed(call, (struct timespec){0, 1000000000});
    CHECK((error == 0 || error == EINVAL) && errno == ERRNO_MARK);
    if (error == 0)
        OK(pthread_mutex_unlock(&mutex));
}

static void held_by_the_caller(int call, int type)
{
    OK(pthread_mutex_lock(&mutex));
    struct timespec deadline = in_ms(clock_of(call), 10);
    if (type == PTHREAD_MUTEX_RECURSIVE) {
        OK(timed(call, deadline));
        OK(timed(call, (struct timespec){0, 0}));
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        CALL(other_trylock(&mutex), EBUSY);
    } else if (type == PTHREAD_MUTEX_ERRORCHECK) {
        CALL(timed(call, deadline), EDEADLK);
        CALL(timed(call, (struct timespec){0, 0}), EDEADLK);
    } else {
        CALL(timed(call, deadline), ETIMEDOUT);
        CHECK(has_come(clock_of(call), deadline));
    }
    OK(pthread_mutex_unlock(&mutex));
    OK(other_trylock(&mutex));
}

static void bad_clocks(void)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 1000);
    const clockid_t bad[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME,
                             12345, -1};
    for (size_t i = 0; i < COUNT(bad); i++) {
        CALL(pthread_mutex_clocklock(&mutex, bad[i], &soon), EINVAL);
        OK(pthread_mutex_lock(&mutex));
        CALL(pthread_mutex_clocklock(&mutex, bad[i], &soon), EINVAL);
        OK(pthread_mutex_unlock(&mutex));
    }
}

static void every_call(const struct mutex_kind *kind)
{
    bool inherits = kind->protocol == PTHREAD_PRIO_INHERIT;
    for (int call = 0; call < CALLS; call++) {
        mutex_make(&mutex, kind);
        int error = timed(call, in_ms(clock_of(call), 1000));
        /* Before Linux 5.14 an inheriting mutex knows only the real-time clock, and glibc says EINVAL. */
        if (error == EINVAL && inherits && call == CLOCK_MONO)
            continue;
        CHECK(error == 0);
        OK(pthread_mutex_unlock(&mutex));
        free_lock(call);
        held_by_another(call, inherits);
        held_by_the_caller(call, kind->type);
        if (is_plain(kind))
            bad_clocks();
        OK(pthread_mutex_destroy(&mutex));
    }
}

int main(void)
{
    /* Nearly all of it is waiting for deadlines: the kinds wait at the same time, each in its own process. */
    pid_t children[COUNT(MUTEX_KINDS)];
    int count = 0;
    FOR_EACH_KIND(kind) {
        children[count] = fork_checked();
        if (children[count++] == 0) {
            every_call(kind);
            _exit(0);
        }
    }
    for (int i = 0; i < count; i++)
        expect_exit(children[i]);
    return 0;
}
