/* Signals may interrupt any wait, with and without SA_RESTART: EINTR never comes out, no timed wait ends early, and
 * exclusion holds under a storm of timer signals whose handlers run in the middle of everything. */
#include "check.h"
#include <sys/time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int handled, done;
static bool go;

static void handler(int signal)
{
    (void)signal;
    atomic_fetch_add(&handled, 1);
}

static void install(int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
}

enum { LOCK, TIMEDLOCK, RDLOCK, WRLOCK, TIMEDRDLOCK, TIMEDWRLOCK, WAIT, TIMEDWAIT, WAYS };

static void *blocks(void *arg)
{
    int way = *(int *)arg;
    struct timespec late = in_ms(CLOCK_REALTIME, 10 * LONG_MS);
    switch (way) {
    case LOCK: OK(pthread_mutex_lock(&mutex)); break;
    case TIMEDLOCK: OK(pthread_mutex_timedlock(&mutex, &late)); break;
    case RDLOCK: OK(pthread_rwlock_rdlock(&rwlock)); break;
    case WRLOCK: OK(pthread_rwlock_wrlock(&rwlock)); break;
    case TIMEDRDLOCK: OK(pthread_rwlock_timedrdlock(&rwlock, &late)); break;
    case TIMEDWRLOCK: OK(pthread_rwlock_timedwrlock(&rwlock, &late)); break;
    default:
        OK(pthread_mutex_lock(&mutex));
        while (!go)
            OK(way == WAIT ? pthread_cond_wait(&cond, &mutex) : pthread_cond_timedwait(&cond, &mutex, &late));
    }
    atomic_store(&done, 1);
    if (way >= RDLOCK && way <= TIMEDWRLOCK)
        OK(pthread_rwlock_unlock(&rwlock));
    else
        OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void interrupted_waits(void)
{
    for (int way = 0; way < WAYS; way++) {
        struct thread thread;
        atomic_store(&done, 0);
        atomic_store(&handled, 0);
        go = false;
        if (way < RDLOCK)
            OK(pthread_mutex_lock(&mutex));
        OK(pthread_rwlock_wrlock(&rwlock));
        start(&thread, blocks, &way);
        await_sleep(&thread);
        for (int i = 0; i < 100; i++) {
            int before = atomic_load(&handled);
            CHECK(pthread_kill(thread.handle, SIGUSR1) == 0);
            await_flag(&handled, before + 1);
            if (i % 10 == 0)
                await_sleep(&thread);
        }
        CHECK(atomic_load(&done) == 0);
        OK(pthread_rwlock_unlock(&rwlock));
        if (way < RDLOCK) {
            OK(pthread_mutex_unlock(&mutex));
        } else if (way >= WAIT) {
            OK(pthread_mutex_lock(&mutex));
            go = true;
            OK(pthread_cond_signal(&cond));
            OK(pthread_mutex_unlock(&mutex));
        }
        join_soon(&thread, "an interrupted waiter");
    }
}

static void *kills(void *arg)
{
    pthread_t victim = *(pthread_t *)arg;
    while (!atomic_load(&done)) {
        pthread_kill(victim, SIGUSR1);
        sleep_us(300);
    }
    return NULL;
}

static void *holds(void *arg)
{
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_rwlock_wrlock(&rwlock));
    atomic_store((atomic_int *)arg, 1);
    await_flag(&done, 1);
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void deadlines_stand(void)
{
    struct thread killer, holder;
    pthread_t self = pthread_self();
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    atomic_int held = 0;
    atomic_store(&done, 0);
    start(&holder, holds, &held);
    await_flag(&held, 1);
    start(&killer, kills, &self);
    for (int i = 0; i < 5; i++) {
        struct timespec mono = in_ms(CLOCK_MONOTONIC, 15);
        CALL(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &mono), ETIMEDOUT);
        CHECK(has_come(CLOCK_MONOTONIC, mono));
        struct timespec real = in_ms(CLOCK_REALTIME, 15);
        CALL(pthread_rwlock_timedrdlock(&rwlock, &real), ETIMEDOUT);
        CHECK(has_come(CLOCK_REALTIME, real));
        mono = in_ms(CLOCK_MONOTONIC, 15);
        CALL(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &mono), ETIMEDOUT);
        CHECK(has_come(CLOCK_MONOTONIC, mono));
        OK(pthread_mutex_lock(&own));
        real = in_ms(CLOCK_REALTIME, 15);
        int error;
        while ((error = pthread_cond_timedwait(&cond, &own, &real)) == 0)
            ;
        CHECK(error == ETIMEDOUT && has_come(CLOCK_REALTIME, real));
        OK(pthread_mutex_unlock(&own));
    }
    atomic_store(&done, 1);
    join(&killer);
    join(&holder);
}

static long counter;
static atomic_bool stop;
static void *hammer(void *arg)
{
    uintptr_t rounds = 0;
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    while (!atomic_load(&stop)) {
        if (random_next(&seed) % 2) {
            OK(pthread_mutex_lock(&mutex));
        } else {
            struct timespec soon = in_us(CLOCK_MONOTONIC, random_next(&seed) % 200);
            errno = ERRNO_MARK;
            int error = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon);
            CHECK(errno == ERRNO_MARK && (error == 0 || error == ETIMEDOUT));
            if (error)
                continue;
        }
        counter++;
        rounds++;
        if (random_next(&seed) % 8 == 0) {
            struct timespec soon = in_us(CLOCK_REALTIME, random_next(&seed) % 100);
            int error = pthread_cond_timedwait(&cond, &mutex, &soon);
            CHECK(error == 0 || error == ETIMEDOUT);
        } else {
            OK(pthread_cond_signal(&cond));
        }
        OK(pthread_mutex_unlock(&mutex));
        OK(random_next(&seed) % 4 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
    }
    return (void *)rounds;
}

static void timer_storm(double seconds)
{
    struct thread threads[4];
    long total = 0;
    atomic_store(&stop, false);
    counter = 0;
    for (uintptr_t i = 0; i < 4; i++)
        start(&threads[i], hammer, (void *)(i + 1));
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0 && setitimer(ITIMER_PROF, &often, NULL) == 0);
    int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(seconds * 1e9);
    for (uint32_t i = 0; now_ns(CLOCK_MONOTONIC) < end; i++) {
        pthread_kill(threads[i % 4].handle, SIGUSR1);
        sleep_us(100);
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0 && setitimer(ITIMER_PROF, &never, NULL) == 0);
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++)
        total += (long)(uintptr_t)join_soon(&threads[i], "a thread in the signal storm");
    CHECK(counter == total);
    printf("%ld rounds, %d signals\n", total, atomic_load(&handled));
}

int main(void)
{
    for (int restart = 0; restart < 2; restart++) {
        install(restart ? SA_RESTART : 0);
        check_context = "interrupted";
        interrupted_waits();
        check_context = "deadlines";
        deadlines_stand();
        check_context = "storm";
        timer_storm(stress_seconds(2) / 2);
    }
    return 0;
}
