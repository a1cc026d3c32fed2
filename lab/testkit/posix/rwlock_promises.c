/* A starved writer is promised the lock by its release. Calls that may wait leave the lock to it for a time, whatever the call;
 * calls that do not wait take it at once. Whether the lock is promised shows in a try to read: of a lock that prefers writers,
 * that does not come before a waiter. (glibc hands over; the writer owns the lock before it runs.) */
#include "check.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static atomic_int stopped, resumed, done;

static void stop_here(int signal)
{
    (void)signal;
    int mine = atomic_fetch_add(&stopped, 1) + 1;
    while (atomic_load(&resumed) < mine)
        sleep_us(100);
}

/* Stops a thread in its call until `resumed` is as large. */
static void stop(struct thread *thread)
{
    int before = atomic_load(&stopped);
    OK(pthread_kill(thread->handle, SIGUSR1));
    await_flag(&stopped, before + 1);
}

static void resume(void) { atomic_store(&resumed, atomic_load(&stopped)); }

static void *writes(void *arg)
{
    OK(pthread_rwlock_wrlock(&lock));
    atomic_store(&done, 1);
    OK(pthread_rwlock_unlock(&lock));
    return arg;
}

enum { WRITE, TIMED_WRITE, CLOCK_WRITE, READ, TIMED_READ, TRY, CALLS };

static int call(int which)
{
    struct timespec limit = in_ms(which == CLOCK_WRITE ? CLOCK_MONOTONIC : CLOCK_REALTIME, LONG_MS);
    switch (which) {
    case WRITE: return pthread_rwlock_wrlock(&lock);
    case TIMED_WRITE: return pthread_rwlock_timedwrlock(&lock, &limit);
    case CLOCK_WRITE: return pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &limit);
    case READ: return pthread_rwlock_rdlock(&lock);
    case TIMED_READ: return pthread_rwlock_timedrdlock(&lock, &limit);
    default: return pthread_rwlock_trywrlock(&lock);
    }
}

/* Whether the lock was promised to a writer that was stopped. */
static bool against_a_promise(int which)
{
    struct thread writer;
    atomic_store(&done, 0);
    OK(pthread_rwlock_wrlock(&lock));
    start(&writer, writes, NULL);
    await_sleep(&writer);
    sleep_ms(5);
    /* It is woken, and loses: it has starved. */
    stop(&writer);
    OK(pthread_rwlock_unlock(&lock));
    OK(pthread_rwlock_trywrlock(&lock));
    resume();
    sleep_ms(2);
    await_sleep(&writer);
    stop(&writer);
    OK(pthread_rwlock_unlock(&lock));
    int result = pthread_rwlock_tryrdlock(&lock);
    bool promised = result == EBUSY;
    if (!promised)
        OK(pthread_rwlock_unlock(&lock));
    if (promised) {
        int64_t begin = now_ns(CLOCK_MONOTONIC);
        OK(call(which));
        int64_t took = now_ns(CLOCK_MONOTONIC) - begin;
        if (which != TRY)
            CHECK(took >= 1000000); /* at once is earlier, whatever else the machine does */
        OK(pthread_rwlock_unlock(&lock));
    }
    CHECK(!atomic_load(&done));
    resume();
    join_soon(&writer, "the writer");
    return promised;
}

int main(void)
{
    CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = stop_here, .sa_flags = SA_RESTART}, NULL) == 0);
    for (int which = 0; which < CALLS; which++) {
        int promised = 0;
        for (int i = 0; promised < 3 && i < 300; i++)
            promised += against_a_promise(which);
        printf("call %d: %d promises\n", which, promised);
        CHECK(promised > 0);
    }
    return 0;
}
