/* Locks whose use is known. Argument: which of the scenes. */
#include "truth_locks.h"
#include "truth_many.h"
#include <threads.h>

/* ---- one holds, one waits ------------------------------------------------------------------------------ */

struct way {
    int (*hold)(void *), (*wait)(void *), (*let_go)(void *);
    void *lock;
    struct truth *holder, *waiter;
};

static int mutex_lock(void *lock) { return pthread_mutex_lock(lock); }
static int mutex_unlock(void *lock) { return pthread_mutex_unlock(lock); }
static int read_lock(void *lock) { return pthread_rwlock_rdlock(lock); }
static int write_lock(void *lock) { return pthread_rwlock_wrlock(lock); }
static int rwlock_unlock(void *lock) { return pthread_rwlock_unlock(lock); }
static int c11_lock(void *lock) { return mtx_lock(lock); }
static int c11_unlock(void *lock) { return mtx_unlock(lock); }

NOINLINE static void holder_site(const struct way *way)
{
    OK(way->hold(way->lock));
    truth_hold_begins(way->holder);
    way->holder->acquisitions++;
    next_turn();
    await_blocked();
    sleep_ns(HOLD);
    truth_hold_ends(way->holder);
    OK(way->let_go(way->lock));
    NOT_LAST();
}

NOINLINE static void waiter_site(const struct way *way)
{
    about_to_block();
    int64_t begin = clock_now();
    OK(way->wait(way->lock));
    truth_hold_begins(way->waiter);
    truth_waited(way->waiter, way->waiter->started - begin);
    way->waiter->acquisitions++;
    sleep_ns(HOLD / 2);
    truth_hold_ends(way->waiter);
    OK(way->let_go(way->lock));
    NOT_LAST();
}

static void *waits(void *argument)
{
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(2 * round + 1);
        waiter_site(argument);
        next_turn();
    }
    return NULL;
}

static void one_waits_for_one(struct way way)
{
    atomic_store(&turn, 0);
    pthread_t thread = begin_thread(waits, &way);
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(2 * round);
        holder_site(&way);
    }
    OK(pthread_join(thread, NULL));
    PRINT_FUNCTION(holder_site);
    PRINT_FUNCTION(waiter_site);
}

static void scene_mutex(void)
{
    one_waits_for_one((struct way){mutex_lock, mutex_lock, mutex_unlock, &mutex, &writing, &reading});
    /* Two threads' accounts of one role. */
    writing.acquisitions += reading.acquisitions;
    writing.contended = reading.contended;
    writing.waited = reading.waited;
    writing.longest = reading.longest;
    writing.held += reading.held;
    writing.holds += reading.holds;
    truth_print(&writing, "write", &mutex);
}

static void scene_c11(void)
{
    mtx_t lock;
    CHECK(mtx_init(&lock, mtx_timed) == thrd_success);
    one_waits_for_one((struct way){c11_lock, c11_lock, c11_unlock, &lock, &writing, &reading});
    writing.acquisitions += reading.acquisitions;
    writing.contended = reading.contended;
    writing.waited = reading.waited;
    writing.longest = reading.longest;
    writing.held += reading.held;
    writing.holds += reading.holds;
    for (int i = 0; i < 3; i++) {
        CHECK(mtx_trylock(&lock) == thrd_success);
        truth_hold_begins(&writing);
        writing.acquisitions++;
        truth_hold_ends(&writing);
        CHECK(mtx_unlock(&lock) == thrd_success);
    }
    truth_print(&writing, "write", &lock);
}

static void scene_reader_waits(void)
{
    one_waits_for_one((struct way){write_lock, read_lock, rwlock_unlock, &rwlock, &writing, &reading});
    truth_print(&writing, "write", &rwlock);
    truth_print(&reading, "read", &rwlock);
}

static void scene_writer_waits(void)
{
    one_waits_for_one((struct way){read_lock, write_lock, rwlock_unlock, &rwlock, &reading, &writing});
    truth_print(&writing, "write", &rwlock);
    truth_print(&reading, "read", &rwlock);
}

/* ---- condition variables ------------------------------------------------------------------------------- */

static int64_t signalled_at;

static void *waits_for_signals(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_mutex_lock(&mutex));
        about_to_block();
        int64_t begin = clock_now();
        OK(pthread_cond_wait(&cond, &mutex));
        int64_t end = clock_now();
        truth_waited(&signalled, signalled_at - begin);
        signalled.acquisitions++;
        truth_waited(&back, end - signalled_at);
        back.acquisitions++;
        OK(pthread_mutex_unlock(&mutex));
        next_turn();
    }
    return NULL;
}

static void scene_cond(void)
{
    pthread_t thread = begin_thread(waits_for_signals, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        await_blocked();
        sleep_ns(HOLD);
        OK(pthread_mutex_lock(&mutex));
        signalled_at = clock_now();
        OK(pthread_cond_signal(&cond));
        /* It is told, and cannot come back yet. */
        sleep_ns(HOLD / 2);
        OK(pthread_mutex_unlock(&mutex));
        await_turn(round + 1);
    }
    OK(pthread_join(thread, NULL));
    truth_print(&signalled, "signal", &cond);
    truth_print(&back, "back", &cond);
    /* Its own, those after waits, and the signaller's; none of them had to wait. */
    printf("taken %ld %d\n", (long)(uintptr_t)&mutex, 3 * ROUNDS);
}

