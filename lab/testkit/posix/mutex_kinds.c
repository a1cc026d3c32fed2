/* Every kind of mutex excludes, wakes, recurses and is destroyed as POSIX says:
 *  - lock/trylock/unlock in one thread and between threads; a blocked locker gets the lock after the unlock;
 *  - a recursive mutex is free after as many unlocks as locks, and for no other thread before;
 *  - a normal mutex may be unlocked by another thread (undefined in POSIX, works in glibc, programs rely on it);
 *  - destroy fails with EBUSY while locked (glibc; not for robust ones); an object may be initialised again;
 *  - all static initialisers. */
#include "check.h"

enum { THREADS = 4, ROUNDS = 5000 };
static pthread_mutex_t mutex;
static long counter;
static atomic_int inside;

static void *count(void *arg)
{
    pthread_mutex_t *m = arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 4 == 3) {
            int error;
            while ((error = pthread_mutex_trylock(m)) == EBUSY)
                sched_yield();
            CHECK(error == 0);
        } else {
            OK(pthread_mutex_lock(m));
        }
        CHECK(atomic_fetch_add(&inside, 1) == 0);
        counter++;
        CHECK(atomic_fetch_sub(&inside, 1) == 1);
        OK(pthread_mutex_unlock(m));
    }
    return NULL;
}

static void *lock_and_unlock(void *arg)
{
    OK(pthread_mutex_lock(arg));
    counter++;
    OK(pthread_mutex_unlock(arg));
    return NULL;
}

static void excludes(pthread_mutex_t *m)
{
    struct thread threads[THREADS];
    counter = 0;
    for (int i = 0; i < THREADS; i++)
        start(&threads[i], count, m);
    for (int i = 0; i < THREADS; i++)
        join_soon(&threads[i], "a counting thread");
    CHECK(counter == THREADS * (long)ROUNDS);
}

static void wakes(pthread_mutex_t *m)
{
    struct thread waiters[3];
    counter = 0;
    OK(pthread_mutex_lock(m));
    for (int i = 0; i < 3; i++)
        start(&waiters[i], lock_and_unlock, m);
    for (int i = 0; i < 3; i++)
        await_sleep(&waiters[i]);
    CHECK(counter == 0);
    OK(pthread_mutex_unlock(m));
    for (int i = 0; i < 3; i++)
        join_soon(&waiters[i], "a waiter after the unlock");
    CHECK(counter == 3);
}

static void owner_calls(pthread_mutex_t *m, int type, bool plain)
{
    OK(pthread_mutex_lock(m));
    CALL(other_trylock(m), EBUSY);
    if (type == PTHREAD_MUTEX_RECURSIVE) {
        for (int i = 0; i < 100; i++) {
            OK(pthread_mutex_lock(m));
            OK(pthread_mutex_trylock(m));
        }
        for (int i = 0; i < 200; i++) {
            OK(pthread_mutex_unlock(m));
            if (i % 50 == 0)
                CALL(other_trylock(m), EBUSY);
        }
    } else if (type == PTHREAD_MUTEX_ERRORCHECK) {
        CALL(pthread_mutex_lock(m), EDEADLK);
        /* glibc says EDEADLK here for robust and inheriting ones. */
        CALL_EITHER(pthread_mutex_trylock(m), EBUSY, plain ? EBUSY : EDEADLK);
    } else {
        CALL(pthread_mutex_trylock(m), EBUSY);
    }
    CALL(other_trylock(m), EBUSY);
    if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
        CALL(other_unlock(m), EPERM);
    CALL(other_trylock(m), EBUSY);
    OK(pthread_mutex_unlock(m));
    OK(other_trylock(m));
    OK(other_lock(m));
    if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
        CALL(pthread_mutex_unlock(m), EPERM);
    OK(pthread_mutex_trylock(m));
    OK(pthread_mutex_unlock(m));
}

static void handed_over(pthread_mutex_t *m)
{
    for (int i = 0; i < 3; i++) {
        OK(pthread_mutex_lock(m));
        OK(other_unlock(m));
    }
    OK(pthread_mutex_lock(m));
    struct thread waiter;
    counter = 0;
    start(&waiter, lock_and_unlock, m);
    await_sleep(&waiter);
    OK(other_unlock(m));
    join_soon(&waiter, "a waiter after an unlock by a third thread");
    CHECK(counter == 1);
    OK(pthread_mutex_trylock(m));
    OK(pthread_mutex_unlock(m));
}

static void everything(pthread_mutex_t *m, int type, bool plain)
{
    owner_calls(m, type, plain);
    wakes(m);
    excludes(m);
    if (plain && (type == PTHREAD_MUTEX_NORMAL || type == PTHREAD_MUTEX_ADAPTIVE_NP))
        handed_over(m);
}

int main(void)
{
    FOR_EACH_KIND(kind) {
        for (int again = 0; again < 2; again++) {
            mutex_make(&mutex, kind);
            everything(&mutex, kind->type, is_plain(kind));
            if (kind->robust == PTHREAD_MUTEX_STALLED) {
                OK(pthread_mutex_lock(&mutex));
                CALL(pthread_mutex_destroy(&mutex), EBUSY);
                CALL(other_trylock(&mutex), EBUSY);
                OK(pthread_mutex_unlock(&mutex));
            }
            OK(pthread_mutex_destroy(&mutex));
        }
    }

    check_context = "default attributes";
    OK(pthread_mutex_init(&mutex, NULL));
    everything(&mutex, PTHREAD_MUTEX_NORMAL, true);
    OK(pthread_mutex_destroy(&mutex));

    check_context = "static initialisers";
    static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
    static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    everything(&normal, PTHREAD_MUTEX_NORMAL, true);
    everything(&recursive, PTHREAD_MUTEX_RECURSIVE, true);
    everything(&errorcheck, PTHREAD_MUTEX_ERRORCHECK, true);
    everything(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP, true);
    OK(pthread_mutex_destroy(&normal));
    OK(pthread_mutex_destroy(&recursive));
    OK(pthread_mutex_destroy(&errorcheck));
    OK(pthread_mutex_destroy(&adaptive));

    check_context = "zeroed memory";
    pthread_mutex_t *zeroed = calloc(1, sizeof *zeroed);
    everything(zeroed, PTHREAD_MUTEX_NORMAL, true);
    OK(pthread_mutex_destroy(zeroed));
    free(zeroed);
    return 0;
}
