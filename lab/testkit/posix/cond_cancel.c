/* Every wait on a condition variable is a cancellation point (deferred cancellation):
 *  - the mutex is held again when the clean-up handlers run, whichever thread holds it at the moment of the cancellation;
 *  - a cancelled waiter consumes no signal that another waiter could have had;
 *  - a cancellation that is pending before the wait is acted upon; a disabled one is not, however long the wait;
 *  - waiters that remain in the queue are woken as if the cancelled one had never been there. */
#include "check.h"
#include <threads.h>

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting;
static bool go;
static atomic_int handled;

enum { WAIT, TIMEDWAIT, CLOCKWAIT, CND_WAIT, CND_TIMEDWAIT, WAYS };
static const char *const NAMES[] = {"wait", "timedwait", "clockwait", "cnd_wait", "cnd_timedwait"};

static int wait_by(int way)
{
    struct timespec real = in_ms(CLOCK_REALTIME, 10 * LONG_MS), mono = in_ms(CLOCK_MONOTONIC, 10 * LONG_MS);
    switch (way) {
    case WAIT: return pthread_cond_wait(&cond, &mutex);
    case TIMEDWAIT: return pthread_cond_timedwait(&cond, &mutex, &real);
    case CLOCKWAIT: return pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &mono);
    /* glibc's C11 types are its POSIX types. */
    case CND_WAIT: return cnd_wait((cnd_t *)&cond, (mtx_t *)&mutex);
    default: return cnd_timedwait((cnd_t *)&cond, (mtx_t *)&mutex, &real);
    }
}

static void handler(void *kind)
{
    int type = ((const struct mutex_kind *)kind)->type;
    CALL(other_trylock(&mutex), EBUSY);
    if (type == PTHREAD_MUTEX_ERRORCHECK)
        CALL(pthread_mutex_lock(&mutex), EDEADLK);
    waiting--;
    atomic_fetch_add(&handled, 1);
    OK(pthread_mutex_unlock(&mutex)); /* EPERM unless this thread holds it */
    if (type == PTHREAD_MUTEX_ERRORCHECK || type == PTHREAD_MUTEX_RECURSIVE)
        CALL(pthread_mutex_unlock(&mutex), EPERM);
}

struct job {
    const struct mutex_kind *kind;
    int way;
    bool pending, disabled;
    atomic_int step;
};

static void *waiter(void *arg)
{
    struct job *job = arg;
    int old;
    if (job->pending || job->disabled)
        CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0);
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    if (job->pending) {
        atomic_store(&job->step, 1);
        await_flag(&job->step, 2);
        CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0);
    }
    pthread_cleanup_push(handler, (void *)job->kind);
    while (!go)
        OK(wait_by(job->way));
    waiting--;
    OK(pthread_mutex_unlock(&mutex));
    pthread_cleanup_pop(0);
    if (job->disabled) {
        atomic_store(&job->step, 1);
        CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0);
        pthread_testcancel();
        FAIL("the cancellation was forgotten");
    }
    return NULL;
}

static void until_waiting(int count)
{
    for (int64_t begun = now_ns(CLOCK_MONOTONIC);; let_run(begun)) {
        OK(pthread_mutex_lock(&mutex));
        int now = waiting;
        OK(pthread_mutex_unlock(&mutex));
        if (now == count)
            return;
    }
}

static void cancelled_while_waiting(const struct mutex_kind *kind, int way)
{
    struct thread thread;
    struct job job = {.kind = kind, .way = way};
    /* Asleep. */
    atomic_store(&handled, 0);
    go = false;
    start(&thread, waiter, &job);
    until_waiting(1);
    await_sleep(&thread);
    CHECK(pthread_cancel(thread.handle) == 0);
    CHECK(join_soon(&thread, "a cancelled waiter") == PTHREAD_CANCELED);
    CHECK(atomic_load(&handled) == 1 && waiting == 0);
    OK(other_trylock(&mutex));

    /* Perhaps not asleep yet. */
    start(&thread, waiter, &job);
    until_waiting(1);
    CHECK(pthread_cancel(thread.handle) == 0);
    CHECK(join_soon(&thread, "a waiter cancelled at once") == PTHREAD_CANCELED);
    OK(other_trylock(&mutex));

    /* While another thread holds the mutex. */
    atomic_store(&handled, 0);
    start(&thread, waiter, &job);
    until_waiting(1);
    OK(pthread_mutex_lock(&mutex));
    CHECK(pthread_cancel(thread.handle) == 0);
    sleep_ms(5);
    CHECK(atomic_load(&handled) == 0);
    OK(pthread_mutex_unlock(&mutex));
    CHECK(join_soon(&thread, "a waiter cancelled under the mutex") == PTHREAD_CANCELED);
    CHECK(atomic_load(&handled) == 1);
    OK(other_trylock(&mutex));

    /* Pending before the call. */
    job.pending = true;
    start(&thread, waiter, &job);
    await_flag(&job.step, 1);
    CHECK(pthread_cancel(thread.handle) == 0);
    atomic_store(&job.step, 2);
    CHECK(join_soon(&thread, "a waiter with a pending cancellation") == PTHREAD_CANCELED);
    OK(other_trylock(&mutex));

    /* Disabled: the wait goes on until the signal. */
    job = (struct job){.kind = kind, .way = way, .disabled = true};
    start(&thread, waiter, &job);
    until_waiting(1);
    CHECK(pthread_cancel(thread.handle) == 0);
    sleep_ms(5);
    CHECK(atomic_load(&job.step) == 0);
    OK(pthread_mutex_lock(&mutex));
    CHECK(waiting == 1);
    go = true;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutex));
    CHECK(join_soon(&thread, "a waiter that disabled its cancellation") == PTHREAD_CANCELED);
    CHECK(atomic_load(&job.step) == 1);
    OK(other_trylock(&mutex));
}

