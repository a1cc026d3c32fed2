/* A thread that is stopped anywhere inside a lock call hinders no release by another thread, no try, no signal: as where a
 * collector, a crash reporter or a debugger stops all threads but its own. And a handler that interrupts a thread anywhere inside a
 * lock call may release a mutex that it got by trying.
 *
 * The main thread holds an object; the other thread is about to wait for it, and is stopped by a signal at a random moment, or as
 * soon as it has written to the object; the main thread releases the object, and takes and releases it again, before the other one
 * may go on. */
#include "check.h"

enum { STOPS = 2000, SLOWEST_US = 250 };

static atomic_int turn, arrived, stopped, resumed, released, finished;
static atomic_llong since;
static const char *_Atomic doing = "";
static pthread_mutex_t mutexes[STOPS];
static pthread_rwlock_t rwlocks[STOPS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_bool handler_tries, stop;

/* Polls: nothing here may depend on a lock. */
static void await(atomic_int *flag, int at_least)
{
    for (int i = 0; atomic_load(flag) < at_least; i++)
        if (i > 200)
            sleep_us(20);
}

static void handler(int signal)
{
    (void)signal;
    int error = errno;
    int now = atomic_load(&turn);
    atomic_store(&stopped, now);
    if (atomic_load(&handler_tries)) {
        await(&released, now);
        if (pthread_mutex_trylock(&mutexes[now - 1]) == 0)
            pthread_mutex_unlock(&mutexes[now - 1]);
    }
    await(&resumed, now);
    errno = error;
}

/* Fails with the name of the call that has not returned. */
static void *watches(void *arg)
{
    (void)arg;
    while (!atomic_load(&finished)) {
        sleep_ms(50);
        int64_t began = atomic_load(&since);
        if (began && now_ns(CLOCK_MONOTONIC) - began > 20000 * 1000000LL)
            STUCK("%s waits for a thread that is stopped (stop %d)", atomic_load(&doing), atomic_load(&turn));
    }
    return NULL;
}

static void begin(const char *what)
{
    atomic_store(&doing, what);
    atomic_store(&since, now_ns(CLOCK_MONOTONIC));
}
static void end(void) { atomic_store(&since, 0); }

/* Waits for a moment until the other thread has written to the object. */
static void await_change(const void *object, size_t size)
{
    const volatile char *now = object;
    char before[sizeof(pthread_rwlock_t)];
    int64_t at = now_ns(CLOCK_MONOTONIC) + SLOWEST_US * 1000;
    for (size_t i = 0; i < size; i++)
        before[i] = now[i];
    while (now_ns(CLOCK_MONOTONIC) < at)
        for (size_t i = 0; i < size; i++)
            if (before[i] != now[i])
                return;
}

/* The other thread is at its call number `i` by now, or soon: it is stopped there, and stays so. In half of the rounds soon after
 * it has begun to queue. */
static void stop_it(struct thread *other, int i, uint32_t *seed, const void *object, size_t size)
{
    if (i % 2 == 0)
        await_change(object, size);
    await(&arrived, i);
    int64_t slowest = i % 2 == 0 ? 2000 : SLOWEST_US * 1000;
    int64_t at = now_ns(CLOCK_MONOTONIC) + random_next(seed) % slowest;
    while (now_ns(CLOCK_MONOTONIC) < at)
        ;
    CHECK(pthread_kill(other->handle, SIGUSR1) == 0);
    await(&stopped, i);
}

static void next_turn(int i)
{
    atomic_store(&turn, i);
}

static void *locks(void *arg)
{
    (void)arg;
    for (int i = 1; i <= STOPS; i++) {
        await(&turn, i);
        atomic_store(&arrived, i);
        OK(pthread_mutex_lock(&mutexes[i - 1]));
        OK(pthread_mutex_unlock(&mutexes[i - 1]));
        await(&resumed, i);
    }
    return NULL;
}

static void reset(void)
{
    atomic_store(&turn, 0), atomic_store(&arrived, 0), atomic_store(&stopped, 0);
    atomic_store(&resumed, 0), atomic_store(&released, 0);
}

static void unlocks(bool tries)
{
    struct thread other;
    uint32_t seed = 1;
    reset();
    atomic_store(&handler_tries, tries);
    for (int i = 0; i < STOPS; i++)
        OK(pthread_mutex_init(&mutexes[i], NULL));
    start(&other, locks, NULL);
    for (int i = 1; i <= STOPS; i++) {
        pthread_mutex_t *it = &mutexes[i - 1];
        OK(pthread_mutex_lock(it));
        next_turn(i);
        stop_it(&other, i, &seed, it, sizeof *it);
        begin("pthread_mutex_unlock");
        OK(pthread_mutex_unlock(it));
        if (!tries) {
            begin("pthread_mutex_trylock");
            int error = pthread_mutex_trylock(it);
            CHECK(error == 0 || error == EBUSY);
            if (error == 0) {
                begin("pthread_mutex_unlock, again");
                OK(pthread_mutex_unlock(it));
            }
        }
        end();
        atomic_store(&released, i);
        if (tries)
            begin("pthread_mutex_unlock in a handler");
        atomic_store(&resumed, i);
    }
    join_soon(&other, "a thread that was stopped");
    end();
    for (int i = 0; i < STOPS; i++)
        OK(pthread_mutex_destroy(&mutexes[i]));
    atomic_store(&handler_tries, false);
}

static void *writes(void *arg)
{
    (void)arg;
    for (int i = 1; i <= STOPS; i++) {
        await(&turn, i);
        atomic_store(&arrived, i);
        OK(pthread_rwlock_wrlock(&rwlocks[i - 1]));
        OK(pthread_rwlock_unlock(&rwlocks[i - 1]));
        await(&resumed, i);
    }
    return NULL;
}

static void read_unlocks(void)
{
    struct thread other;
    uint32_t seed = 2;
    reset();
    for (int i = 0; i < STOPS; i++)
        OK(pthread_rwlock_init(&rwlocks[i], NULL));
    start(&other, writes, NULL);
    for (int i = 1; i <= STOPS; i++) {
        pthread_rwlock_t *it = &rwlocks[i - 1];
        OK(pthread_rwlock_rdlock(it));
        next_turn(i);
        stop_it(&other, i, &seed, it, sizeof *it);
        begin("pthread_rwlock_unlock");
        OK(pthread_rwlock_unlock(it));
        begin("pthread_rwlock_trywrlock");
        int error = pthread_rwlock_trywrlock(it);
        CHECK(error == 0 || error == EBUSY);
        if (error == 0) {
            begin("pthread_rwlock_unlock of a writer");
            OK(pthread_rwlock_unlock(it));
        }
        begin("pthread_rwlock_tryrdlock");
        error = pthread_rwlock_tryrdlock(it);
        CHECK(error == 0 || error == EBUSY);
        if (error == 0) {
            begin("pthread_rwlock_unlock, again");
            OK(pthread_rwlock_unlock(it));
        }
        end();
        atomic_store(&resumed, i);
    }
    join_soon(&other, "a thread that was stopped");
    for (int i = 0; i < STOPS; i++)
        OK(pthread_rwlock_destroy(&rwlocks[i]));
}

/* Waits that are over at once: it is in the queue of the condition variable, or about to enter it or leave it, all the time. */
static void *waits(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    while (!atomic_load(&stop)) {
        struct timespec past = {1, 0};
        CALL_EITHER(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT, 0);
    }
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void signals(void)
{
    struct thread other;
    uint32_t seed = 3;
    reset();
    start(&other, waits, NULL);
    for (int i = 1; i <= STOPS; i++) {
        next_turn(i);
        atomic_store(&arrived, i);
        stop_it(&other, i, &seed, &cond, sizeof cond);
        bool all = random_next(&seed) % 4 == 0;
        begin(all ? "pthread_cond_broadcast" : "pthread_cond_signal");
        OK(all ? pthread_cond_broadcast(&cond) : pthread_cond_signal(&cond));
        end();
        atomic_store(&resumed, i);
    }
    atomic_store(&stop, true);
    join_soon(&other, "a thread that was stopped");
}

int main(void)
{
    struct thread watcher;
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    start(&watcher, watches, NULL);
    check_context = "mutex";
    unlocks(false);
    check_context = "handler";
    unlocks(true);
    check_context = "readers";
    read_unlocks();
    check_context = "condition variable";
    signals();
    atomic_store(&finished, 1);
    join(&watcher);
    return 0;
}
