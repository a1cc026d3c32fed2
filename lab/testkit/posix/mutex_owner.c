/* What other code reads in a recursive or an error-checking mutex: __data.__owner is the kernel's id of the thread that holds it,
 * as glibc knows that id, and 0 while it is free; __data.__kind is glibc's.
 *
 * Chromium's sandbox starts processes by a bare clone, after which glibc's id is the parent's. It finds that out by a locked recursive
 * mutex, puts the new id where glibc has its own (the kernel knows where), and expects to read the new one in a locked mutex. */
#include "check.h"
#include <sys/prctl.h>

extern pid_t _Fork(void) __attribute__((weak));

static pthread_mutex_t statics[] = {PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};
static pthread_mutex_t made[2];
static pthread_mutex_t *const mutexes[] = {&statics[0], &statics[1], &made[0], &made[1]};
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int waits;

#define OWNER(mutex) (*(volatile int *)&(mutex)->__data.__owner)

/* Each way to lock and to unlock, by the thread that glibc knows as `id`. */
static void by(int id)
{
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        pthread_mutex_t *mutex = mutexes[i];
        bool recursive = i % 2 == 0;
        struct timespec soon = in_ms(CLOCK_REALTIME, 10);
        CHECK(mutex->__data.__kind == (recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_ERRORCHECK));
        CHECK(OWNER(mutex) == 0);
        OK(pthread_mutex_lock(mutex));
        CHECK(OWNER(mutex) == id);
        CALL(pthread_mutex_lock(mutex), recursive ? 0 : EDEADLK);
        CHECK(OWNER(mutex) == id);
        if (recursive) {
            CHECK(mutex->__data.__count > 0);
            OK(pthread_mutex_unlock(mutex));
            CHECK(OWNER(mutex) == id);
        }
        CALL(pthread_cond_timedwait(&cond, mutex, &soon), ETIMEDOUT);
        CHECK(OWNER(mutex) == id);
        OK(pthread_mutex_unlock(mutex));
        CHECK(OWNER(mutex) == 0);
        OK(pthread_mutex_trylock(mutex));
        CHECK(OWNER(mutex) == id);
        OK(pthread_mutex_unlock(mutex));
        CHECK(OWNER(mutex) == 0 && mutex->__data.__count == 0);
        soon = in_ms(CLOCK_REALTIME, LONG_MS);
        OK(pthread_mutex_timedlock(mutex, &soon));
        CHECK(OWNER(mutex) == id);
        OK(pthread_mutex_unlock(mutex));
        CHECK(OWNER(mutex) == 0);
    }
}

static void *in_thread(void *arg)
{
    (void)arg;
    by(my_tid());
    return NULL;
}

/* While other threads wait for the mutex, and after it was released to wait. */
static void *wait_for(void *mutex)
{
    atomic_fetch_add(&waits, 1);
    OK(pthread_mutex_lock(mutex));
    CHECK(OWNER((pthread_mutex_t *)mutex) == my_tid());
    struct timespec soon = in_us(CLOCK_REALTIME, 500);
    CALL_EITHER(pthread_cond_timedwait(&cond, mutex, &soon), ETIMEDOUT, 0);
    CHECK(OWNER((pthread_mutex_t *)mutex) == my_tid());
    OK(pthread_cond_signal(&cond));
    CHECK(OWNER((pthread_mutex_t *)mutex) == my_tid());
    OK(pthread_mutex_unlock(mutex));
    return NULL;
}

static void contended(void)
{
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        struct thread threads[3];
        atomic_store(&waits, 0);
        OK(pthread_mutex_lock(mutexes[i]));
        for (int k = 0; k < 3; k++)
            start(&threads[k], wait_for, mutexes[i]);
        await_flag(&waits, 3);
        await_sleep(&threads[0]);
        CHECK(OWNER(mutexes[i]) == my_tid());
        OK(pthread_mutex_unlock(mutexes[i]));
        for (int k = 0; k < 3; k++)
            join_soon(&threads[k], "a waiter");
        CHECK(OWNER(mutexes[i]) == 0 && mutexes[i]->__data.__nusers == 0);
    }
}

int main(void)
{
    for (int i = 0; i < 2; i++)
        mutex_make(&made[i], &(struct mutex_kind)KIND("made", RECURSIVE + i));
    by(my_tid());
    struct thread thread;
    start(&thread, in_thread, NULL);
    join_soon(&thread, "a thread");
    contended();

    check_context = "fork";
    pid_t pid = fork_checked();
    if (pid == 0) {
        alarm(20);
        by(my_tid());
        contended();
        _exit(0);
    }
    expect_exit(pid);

    check_context = "_Fork";
    if (_Fork && (pid = _Fork()) == 0) {
        alarm(20);
        by(my_tid());
        _exit(0);
    }
    if (_Fork)
        expect_exit(pid);

    check_context = "clone";
    int parent = my_tid();
    int *known = NULL; /* where glibc keeps the id; not every kernel tells */
    if (prctl(PR_GET_TID_ADDRESS, &known) != 0 || (known && *known != parent))
        known = NULL;
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(20);
        by(parent);
        if (known) {
            *known = my_tid();
            by(my_tid());
            contended();
        }
        _exit(0);
    }
    expect_exit(pid);
    if (!known)
        fprintf(stderr, "the kernel does not tell where glibc keeps a thread's id\n");
    return 0;
}
