/* A thread that leaves a blocked lock call by unwinding: cancelled with PTHREAD_CANCEL_ASYNCHRONOUS, or by pthread_exit in a
 * signal handler (how programs cancel where there is no pthread_cancel), or by siglongjmp. Afterwards the lock works, for the
 * threads that queue before and behind it as well. argv[1]: "mutex", or "rwlock" (glibc counts such a waiter for ever). */
#include "check.h"
#include <setjmp.h>
#include <signal.h>

enum way { CANCEL, EXIT, JUMP, WAYS };
static const char *const WAY[] = {"cancelled", "exits in a handler", "jumps"};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int entered, cleaned, go_on;
static _Thread_local sigjmp_buf back;
static _Thread_local enum way leaves;

static struct timespec *later(clockid_t clock)
{
    static _Thread_local struct timespec time;
    time = in_ms(clock, 20 * LONG_MS);
    return &time;
}

static int m_lock(void) { return pthread_mutex_lock(&mutex); }
static int m_timed(void) { return pthread_mutex_timedlock(&mutex, later(CLOCK_REALTIME)); }
static int m_clock(void) { return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, later(CLOCK_MONOTONIC)); }
static int m_unlock(void) { return pthread_mutex_unlock(&mutex); }
static int r_read(void) { return pthread_rwlock_rdlock(&rwlock); }
static int r_timed(void) { return pthread_rwlock_timedrdlock(&rwlock, later(CLOCK_REALTIME)); }
static int r_write(void) { return pthread_rwlock_wrlock(&rwlock); }
static int r_timed_write(void) { return pthread_rwlock_timedwrlock(&rwlock, later(CLOCK_REALTIME)); }
static int r_unlock(void) { return pthread_rwlock_unlock(&rwlock); }

struct lock {
    const char *name;
    int (*wait)(void);
    int (*hold)(void);
    int (*unlock)(void);
};
static const struct lock MUTEX[] = {
    {"lock", m_lock, m_lock, m_unlock}, {"timedlock", m_timed, m_lock, m_unlock}, {"clocklock", m_clock, m_lock, m_unlock}};
static const struct lock RWLOCK[] = {{"rdlock", r_read, r_write, r_unlock},
                                     {"timedrdlock", r_timed, r_write, r_unlock},
                                     {"wrlock", r_write, r_write, r_unlock},
                                     {"wrlock beside a reader", r_write, r_read, r_unlock},
                                     {"timedwrlock", r_timed_write, r_read, r_unlock}};

static void on_signal(int signal)
{
    (void)signal;
    if (leaves == EXIT)
        pthread_exit(&cleaned);
    siglongjmp(back, 1);
}

static void clean(void *unused)
{
    (void)unused;
    atomic_fetch_add(&cleaned, 1);
}

struct job {
    const struct lock *lock;
    enum way way;
    bool stays;
};

static void *waiter(void *arg)
{
    const struct job *job = arg;
    int old;
    leaves = job->way;
    CHECK(pthread_setcanceltype(job->way == CANCEL ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, &old) == 0);
    pthread_cleanup_push(clean, NULL);
    if (sigsetjmp(back, 1) == 0) {
        CHECK(job->lock->wait() == 0);
        CHECK(job->stays);
        atomic_fetch_add(&entered, 1);
        CHECK(job->lock->unlock() == 0);
    }
    pthread_cleanup_pop(job->way == JUMP && !job->stays);
    return &cleaned;
}

static void leave(struct thread *thread, enum way way)
{
    if (way == CANCEL)
        CHECK(pthread_cancel(thread->handle) == 0);
    else
        CHECK(pthread_kill(thread->handle, SIGUSR1) == 0);
    void *result = join_soon(thread, WAY[way]);
    CHECK(result == (way == CANCEL ? PTHREAD_CANCELED : &cleaned));
}

