/* A condition variable may be destroyed, and its memory unmapped, once each of its waiters has been signalled or has
 * timed out: also while a waiter that was signalled and then cancelled is on its way out. The destroying thread may hold the
 * mutex meanwhile, so it cannot wait for a thread that wants the mutex. */
#include "check.h"

struct parts {
    pthread_cond_t *cond; /* alone on its page */
    pthread_mutex_t mutex;
    int waiting;
    bool go;
    struct timespec deadline; /* of the waiter that times out */
};

static size_t PAGE;

static void unlock(void *mutex) { OK(pthread_mutex_unlock(mutex)); }

static void *waiter(void *arg)
{
    struct parts *parts = arg;
    OK(pthread_mutex_lock(&parts->mutex));
    parts->waiting++;
    pthread_cleanup_push(unlock, &parts->mutex);
    while (!parts->go)
        OK(pthread_cond_wait(parts->cond, &parts->mutex));
    pthread_cleanup_pop(1);
    return NULL;
}

/* The last step of the thread that destroys; it may hold the mutex. */
static void destroy(struct parts *parts)
{
    OK(pthread_cond_destroy(parts->cond));
    CHECK(mprotect(parts->cond, PAGE, PROT_NONE) == 0);
}

/* The last waiter, which no signal finds: it times out after the signal to the first, and destroys, with the mutex held. */
static void *times_out(void *arg)
{
    struct parts *parts = arg;
    OK(pthread_mutex_lock(&parts->mutex));
    parts->waiting++;
    for (bool signalled = false; !signalled;) {
        struct timespec deadline = in_ms(CLOCK_REALTIME, 2);
        parts->deadline = deadline;
        while (!has_come(CLOCK_REALTIME, deadline))
            CALL_EITHER(pthread_cond_timedwait(parts->cond, &parts->mutex, &deadline), ETIMEDOUT, 0);
        signalled = parts->go;
    }
    destroy(parts);
    OK(pthread_mutex_unlock(&parts->mutex));
    return NULL;
}

static void until_waiting(struct parts *parts, int count)
{
    for (int waiting = -1; waiting != count; sched_yield()) {
        OK(pthread_mutex_lock(&parts->mutex));
        waiting = parts->waiting;
        OK(pthread_mutex_unlock(&parts->mutex));
    }
}

/* The calling thread waits for a moment, so that the drop-in expects it to wait after a signal. */
static void habit(struct parts *parts)
{
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    OK(pthread_mutex_lock(&parts->mutex));
    for (int i = 0; i < 4; i++) {
        struct timespec soon = in_us(CLOCK_REALTIME, 20);
        CALL_EITHER(pthread_cond_timedwait(&never, &parts->mutex, &soon), ETIMEDOUT, 0);
    }
    OK(pthread_mutex_unlock(&parts->mutex));
    OK(pthread_cond_destroy(&never));
}

static void spin(uint32_t rounds)
{
    for (volatile uint32_t i = 0; i < rounds; i++)
        ;
}

/* The first waiter is signalled and cancelled; the others are woken or time out; then the condition variable goes. */
enum {
    UNDER_LOCK = 1,     /* with the mutex held */
    CANCEL_LATE = 2,    /* the cancellation comes after the destruction */
    BY_SIGNALS = 4,     /* not by a broadcast */
    HABIT = 8,          /* see above */
    FLAGS = 16,
};

static void round_of(int how, int others, uint32_t delay)
{
    struct thread threads[4];
    struct parts parts = {.cond = map(PAGE, MAP_PRIVATE), .mutex = PTHREAD_MUTEX_INITIALIZER};
    OK(pthread_cond_init(parts.cond, NULL));
    if (how & HABIT)
        habit(&parts);
    for (int i = 0; i <= others; i++) {
        start(&threads[i], waiter, &parts);
        until_waiting(&parts, i + 1);
    }
    if (delay % 3 == 0)
        await_sleep(&threads[0]);
    OK(pthread_mutex_lock(&parts.mutex));
    if (!(how & UNDER_LOCK)) {
        parts.go = true;
        OK(pthread_mutex_unlock(&parts.mutex));
    }
    OK(pthread_cond_signal(parts.cond));
    if (how & BY_SIGNALS)
        for (int i = 0; i < others; i++)
            OK(pthread_cond_signal(parts.cond));
    else
        OK(pthread_cond_broadcast(parts.cond));
    parts.go = true;
    if (how & CANCEL_LATE)
        destroy(&parts);
    spin(delay);
    cancel(&threads[0]);
    if (!(how & CANCEL_LATE))
        destroy(&parts);
    if (how & UNDER_LOCK)
        OK(pthread_mutex_unlock(&parts.mutex));
    for (int i = 0; i <= others; i++)
        join_soon(&threads[i], "a waiter of a destroyed condition variable");
    OK(pthread_mutex_destroy(&parts.mutex));
    munmap(parts.cond, PAGE);
}

/* The same, but the second waiter times out, and destroys. The signal has to find the first waiter: POSIX lets it unblock
 * either (glibc's may go to a waiter that has come since the last deadline and does not sleep yet, and the first then waits
 * for ever); the drop-in's goes to the thread that has waited longest. */
static void round_with_deadline(bool cancels, uint32_t delay)
{
    struct thread first, second;
    struct parts parts = {.cond = map(PAGE, MAP_PRIVATE), .mutex = PTHREAD_MUTEX_INITIALIZER};
    OK(pthread_cond_init(parts.cond, NULL));
    habit(&parts);
    start(&first, waiter, &parts);
    until_waiting(&parts, 1);
    start(&second, times_out, &parts);
    until_waiting(&parts, 2);
    OK(pthread_mutex_lock(&parts.mutex));
    parts.go = true;
    OK(pthread_cond_signal(parts.cond)); /* finds the first waiter */
    spin(delay);
    if (cancels)
        CHECK(pthread_cancel(first.handle) == 0);
    /* The second waiter's deadline passes before it can have the mutex. */
    while (delay % 2 && !has_come(CLOCK_REALTIME, parts.deadline))
        sched_yield();
    OK(pthread_mutex_unlock(&parts.mutex));
    join_soon(&first, "the signalled waiter");
    join_soon(&second, "the waiter that times out");
    OK(pthread_mutex_destroy(&parts.mutex));
    munmap(parts.cond, PAGE);
}

/* With the argument "deadline": rounds in which the destroying waiter timed out. */
int main(int argc, char **argv)
{
    uint32_t seed = 4711;
    PAGE = (size_t)sysconf(_SC_PAGESIZE);
    if (argc > 1 && strcmp(argv[1], "deadline") == 0) {
        for (int i = 0; i < 100; i++)
            round_with_deadline(i % 4, random_next(&seed) % 3000);
        return 0;
    }
    for (int i = 0; i < 40 * FLAGS; i++) {
        char context[64];
        snprintf(context, sizeof context, "round %d, flags %d", i, i % FLAGS);
        check_context = context;
        round_of(i % FLAGS, 1 + i / FLAGS % 3, random_next(&seed) % 4 ? random_next(&seed) % 3000 : 0);
    }
    return 0;
}
