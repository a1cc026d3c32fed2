/* Signal handlers that read a lock which the interrupted code does not use, at any moment of that code's own reads. POSIX does
 * not promise it; glibc's read-write locks allow it, and so programs do it. No reader may lose its hold, and no writer enter
 * with a reader inside. */
#include "check.h"

#define READERS 4

/* Ordinary code reads `outer`, handlers read `inner`; another thread writes both, now and then. */
static pthread_rwlock_t outer = PTHREAD_RWLOCK_INITIALIZER, inner = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int in_outer, in_inner, handled;
static atomic_bool stop;

static void look(const char *what, atomic_int *inside, int change)
{
    int seen = atomic_fetch_add(inside, change);
    if (seen < 0)
        FAIL("%s: a reader beside a writer", what);
}

static void read_inner(int signal)
{
    (void)signal;
    int saved = errno;
    OK(pthread_rwlock_rdlock(&inner));
    look("inner", &in_inner, 1);
    for (volatile int i = 0; i < 50; i++)
        ;
    look("inner", &in_inner, -1);
    OK(pthread_rwlock_unlock(&inner));
    atomic_fetch_add(&handled, 1);
    errno = saved;
}

static void *read_outer(void *arg)
{
    (void)arg;
    /* Each thread has a timer of its own, so that a signal comes while it runs. */
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    struct itimerspec every = {{0, 20000}, {0, 20000}};
    timer_t timer;
    event._sigev_un._tid = my_tid();
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &every, NULL) == 0);
    while (!atomic_load(&stop)) {
        for (int i = 0; i < 100; i++) {
            CHECK(pthread_rwlock_rdlock(&outer) == 0);
            look("outer", &in_outer, 1);
            look("outer", &in_outer, -1);
            CHECK(pthread_rwlock_unlock(&outer) == 0);
        }
    }
    CHECK(timer_delete(timer) == 0);
    return NULL;
}

static void write_to(const char *what, pthread_rwlock_t *lock, atomic_int *inside)
{
    struct timespec limit = in_ms(CLOCK_REALTIME, LONG_MS);
    int error = pthread_rwlock_timedwrlock(lock, &limit);
    if (error)
        STUCK("a writer of %s: %s", what, error_name(error));
    if (atomic_fetch_sub(inside, 1000) != 0)
        FAIL("%s: a writer beside readers", what);
    for (volatile int i = 0; i < 100; i++)
        ;
    atomic_fetch_add(inside, 1000);
    OK(pthread_rwlock_unlock(lock));
}

int main(void)
{
    struct thread readers[READERS];
    struct sigaction action = {.sa_handler = read_inner, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < READERS; i++)
        start(&readers[i], read_outer, NULL);
    int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(stress_seconds(2) * 1e9);
    int writes = 0;
    while (now_ns(CLOCK_MONOTONIC) < end) {
        sleep_ms(2);
        write_to("outer", &outer, &in_outer);
        write_to("inner", &inner, &in_inner);
        writes++;
    }
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++)
        join_soon(&readers[i], "a reader");
    printf("%d signals, %d writes\n", atomic_load(&handled), writes);
    OK(pthread_rwlock_trywrlock(&outer));
    OK(pthread_rwlock_trywrlock(&inner));
    return 0;
}
