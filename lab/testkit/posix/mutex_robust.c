/* Robust mutexes: a thread that locks after the owner died gets EOWNERDEAD and the lock; consistent repairs it; without that
 * an unlock makes it ENOTRECOVERABLE for good. For each type, each way to lock, threads and processes. */
#include "check.h"

enum { LOCK, TRYLOCK, TIMEDLOCK, CLOCKLOCK, WAYS };

static int lock_by(pthread_mutex_t *mutex, int way)
{
    struct timespec real = in_ms(CLOCK_REALTIME, LONG_MS), mono = in_ms(CLOCK_MONOTONIC, LONG_MS);
    switch (way) {
    case LOCK: return pthread_mutex_lock(mutex);
    case TRYLOCK: return pthread_mutex_trylock(mutex);
    case TIMEDLOCK: return pthread_mutex_timedlock(mutex, &real);
    default: return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &mono);
    }
}

static void *lock_and_die(void *arg)
{
    OK(pthread_mutex_lock(arg));
    return NULL;
}

struct waiting {
    pthread_mutex_t *mutex;
    int way;
};

static void *wait_for_dead(void *arg)
{
    struct waiting *waiting = arg;
    CALL(lock_by(waiting->mutex, waiting->way), EOWNERDEAD);
    OK(pthread_mutex_consistent(waiting->mutex));
    OK(pthread_mutex_unlock(waiting->mutex));
    return NULL;
}

static atomic_int held, die;
static void *lock_and_die_later(void *arg)
{
    OK(pthread_mutex_lock(arg));
    atomic_store(&held, 1);
    await_flag(&die, 1);
    return NULL;
}

struct cond_case {
    pthread_mutex_t *mutex;
    pthread_cond_t cond;
    atomic_int waiting;
    bool ready;
};

static void *cond_waiter(void *arg)
{
    struct cond_case *c = arg;
    OK(pthread_mutex_lock(c->mutex));
    atomic_store(&c->waiting, 1);
    int error = 0;
    while (!c->ready && error == 0)
        error = pthread_cond_wait(&c->cond, c->mutex);
    CHECK(error == EOWNERDEAD);
    OK(pthread_mutex_consistent(c->mutex));
    OK(pthread_mutex_unlock(c->mutex));
    return NULL;
}

static void *signal_and_die(void *arg)
{
    struct cond_case *c = arg;
    OK(pthread_mutex_lock(c->mutex));
    c->ready = true;
    OK(pthread_cond_signal(&c->cond));
    return NULL; /* with the mutex locked */
}

int main(void)
{
    struct thread thread, waiter;
    pthread_mutex_t *mutex = map(4096, MAP_SHARED);
    FOR_EACH_KIND(kind) {
        if (kind->robust != PTHREAD_MUTEX_ROBUST)
            continue;
        mutex_make(mutex, kind);
        for (int way = 0; way < WAYS; way++) {
            if (kind->protocol == PTHREAD_PRIO_INHERIT && way == CLOCKLOCK)
                continue; /* needs Linux 5.14 */
            start(&thread, lock_and_die, mutex);
            join(&thread);
            CALL(lock_by(mutex, way), EOWNERDEAD);
            OK(pthread_mutex_consistent(mutex));
            CALL(pthread_mutex_consistent(mutex), EINVAL);
            CALL(other_trylock(mutex), EBUSY);
            OK(pthread_mutex_unlock(mutex));
            OK(other_lock(mutex));

            if (way != TRYLOCK) {
                struct waiting waiting = {mutex, way};
                atomic_store(&held, 0);
                atomic_store(&die, 0);
                start(&thread, lock_and_die_later, mutex);
                await_flag(&held, 1);
                start(&waiter, wait_for_dead, &waiting);
                await_sleep(&waiter);
                atomic_store(&die, 1);
                join(&thread);
                join_soon(&waiter, "a waiter whose owner died");
            }
        }

        struct cond_case c = {.mutex = mutex, .cond = PTHREAD_COND_INITIALIZER};
        start(&waiter, cond_waiter, &c);
        await_flag(&c.waiting, 1);
        start(&thread, signal_and_die, &c);
        join(&thread);
        join_soon(&waiter, "a condition's waiter whose mutex' owner died");
        OK(pthread_cond_destroy(&c.cond));

        if (kind->pshared == PTHREAD_PROCESS_SHARED) {
            pid_t child = fork_checked();
            if (child == 0) {
                OK(pthread_mutex_lock(mutex));
                _exit(0);
            }
            expect_exit(child);
            CALL(pthread_mutex_lock(mutex), EOWNERDEAD);
            OK(pthread_mutex_consistent(mutex));
            OK(pthread_mutex_unlock(mutex));
        }

        start(&thread, lock_and_die, mutex);
        join(&thread);
        CALL(pthread_mutex_lock(mutex), EOWNERDEAD);
        OK(pthread_mutex_unlock(mutex)); /* not made consistent */
        CALL(pthread_mutex_lock(mutex), ENOTRECOVERABLE);
        CALL(pthread_mutex_trylock(mutex), ENOTRECOVERABLE);
        OK(pthread_mutex_destroy(mutex));
    }
    return 0;
}
