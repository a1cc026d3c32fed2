/* A lock that is free at a waiter's deadline is the waiter's: the thread that was woken for it is in a signal handler. */
#include "check.h"

enum { WAIT_MS = 600, LEFT_MS = 15, HANDLER_MS = 300, ROUNDS = 3, MOST_ROUNDS = 30 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int is_rwlock;
static _Atomic int64_t deadline_ns, released_ns;
static atomic_int timed_out;

static int lock(void)
{
    return is_rwlock ? pthread_rwlock_wrlock(&rwlock) : pthread_mutex_lock(&mutex);
}

static int timed(const struct timespec *deadline)
{
    return is_rwlock ? pthread_rwlock_timedwrlock(&rwlock, deadline) : pthread_mutex_timedlock(&mutex, deadline);
}

static int unlock(void)
{
    return is_rwlock ? pthread_rwlock_unlock(&rwlock) : pthread_mutex_unlock(&mutex);
}

static void sleeps(int signal)
{
    (void)signal;
    sleep_ms(HANDLER_MS);
}

static void *first(void *unused)
{
    OK(lock());
    OK(unlock());
    return unused;
}

static void *second(void *unused)
{
    struct timespec deadline = in_ms(CLOCK_REALTIME, WAIT_MS + 20 + LEFT_MS);
    atomic_store(&deadline_ns, deadline.tv_sec * INT64_C(1000000000) + deadline.tv_nsec);
    int error = timed(&deadline);
    CHECK(error == 0 || error == ETIMEDOUT);
    if (error == 0)
        OK(unlock());
    atomic_store(&timed_out, error != 0);
    return unused;
}

int main(int count, char **arguments)
{
    is_rwlock = count > 1 && strcmp(arguments[1], "rwlock") == 0;
    struct sigaction action = {.sa_handler = sleeps};
    OK(sigaction(SIGUSR1, &action, NULL));
    for (int round = 0, counted = 0; counted < ROUNDS; round++) {
        CHECK(round < MOST_ROUNDS);
        pthread_t threads[2];
        OK(lock());
        OK(pthread_create(&threads[0], NULL, first, NULL));
        sleep_ms(20);
        OK(pthread_create(&threads[1], NULL, second, NULL));
        sleep_ms(WAIT_MS);
        OK(pthread_kill(threads[0], SIGUSR1));
        sleep_ms(20);
        OK(unlock());
        atomic_store(&released_ns, now_ns(CLOCK_REALTIME));
        OK(pthread_join(threads[0], NULL));
        OK(pthread_join(threads[1], NULL));
        /* On a busy machine the release may come too late: such a round says nothing. */
        if (atomic_load(&released_ns) > atomic_load(&deadline_ns) - LEFT_MS * 1000000 / 2)
            continue;
        CHECK(!atomic_load(&timed_out));
        counted++;
    }
    return 0;
}
