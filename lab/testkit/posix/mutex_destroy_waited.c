/* A mutex that waiters of a condition variable will re-acquire is in use: pthread_mutex_destroy says EBUSY, and the mutex stays
 * good. It can be destroyed once they are back, however their waits ended.
 *
 * "anew" as an argument: also if it was initialised anew while they waited, which POSIX leaves undefined. (glibc then says EBUSY
 * for ever.) */
#include "check.h"

enum { WAITERS = 3, WAYS = 3 };
static const char *const NAMES[] = {"signalled", "timed out", "cancelled"};

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting, sections;
static bool go, timed;

static void leave(void *none)
{
    (void)none;
    OK(pthread_mutex_unlock(&mutex));
}

static void *waiter(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    pthread_cleanup_push(leave, NULL);
    while (!go) {
        struct timespec deadline = in_ms(CLOCK_REALTIME, timed ? 50 : LONG_MS);
        CALL_EITHER(pthread_cond_timedwait(&cond, &mutex, &deadline), 0, ETIMEDOUT);
    }
    pthread_cleanup_pop(1);
    return NULL;
}

/* Sections that an unprotected mutex would let overlap. */
static void *worker(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2000; i++) {
        OK(pthread_mutex_lock(&mutex));
        int seen = sections;
        if (i % 100 == 0)
            sched_yield();
        sections = seen + 1;
        OK(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

static void destroyed_while_waited_for(const struct mutex_kind *kind, int way)
{
    struct thread waiters[WAITERS], workers[2];
    mutex_make(&mutex, kind);
    waiting = sections = 0;
    go = false;
    timed = way == 1;
    for (int i = 0; i < WAITERS; i++)
        start(&waiters[i], waiter, NULL);
    for (int now = 0; now < WAITERS; sched_yield()) {
        OK(pthread_mutex_lock(&mutex));
        now = waiting;
        if (now == WAITERS)
            CALL(pthread_mutex_destroy(&mutex), EBUSY); /* it is held */
        OK(pthread_mutex_unlock(&mutex));
    }
    CALL(pthread_mutex_destroy(&mutex), EBUSY);
    for (int i = 0; i < 2; i++)
        start(&workers[i], worker, NULL);
    for (int i = 0; i < 2; i++)
        join_soon(&workers[i], "a thread that uses the mutex");
    CHECK(sections == 2 * 2000);
    CALL(pthread_mutex_destroy(&mutex), EBUSY);

    if (way == 2)
        for (int i = 0; i < WAITERS; i++)
            CHECK(pthread_cancel(waiters[i].handle) == 0);
    OK(pthread_mutex_lock(&mutex));
    go = true;
    if (way == 0)
        OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < WAITERS; i++)
        join_soon(&waiters[i], "a waiter");
    OK(pthread_mutex_destroy(&mutex));
}

static void initialised_anew(const struct mutex_kind *kind)
{
    struct thread thread;
    mutex_make(&mutex, kind);
    waiting = 0;
    go = timed = false;
    start(&thread, waiter, NULL);
    for (int now = 0; now < 1; sched_yield()) {
        OK(pthread_mutex_lock(&mutex));
        now = waiting;
        OK(pthread_mutex_unlock(&mutex));
    }
    mutex_make(&mutex, kind);
    OK(pthread_mutex_lock(&mutex));
    go = true;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    join_soon(&thread, "a waiter whose mutex was initialised anew");
    OK(pthread_mutex_destroy(&mutex));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        CHECK(strcmp(argv[1], "anew") == 0);
        FOR_EACH_KIND(kind) {
            if (is_plain(kind))
                initialised_anew(kind);
        }
        return 0;
    }
    FOR_EACH_KIND(kind) {
        if (kind->robust)
            continue; /* glibc destroys those that are in use */
        for (int way = 0; way < WAYS; way++) {
            check_context = NAMES[way];
            destroyed_while_waited_for(kind, way);
        }
    }
    return 0;
}