static void scene_cond_timed(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_mutex_lock(&mutex));
        int64_t begin = clock_now();
        int64_t end = begin + HOLD;
        struct timespec until = {end / 1000000000, end % 1000000000};
        CHECK(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
        truth_waited(&signalled, end - begin);
        OK(pthread_mutex_unlock(&mutex));
    }
    truth_print(&signalled, "signal", &cond);
}

/* ---- one thread ---------------------------------------------------------------------------------------- */

static void scene_recursive(void)
{
    pthread_mutexattr_t attributes;
    OK(pthread_mutexattr_init(&attributes));
    OK(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE));
    OK(pthread_mutex_init(&mutex, &attributes));
    for (int round = 0; round < ROUNDS; round++) {
        for (int depth = 0; depth < 3; depth++) {
            OK(pthread_mutex_lock(&mutex));
            writing.acquisitions++;
            if (depth == 0)
                truth_hold_begins(&writing);
        }
        sleep_ns(HOLD / 2);
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        truth_hold_ends(&writing);
        OK(pthread_mutex_unlock(&mutex));
        CHECK(pthread_mutex_unlock(&mutex) == EPERM);
    }
    truth_print(&writing, "write", &mutex);
}

static void scene_nested(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_mutex_lock(&outer));
        truth_hold_begins(&outside);
        outside.acquisitions++;
        sleep_ns(HOLD / 4);
        OK(pthread_mutex_lock(&mutex));
        truth_hold_begins(&writing);
        writing.acquisitions++;
        sleep_ns(HOLD / 4);
        /* Not in the reverse order, every other time. */
        if (round % 2) {
            truth_hold_ends(&outside);
            OK(pthread_mutex_unlock(&outer));
            sleep_ns(HOLD / 4);
            truth_hold_ends(&writing);
            OK(pthread_mutex_unlock(&mutex));
        } else {
            truth_hold_ends(&writing);
            OK(pthread_mutex_unlock(&mutex));
            sleep_ns(HOLD / 4);
            truth_hold_ends(&outside);
            OK(pthread_mutex_unlock(&outer));
        }
    }
    truth_print(&writing, "write", &mutex);
    truth_print(&outside, "write", &outer);
}

/* A thread holds `mutex`; another one waits for it, and has `outer`, for which a third one waits. */
static void *waits_with_outer(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(3 * round + 1);
        OK(pthread_mutex_lock(&outer));
        truth_hold_begins(&outside);
        outside.acquisitions++;
        about_to_block();
        int64_t begin = clock_now();
        OK(pthread_mutex_lock(&mutex));
        truth_waited(&writing, clock_now() - begin);
        writing.acquisitions++;
        OK(pthread_mutex_unlock(&mutex));
        truth_hold_ends(&outside);
        OK(pthread_mutex_unlock(&outer));
    }
    return NULL;
}

static void *waits_for_outer(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(3 * round + 2);
        about_to_block();
        int64_t begin = clock_now();
        OK(pthread_mutex_lock(&outer));
        truth_waited(&outside, clock_now() - begin);
        truth_hold_begins(&outside);
        outside.acquisitions++;
        truth_hold_ends(&outside);
        OK(pthread_mutex_unlock(&outer));
        next_turn();
    }
    return NULL;
}

static void scene_chain(void)
{
    pthread_t second = begin_thread(waits_with_outer, NULL), third = begin_thread(waits_for_outer, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(3 * round);
        OK(pthread_mutex_lock(&mutex));
        writing.acquisitions++;
        next_turn();
        await_blocked();
        next_turn();
        await_blocked();
        sleep_ns(HOLD);
        OK(pthread_mutex_unlock(&mutex));
    }
    OK(pthread_join(second, NULL));
    OK(pthread_join(third, NULL));
    truth_print(&writing, "write", &mutex);
    truth_print(&outside, "write", &outer);
}

/* ---- giving up ----------------------------------------------------------------------------------------- */

static void *gives_up(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(pthread_mutex_trylock(&mutex) == EBUSY);
        writing.failed++;
        int64_t begin = clock_now();
        int64_t end = begin + HOLD;
        struct timespec until = {end / 1000000000, end % 1000000000};
        CHECK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
        truth_waited(&writing, clock_now() - begin);
    }
    return NULL;
}

static void scene_timed(void)
{
    OK(pthread_mutex_lock(&mutex));
    truth_hold_begins(&writing);
    writing.acquisitions++;
    OK(pthread_join(begin_thread(gives_up, NULL), NULL));
    truth_hold_ends(&writing);
    OK(pthread_mutex_unlock(&mutex));
    truth_print(&writing, "write", &mutex);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenes[] = {
        {"mutex", scene_mutex},           {"c11", scene_c11},
        {"reader", scene_reader_waits},   {"writer", scene_writer_waits},
        {"cond", scene_cond},             {"cond-timed", scene_cond_timed},
        {"recursive", scene_recursive},   {"nested", scene_nested},
        {"chain", scene_chain},
        {"timed", scene_timed},           {"many-locks", scene_many_locks},
        {"many-threads", scene_many_threads}, {"short-threads", scene_short_threads},
        {"samples", scene_samples},
    };
    CHECK(count == 2);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(scenes[i].name, arguments[1]) == 0) {
            scenes[i].run();
            return 0;
        }
    }
    FAIL("no scene %s", arguments[1]);
}
