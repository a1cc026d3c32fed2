/* fork in a process with threads:
 *  - locks that are free at the fork work in the child, with threads made there, for every kind of object;
 *  - a normal or adaptive mutex and a read lock that the forking thread holds are held in the child, and it may
 *    release them; child and parent do not notice each other;
 *  - the same with threads queued on the mutex at the moment of the fork: they do not exist in the child.
 * A recursive or errorcheck mutex knows its owner by thread id, which changes in the child: glibc says EPERM to an
 * unlock there, and that or success is accepted. */
#include "check.h"

static pthread_mutex_t mutex, free_mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER, free_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long counter;
static int turn;
static atomic_int stop_idlers;

static void *idler(void *arg)
{
    (void)arg;
    await_flag(&stop_idlers, 1);
    return NULL;
}

static void *queued(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    counter++;
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

struct contest {
    pthread_mutex_t *mutex;
    pthread_rwlock_t *rwlock;
    int me;
};

static void *contender(void *arg)
{
    struct contest *contest = arg;
    for (int i = 0; i < 1000; i++) {
        struct timespec limit = in_ms(CLOCK_MONOTONIC, LONG_MS);
        OK(i % 2 ? pthread_mutex_lock(contest->mutex)
                 : pthread_mutex_clocklock(contest->mutex, CLOCK_MONOTONIC, &limit));
        counter++;
        OK(pthread_mutex_unlock(contest->mutex));
        OK(i % 4 ? pthread_rwlock_rdlock(contest->rwlock) : pthread_rwlock_wrlock(contest->rwlock));
        OK(pthread_rwlock_unlock(contest->rwlock));
    }
    OK(pthread_mutex_lock(contest->mutex));
    for (int i = 0; i < 200; i++) {
        while (turn != contest->me)
            OK(pthread_cond_wait(&cond, contest->mutex));
        turn = (turn + 1) % 4;
        OK(pthread_cond_broadcast(&cond));
    }
    OK(pthread_mutex_unlock(contest->mutex));
    return NULL;
}

/* Threads of the child use the objects as if nothing had happened. */
static void use_with_threads(pthread_mutex_t *m, pthread_rwlock_t *rw)
{
    struct thread threads[4];
    struct contest contests[4];
    counter = 0;
    turn = 0;
    for (int i = 0; i < 4; i++) {
        contests[i] = (struct contest){m, rw, i};
        start(&threads[i], contender, &contests[i]);
    }
    for (int i = 0; i < 4; i++)
        join_soon(&threads[i], "a thread of the child");
    CHECK(counter == 4000);
    OK(pthread_mutex_trylock(m));
    OK(pthread_mutex_unlock(m));
    OK(pthread_rwlock_trywrlock(rw));
    OK(pthread_rwlock_unlock(rw));
}

static void with_free_locks(void)
{
    pid_t child = fork_checked();
    if (child == 0) {
        use_with_threads(&free_mutex, &free_rwlock);
        _exit(0);
    }
    use_with_threads(&free_mutex, &free_rwlock);
    expect_exit(child);
}

static void with_held_locks(const struct mutex_kind *kind, int waiters)
{
    bool owner_by_id = kind->type == PTHREAD_MUTEX_RECURSIVE || kind->type == PTHREAD_MUTEX_ERRORCHECK;
    struct thread threads[8];
    counter = 0;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_rwlock_rdlock(&rwlock));
    for (int i = 0; i < waiters; i++) {
        start(&threads[i], queued, NULL);
        await_sleep(&threads[i]);
    }
    pid_t child = fork_checked();
    if (child == 0) {
        OK(pthread_rwlock_unlock(&rwlock));
        if (owner_by_id) {
            CALL_EITHER(pthread_mutex_unlock(&mutex), EPERM, 0);
            use_with_threads(&free_mutex, &rwlock);
        } else {
            CALL(pthread_mutex_trylock(&mutex), EBUSY);
            CALL(other_trylock(&mutex), EBUSY);
            OK(pthread_mutex_unlock(&mutex));
            use_with_threads(&mutex, &rwlock);
        }
        _exit(0);
    }
    expect_exit(child);
    CHECK(counter == 0);
    CALL(other_trylock(&mutex), EBUSY);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_unlock(&rwlock));
    for (int i = 0; i < waiters; i++)
        join_soon(&threads[i], "a thread that waited across the fork");
    CHECK(counter == waiters);
    OK(pthread_rwlock_trywrlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
}

int main(void)
{
    struct thread idlers[2];
    for (int threaded = 0; threaded < 2; threaded++) {
        if (threaded)
            for (int i = 0; i < 2; i++)
                start(&idlers[i], idler, NULL);
        FOR_EACH_KIND(kind) {
            if (!is_plain(kind))
                continue;
            mutex_make(&mutex, kind);
            mutex_make(&free_mutex, kind);
            with_free_locks();
            for (int waiters = 0; waiters <= 4; waiters += 2)
                with_held_locks(kind, waiters);
            OK(pthread_mutex_destroy(&mutex));
            OK(pthread_mutex_destroy(&free_mutex));
        }
    }
    atomic_store(&stop_idlers, 1);
    for (int i = 0; i < 2; i++)
        join(&idlers[i]);
    return 0;
}