/* Two waiters, one signal, one cancellation, at the same time. */
static void *single_wait(void *arg)
{
    struct job *job = arg;
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    pthread_cleanup_push(handler, (void *)job->kind);
    OK(wait_by(job->way)); /* no loop: what matters is whether it returns */
    waiting--;
    OK(pthread_mutex_unlock(&mutex));
    pthread_cleanup_pop(0);
    return NULL;
}

static void spin(uint32_t rounds)
{
    for (volatile uint32_t i = 0; i < rounds; i++)
        ;
}

static void no_signal_lost(const struct mutex_kind *kind, int rounds)
{
    uint32_t seed = 12345;
    int cancelled = 0;
    for (int i = 0; i < rounds; i++) {
        struct thread threads[2];
        struct job job = {.kind = kind, .way = i % WAYS};
        for (int t = 0; t < 2; t++) {
            start(&threads[t], single_wait, &job);
            until_waiting(t + 1);
        }
        if (random_next(&seed) % 2)
            await_sleep(&threads[1]);
        struct thread *victim = &threads[i / 2 % 2], *survivor = &threads[1 - i / 2 % 2];
        bool cancel_first = random_next(&seed) % 2, locked = random_next(&seed) % 2;
        uint32_t between = random_next(&seed) % 4 ? random_next(&seed) % 3000 : 0;
        if (locked)
            OK(pthread_mutex_lock(&mutex));
        if (cancel_first) {
            CHECK(pthread_cancel(victim->handle) == 0);
            spin(between);
        }
        OK(pthread_cond_signal(&cond));
        if (!cancel_first) {
            spin(between);
            cancel(victim);
        }
        if (locked)
            OK(pthread_mutex_unlock(&mutex));
        if (join_soon(victim, "the cancelled one of two waiters") == PTHREAD_CANCELED)
            cancelled++;
        else
            OK(pthread_cond_signal(&cond)); /* the first one was spent on the victim */
        join_soon(survivor, "the waiter whose signal must not die with the cancelled one");
        CHECK(waiting == 0);
    }
    printf("%s: %d of %d victims were cancelled before they were woken\n", kind->name, cancelled, rounds);
}

/* A queue of waiters loses some from its middle. */
static void queue_with_gaps(const struct mutex_kind *kind, int rounds)
{
    enum { WAITERS = 8 };
    uint32_t seed = 99;
    for (int i = 0; i < rounds; i++) {
        struct thread threads[WAITERS];
        struct job job = {.kind = kind, .way = i % WAYS};
        for (int t = 0; t < WAITERS; t++) {
            start(&threads[t], single_wait, &job);
            until_waiting(t + 1);
        }
        unsigned victims = random_next(&seed) % (1 << WAITERS);
        bool at_once = random_next(&seed) % 2;
        for (int t = 0; t < WAITERS; t++)
            if (victims >> t & 1)
                CHECK(pthread_cancel(threads[t].handle) == 0);
        for (int t = 0; t < WAITERS && !at_once; t++)
            if (victims >> t & 1)
                CHECK(join_soon(&threads[t], "a victim in the queue") == PTHREAD_CANCELED);
        if (at_once || random_next(&seed) % 2) {
            OK(pthread_cond_broadcast(&cond));
        } else {
            for (int t = 0; t < WAITERS; t++)
                if (!(victims >> t & 1))
                    OK(pthread_cond_signal(&cond));
        }
        for (int t = 0; t < WAITERS; t++)
            if (at_once || !(victims >> t & 1))
                join_soon(&threads[t], "a survivor in the queue");
        CHECK(waiting == 0);
    }
}

int main(void)
{
    FOR_EACH_KIND(kind) {
        mutex_make(&mutex, kind);
        for (int way = 0; way < WAYS; way++) {
            check_context = NAMES[way];
            cancelled_while_waiting(kind, way);
        }
        check_context = kind->name;
        no_signal_lost(kind, is_plain(kind) ? 1500 : 100);
        queue_with_gaps(kind, is_plain(kind) ? 150 : 20);
        OK(pthread_mutex_destroy(&mutex));
        OK(pthread_cond_destroy(&cond));
        OK(pthread_cond_init(&cond, NULL));
    }
    return 0;
}
