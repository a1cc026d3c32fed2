/* POSIX's example of the use of pthread_cond_destroy:
 *  - a condition variable may be destroyed, and its memory reused, as soon as all waiters have been woken, while
 *    they are still on their way out;
 *  - the last waiter to come out may destroy the mutex and the condition variable and free both;
 *  - a mutex may be destroyed as soon as it is unlocked and will not be locked again. */
#include "check.h"

enum { WAITERS = 4, ROUNDS = 1500 };

struct parts {
    pthread_cond_t *cond; /* alone on its page */
    pthread_mutex_t *mutex;
    int waiting, left;
    bool go;
    bool last_frees;
};

static size_t PAGE;
static atomic_int freed;

static void *waiter(void *arg)
{
    struct parts *parts = arg;
    pthread_mutex_t *mutex = parts->mutex;
    pthread_cond_t *cond = parts->cond;
    OK(pthread_mutex_lock(mutex));
    parts->waiting++;
    while (!parts->go) {
        if (parts->waiting % 2) {
            struct timespec deadline = in_ms(CLOCK_REALTIME, LONG_MS);
            OK(pthread_cond_timedwait(cond, mutex, &deadline));
        } else {
            OK(pthread_cond_wait(cond, mutex));
        }
    }
    bool last = --parts->left == 0, frees = parts->last_frees;
    OK(pthread_mutex_unlock(mutex));
    if (last && frees) {
        OK(pthread_cond_destroy(cond));
        OK(pthread_mutex_destroy(mutex));
        munmap(cond, PAGE);
        memset(mutex, 0xa5, sizeof *mutex);
        munmap(mutex, PAGE);
        atomic_fetch_add(&freed, 1);
    }
    return NULL;
}

static void round_of(bool last_frees, bool poison, bool signals, bool under_lock, const struct mutex_kind *kind)
{
    struct thread threads[WAITERS];
    struct parts parts = {.cond = map(PAGE, MAP_PRIVATE), .mutex = map(PAGE, MAP_PRIVATE), .left = WAITERS,
                          .last_frees = last_frees};
    mutex_make(parts.mutex, kind);
    OK(pthread_cond_init(parts.cond, NULL));
    for (int i = 0; i < WAITERS; i++)
        start(&threads[i], waiter, &parts);
    for (int waiting = 0; waiting < WAITERS; sched_yield()) {
        OK(pthread_mutex_lock(parts.mutex));
        waiting = parts.waiting;
        OK(pthread_mutex_unlock(parts.mutex));
    }

    OK(pthread_mutex_lock(parts.mutex));
    parts.go = true;
    if (!under_lock && !last_frees)
        OK(pthread_mutex_unlock(parts.mutex));
    if (signals)
        for (int i = 0; i < WAITERS; i++)
            OK(pthread_cond_signal(parts.cond));
    else
        OK(pthread_cond_broadcast(parts.cond));
    int freed_before = atomic_load(&freed);
    if (!last_frees) {
        OK(pthread_cond_destroy(parts.cond));
        if (poison)
            memset(parts.cond, 0xa5, sizeof *parts.cond);
        else
            munmap(parts.cond, PAGE);
    }
    if (under_lock || last_frees)
        OK(pthread_mutex_unlock(parts.mutex));
    for (int i = 0; i < WAITERS; i++)
        join_soon(&threads[i], "a waiter of a destroyed condition variable");

    if (last_frees) {
        CHECK(atomic_load(&freed) == freed_before + 1);
    } else {
        if (poison) {
            const unsigned char *bytes = (const unsigned char *)parts.cond;
            for (size_t i = 0; i < sizeof *parts.cond; i++)
                if (bytes[i] != 0xa5)
                    FAIL("byte %zu of the destroyed condition variable was written: %#x", i, bytes[i]);
            munmap(parts.cond, PAGE);
        }
        OK(pthread_mutex_destroy(parts.mutex));
        munmap(parts.mutex, PAGE);
    }
}

/* The same with only two threads, waiter and destroyer, that race without waiting for each other. */
struct one_shot {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool done;
};

static void *completes(void *arg)
{
    struct one_shot *shot = arg;
    OK(pthread_mutex_lock(&shot->mutex));
    shot->done = true;
    OK(pthread_cond_signal(&shot->cond));
    OK(pthread_mutex_unlock(&shot->mutex)); /* the last access */
    return NULL;
}

static void one_shots(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        struct thread thread;
        struct one_shot *shot = map(PAGE, MAP_PRIVATE);
        OK(pthread_mutex_init(&shot->mutex, NULL));
        OK(pthread_cond_init(&shot->cond, NULL));
        start(&thread, completes, shot);
        OK(pthread_mutex_lock(&shot->mutex));
        while (!shot->done)
            OK(pthread_cond_wait(&shot->cond, &shot->mutex));
        OK(pthread_mutex_unlock(&shot->mutex));
        OK(pthread_cond_destroy(&shot->cond));
        OK(pthread_mutex_destroy(&shot->mutex));
        munmap(shot, PAGE);
        join(&thread);
    }
}

int main(void)
{
    PAGE = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < ROUNDS; i++) {
        const struct mutex_kind *kind = &MUTEX_KINDS[i / 16 % 4]; /* the plain ones */
        check_context = kind->name;
        round_of(false, i & 1, i & 2, i & 4, kind);
        round_of(true, false, i & 2, i & 4, kind);
    }
    check_context = "robust and inherit";
    for (size_t k = 4; k < COUNT(MUTEX_KINDS); k++)
        for (int i = 0; i < 20; i++)
            round_of(i & 1, i & 2, i & 4, i & 8, &MUTEX_KINDS[k]);
    check_context = "one shot";
    one_shots(4000);
    return 0;
}
