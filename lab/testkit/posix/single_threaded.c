/* A process with one thread, where a lock may skip its atomics, that gets threads while locks are held; and one
 * that goes back to one thread (glibc then still counts as multi-threaded, or not: both must work). */
#include "check.h"

static pthread_mutex_t mutexes[4];
static pthread_rwlock_t read_held = PTHREAD_RWLOCK_INITIALIZER, write_held = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int finished;
static bool signalled;

static void *needs_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < 4; i++) {
        CALL(pthread_mutex_trylock(&mutexes[i]), EBUSY);
        if (i == 1 || i == 2)
            CALL(pthread_mutex_unlock(&mutexes[i]), EPERM);
    }
    OK(pthread_rwlock_tryrdlock(&read_held));
    OK(pthread_rwlock_unlock(&read_held));
    CALL(pthread_rwlock_trywrlock(&read_held), EBUSY);
    CALL(pthread_rwlock_tryrdlock(&write_held), EBUSY);
    for (int i = 0; i < 4; i++) {
        OK(pthread_mutex_lock(&mutexes[i]));
        OK(pthread_mutex_unlock(&mutexes[i]));
    }
    OK(pthread_rwlock_wrlock(&read_held));
    OK(pthread_rwlock_unlock(&read_held));
    OK(pthread_rwlock_rdlock(&write_held));
    OK(pthread_rwlock_unlock(&write_held));
    OK(pthread_mutex_lock(&mutexes[0]));
    signalled = true;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutexes[0]));
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void alone(void)
{
    for (int i = 0; i < 4; i++) {
        const int type = MUTEX_KINDS[i].type;
        for (int round = 0; round < 1000; round++) {
            OK(pthread_mutex_lock(&mutexes[i]));
            if (type == PTHREAD_MUTEX_RECURSIVE) {
                OK(pthread_mutex_lock(&mutexes[i]));
                OK(pthread_mutex_unlock(&mutexes[i]));
            } else if (type == PTHREAD_MUTEX_ERRORCHECK) {
                CALL(pthread_mutex_lock(&mutexes[i]), EDEADLK);
            } else {
                CALL(pthread_mutex_trylock(&mutexes[i]), EBUSY);
                struct timespec past = {0, 0};
                CALL(pthread_mutex_timedlock(&mutexes[i], &past), ETIMEDOUT);
            }
            OK(pthread_mutex_unlock(&mutexes[i]));
            if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
                CALL(pthread_mutex_unlock(&mutexes[i]), EPERM);
            /* A mutex that is free is had whatever the time. */
            struct timespec past = {0, 0};
            OK(pthread_mutex_trylock(&mutexes[i]));
            if (type == PTHREAD_MUTEX_RECURSIVE) {
                OK(pthread_mutex_trylock(&mutexes[i]));
                OK(pthread_mutex_timedlock(&mutexes[i], &past));
                OK(pthread_mutex_unlock(&mutexes[i]));
                OK(pthread_mutex_unlock(&mutexes[i]));
            } else if (type == PTHREAD_MUTEX_ERRORCHECK) {
                CALL(pthread_mutex_trylock(&mutexes[i]), EBUSY);
                CALL(pthread_mutex_timedlock(&mutexes[i], &past), EDEADLK);
            }
            OK(pthread_mutex_unlock(&mutexes[i]));
            OK(pthread_mutex_timedlock(&mutexes[i], &past));
            OK(pthread_mutex_unlock(&mutexes[i]));
            OK(pthread_rwlock_rdlock(&read_held));
            OK(pthread_rwlock_rdlock(&read_held));
            CALL(pthread_rwlock_trywrlock(&read_held), EBUSY);
            OK(pthread_rwlock_unlock(&read_held));
            OK(pthread_rwlock_unlock(&read_held));
            OK(pthread_rwlock_wrlock(&read_held));
            CALL(pthread_rwlock_rdlock(&read_held), EDEADLK);
            OK(pthread_rwlock_unlock(&read_held));
            OK(pthread_cond_signal(&cond));
        }
        /* A wait that only time can end. */
        struct timespec soon = in_ms(CLOCK_REALTIME, 2);
        OK(pthread_mutex_lock(&mutexes[i]));
        CALL_EITHER(pthread_cond_timedwait(&cond, &mutexes[i], &soon), ETIMEDOUT, 0);
        OK(pthread_mutex_unlock(&mutexes[i]));
    }
}

int main(void)
{
    for (int i = 0; i < 4; i++)
        mutex_make(&mutexes[i], &MUTEX_KINDS[i]);
    for (int again = 0; again < 3; again++) {
        alone();
        struct timespec past = {0, 0};
        for (int i = 0; i < 4; i++) {
            switch ((i + again) % 3) {
            case 0: OK(pthread_mutex_lock(&mutexes[i])); break;
            case 1: OK(pthread_mutex_trylock(&mutexes[i])); break;
            default: OK(pthread_mutex_timedlock(&mutexes[i], &past));
            }
        }
        OK(pthread_rwlock_rdlock(&read_held));
        OK(pthread_rwlock_wrlock(&write_held));
        struct thread threads[3];
        atomic_store(&finished, 0);
        signalled = false;
        for (int i = 0; i < 3; i++)
            start(&threads[i], needs_all, NULL);
        for (int i = 0; i < 3; i++)
            await_sleep(&threads[i]);
        CHECK(atomic_load(&finished) == 0);
        for (int i = 3; i > 0; i--)
            OK(pthread_mutex_unlock(&mutexes[i]));
        OK(pthread_rwlock_unlock(&read_held));
        OK(pthread_rwlock_unlock(&write_held));
        while (!signalled)
            OK(pthread_cond_wait(&cond, &mutexes[0]));
        OK(pthread_mutex_unlock(&mutexes[0]));
        for (int i = 0; i < 3; i++)
            join_soon(&threads[i], "a thread that met locks held from before it");
        CHECK(atomic_load(&finished) == 3);
    }
    /* Held while alone, a child of a single-threaded process. */
    OK(pthread_mutex_lock(&mutexes[0]));
    pid_t child = fork_checked();
    if (child == 0) {
        OK(pthread_mutex_unlock(&mutexes[0]));
        OK(pthread_mutex_lock(&mutexes[0]));
        CALL(other_trylock(&mutexes[0]), EBUSY);
        _exit(0);
    }
    expect_exit(child);
    OK(pthread_mutex_unlock(&mutexes[0]));
    return 0;
}