/* Before, between and behind threads that stay. */
static void leaves_the_queue(const struct lock *lock, enum way way, int at, int others)
{
    static char name[80];
    snprintf(name, sizeof name, "%s %s, as %d of %d", lock->name, WAY[way], at, others + 1);
    check_context = name;
    struct thread threads[4];
    struct job jobs[4];
    atomic_store(&entered, 0);
    atomic_store(&cleaned, 0);
    CHECK(lock->hold() == 0);
    for (int i = 0; i <= others; i++) {
        jobs[i] = (struct job){lock, way, i != at};
        start(&threads[i], waiter, &jobs[i]);
        await_sleep(&threads[i]);
    }
    leave(&threads[at], way);
    CHECK(atomic_load(&cleaned) == 1 && atomic_load(&entered) == 0);
    CHECK(lock->unlock() == 0);
    for (int i = 0; i <= others; i++)
        if (i != at)
            CHECK(join_soon(&threads[i], "a waiter beside one that left") == &cleaned);
    CHECK(atomic_load(&entered) == others);
    CHECK(lock->hold() == 0);
    CHECK(lock->unlock() == 0);
}

/* ---- condition variables ------------------------------------------------------------------------------- */

static void unlock_held(void *unused)
{
    (void)unused;
    atomic_fetch_add(&cleaned, 1);
    OK(pthread_mutex_unlock(&mutex));
}

static void *sleeper(void *arg)
{
    (void)arg;
    leaves = EXIT;
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&entered, 1);
    pthread_cleanup_push(unlock_held, NULL);
    while (!atomic_load(&go_on))
        OK(pthread_cond_wait(&cond, &mutex));
    pthread_cleanup_pop(1);
    return &cleaned;
}

/* In the wait itself: the mutex is held when the handlers run. */
static void leaves_a_wait(void)
{
    struct thread threads[2];
    check_context = "a wait, left by pthread_exit";
    atomic_store(&entered, 0);
    atomic_store(&cleaned, 0);
    atomic_store(&go_on, 0);
    for (int i = 0; i < 2; i++) {
        start(&threads[i], sleeper, NULL);
        await_flag(&entered, i + 1);
        await_sleep(&threads[i]);
    }
    leave(&threads[0], EXIT);
    CHECK(atomic_load(&cleaned) == 1);
    OK(pthread_mutex_lock(&mutex));
    atomic_store(&go_on, 1);
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutex));
    CHECK(join_soon(&threads[1], "the other waiter") == &cleaned);
}

/* A wait whose deadline is past: what it sleeps for is its mutex. */
static void *reacquirer(void *arg)
{
    (void)arg;
    struct timespec past = in_ms(CLOCK_REALTIME, -1000);
    leaves = EXIT;
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&entered, 1);
    for (;;)
        CALL(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
}

/* Behind the wait, where the thread waits for its mutex: it does not hold it. */
static void leaves_a_reacquisition(void)
{
    struct thread threads[2];
    check_context = "a re-acquisition, left by pthread_exit";
    atomic_store(&entered, 0);
    for (int i = 0; i < 2; i++)
        start(&threads[i], reacquirer, NULL);
    await_flag(&entered, 2);
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < 2; i++)
        await_sleep(&threads[i]);
    for (int i = 0; i < 2; i++)
        leave(&threads[i], EXIT);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    bool mutexes = strcmp(argv[1], "mutex") == 0;
    struct sigaction action = {.sa_handler = on_signal};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    const struct lock *locks = mutexes ? MUTEX : RWLOCK;
    int count = mutexes ? (int)COUNT(MUTEX) : (int)COUNT(RWLOCK);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < count; i++)
            for (enum way way = 0; way < WAYS; way++)
                for (int others = 0; others < 3; others++)
                    leaves_the_queue(&locks[i], way, (round + i) % (others + 1), others);
        if (mutexes) {
            leaves_a_wait();
            leaves_a_reacquisition();
        }
    }
    return 0;
}
