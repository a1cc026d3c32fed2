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
    call_begins();
    OK(way->hold(way->lock));
    truth_hold_begins(way->holder, call_ends(&way->holder->unsure));
    way->holder->acquisitions++;
    next_turn();
    await_blocked();
    sleep_ns(HOLD);
    truth_hold_ends(way->holder, call_begins());
    OK(way->let_go(way->lock));
    call_ends(&way->holder->unsure);
}

NOINLINE static void waiter_site(const struct way *way)
{
    about_to_block();
    int64_t begin = call_begins();
    OK(way->wait(way->lock));
    int64_t end = call_ends(&way->waiter->unsure);
    truth_hold_begins(way->waiter, end);
    truth_waited(way->waiter, end - begin);
    way->waiter->acquisitions++;
    sleep_ns(HOLD / 2);
    truth_hold_ends(way->waiter, call_begins());
    OK(way->let_go(way->lock));
    call_ends(&way->waiter->unsure);
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

/* Two threads' accounts of one role; only the other one has waited. */
static void add_account(struct truth *truth, const struct truth *other)
{
    truth->acquisitions += other->acquisitions;
    truth->contended = other->contended;
    truth->waited = other->waited;
    truth->longest = other->longest;
    truth->held += other->held;
    truth->holds += other->holds;
    truth->unsure += other->unsure;
}

static void scene_mutex(void)
{
    one_waits_for_one((struct way){mutex_lock, mutex_lock, mutex_unlock, &mutex, &writing, &reading});
    add_account(&writing, &reading);
    truth_print(&writing, "write", &mutex);
}

static void scene_c11(void)
{
    mtx_t lock;
    CHECK(mtx_init(&lock, mtx_timed) == thrd_success);
    one_waits_for_one((struct way){c11_lock, c11_lock, c11_unlock, &lock, &writing, &reading});
    add_account(&writing, &reading);
    for (int i = 0; i < 3; i++) {
        call_begins();
        CHECK(mtx_trylock(&lock) == thrd_success);
        truth_hold_begins(&writing, call_ends(&writing.unsure));
        writing.acquisitions++;
        truth_hold_ends(&writing, call_begins());
        CHECK(mtx_unlock(&lock) == thrd_success);
        call_ends(&writing.unsure);
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

/* When, and for how long the signaller was without a CPU then. */
static int64_t signalled_at, signalled_late;

static void *waits_for_signals(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_mutex_lock(&mutex));
        about_to_block();
        int64_t begin = call_begins(), late = 0;
        OK(pthread_cond_wait(&cond, &mutex));
        int64_t end = call_ends(&late);
        late += signalled_late;
        signalled.unsure += late;
        back.unsure += late;
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
        signalled_at = call_begins();
        OK(pthread_cond_signal(&cond));
        signalled_late = 0;
        call_ends(&signalled_late);
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
        int64_t begin = call_begins();
        int64_t end = begin + HOLD;
        struct timespec until = {end / 1000000000, end % 1000000000};
        CHECK(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
        call_ends(&signalled.unsure);
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
            call_begins();
            OK(pthread_mutex_lock(&mutex));
            int64_t now = call_ends(&writing.unsure);
            writing.acquisitions++;
            if (depth == 0)
                truth_hold_begins(&writing, now);
        }
        sleep_ns(HOLD / 2);
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        truth_hold_ends(&writing, call_begins());
        OK(pthread_mutex_unlock(&mutex));
        call_ends(&writing.unsure);
        CHECK(pthread_mutex_unlock(&mutex) == EPERM);
    }
    truth_print(&writing, "write", &mutex);
}

static void take(pthread_mutex_t *lock, struct truth *truth)
{
    call_begins();
    OK(pthread_mutex_lock(lock));
    truth_hold_begins(truth, call_ends(&truth->unsure));
    truth->acquisitions++;
}

static void let_go(pthread_mutex_t *lock, struct truth *truth)
{
    truth_hold_ends(truth, call_begins());
    OK(pthread_mutex_unlock(lock));
    call_ends(&truth->unsure);
}

static void scene_nested(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        take(&outer, &outside);
        sleep_ns(HOLD / 4);
        take(&mutex, &writing);
        sleep_ns(HOLD / 4);
        /* Not in the reverse order, every other time. */
        if (round % 2) {
            let_go(&outer, &outside);
            sleep_ns(HOLD / 4);
            let_go(&mutex, &writing);
        } else {
            let_go(&mutex, &writing);
            sleep_ns(HOLD / 4);
            let_go(&outer, &outside);
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
        take(&outer, &outside);
        about_to_block();
        int64_t begin = call_begins();
        OK(pthread_mutex_lock(&mutex));
        truth_waited(&writing, call_ends(&writing.unsure) - begin);
        writing.acquisitions++;
        OK(pthread_mutex_unlock(&mutex));
        let_go(&outer, &outside);
    }
    return NULL;
}

static void *waits_for_outer(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(3 * round + 2);
        about_to_block();
        int64_t begin = call_begins();
        OK(pthread_mutex_lock(&outer));
        int64_t end = call_ends(&outside.unsure);
        truth_waited(&outside, end - begin);
        truth_hold_begins(&outside, end);
        outside.acquisitions++;
        let_go(&outer, &outside);
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
        int64_t begin = call_begins();
        int64_t end = begin + HOLD;
        struct timespec until = {end / 1000000000, end % 1000000000};
        CHECK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
        truth_waited(&writing, call_ends(&writing.unsure) - begin);
    }
    return NULL;
}

static void scene_timed(void)
{
    take(&mutex, &writing);
    OK(pthread_join(begin_thread(gives_up, NULL), NULL));
    let_go(&mutex, &writing);
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
        {"samples", scene_samples},       {"often", scene_often},
        {"queue", scene_queue},
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
