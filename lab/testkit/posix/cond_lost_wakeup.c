/* No wake-up is lost, and none is stolen.
 *
 * 1. A lock made of a condition variable ("master lock", as in some language runtimes): every release signals one
 *    waiter. One lost signal stops all threads.
 * 2. Tokens: a token is posted only while enough untimed waiters wait, with exactly one signal; a waiter that
 *    returns ETIMEDOUT takes no token. POSIX: a timed wait that fails consumes no signal if another thread waits. So
 *    every token is taken.
 * 3. Barriers by broadcast, reused at once: every thread passes every generation.
 *
 * glibc before 2.41 can lose a wake-up in 1 and 2 (bug 25847): there a stop is reported, not failed. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_bool stop;
static atomic_long progress;

/* Watches `progress` for `seconds`, then sets `stop`. Nothing has to move fast, but it has to move. */
static void watch(double seconds, const char *what)
{
    int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(seconds * 1e9), moved = now_ns(CLOCK_MONOTONIC);
    long seen = -1;
    for (int64_t now; (now = now_ns(CLOCK_MONOTONIC)) < end;) {
        if (atomic_load(&progress) != seen) {
            seen = atomic_load(&progress);
            moved = now;
        } else if (now - moved > (on_spinpark() ? 30 : 5) * 1000000000LL) {
            if (on_spinpark())
                STUCK("%s: no progress after %ld steps", what, seen);
            printf("%s: glibc lost a wake-up after %ld steps (bug 25847)\n", what, seen);
            fflush(stdout);
            _exit(0);
        }
        /* The last look is at a state that still has to move. */
        end = now - moved > 100000000 ? now + 1000000000 : end;
        sleep_ms(20);
    }
    atomic_store(&stop, true);
    printf("%s: %ld steps\n", what, atomic_load(&progress));
}

static bool busy;
static atomic_int owners;
static void *master_lock_user(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    while (!atomic_load(&stop)) {
        OK(pthread_mutex_lock(&mutex));
        while (busy)
            OK(pthread_cond_wait(&cond, &mutex));
        busy = true;
        OK(pthread_mutex_unlock(&mutex));
        CHECK(atomic_fetch_add(&owners, 1) == 0);
        atomic_fetch_add(&progress, 1);
        if (random_next(&seed) % 16 == 0)
            sched_yield();
        CHECK(atomic_fetch_sub(&owners, 1) == 1);
        OK(pthread_mutex_lock(&mutex));
        busy = false;
        if (arg && random_next(&seed) % 2) {
            OK(pthread_cond_signal(&cond));
            OK(pthread_mutex_unlock(&mutex));
        } else {
            OK(pthread_mutex_unlock(&mutex));
            OK(pthread_cond_signal(&cond));
        }
    }
    return NULL;
}

static void master_lock(int threads, double seconds)
{
    struct thread users[threads];
    atomic_store(&stop, false);
    atomic_store(&progress, 0);
    busy = false;
    for (int i = 0; i < threads; i++)
        start(&users[i], master_lock_user, (void *)(uintptr_t)(i * 7919 + 1));
    watch(seconds, "master lock");
    for (int i = 0; i < threads; i++)
        join_soon(&users[i], "a user of the master lock");
}

static int tokens, untimed_waiting;
static void *untimed_taker(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    for (;;) {
        untimed_waiting++;
        while (tokens == 0 && !atomic_load(&stop))
            OK(pthread_cond_wait(&cond, &mutex));
        untimed_waiting--;
        if (tokens == 0)
            break;
        tokens--;
        atomic_fetch_add(&progress, 1);
    }
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *timed_taker(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    OK(pthread_mutex_lock(&mutex));
    while (!atomic_load(&stop)) {
        struct timespec deadline = in_us(CLOCK_MONOTONIC, random_next(&seed) % 150);
        int error = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &deadline);
        CHECK(error == 0 || error == ETIMEDOUT);
        if (error == 0 && tokens > 0) {
            tokens--;
            atomic_fetch_add(&progress, 1);
        }
    }
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *poster(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    while (!atomic_load(&stop)) {
        OK(pthread_mutex_lock(&mutex));
        /* `untimed_waiting` counts those that were woken and did not run yet as well; each of them stands for
         * a token that is still there. */
        bool post = untimed_waiting > tokens;
        bool early = random_next(&seed) % 2;
        if (post) {
            tokens++;
            if (early)
                OK(pthread_cond_signal(&cond));
        }
        OK(pthread_mutex_unlock(&mutex));
        if (post && !early)
            OK(pthread_cond_signal(&cond));
        if (!post || random_next(&seed) % 8 == 0)
            sched_yield();
    }
    return NULL;
}

static void token_mix(double seconds)
{
    struct thread threads[9];
    atomic_store(&stop, false);
    atomic_store(&progress, 0);
    tokens = untimed_waiting = 0;
    for (uintptr_t i = 0; i < 9; i++)
        start(&threads[i], i < 4 ? untimed_taker : i < 7 ? timed_taker : poster, (void *)(i + 1));
    watch(seconds, "tokens");
    for (int i = 8; i >= 4; i--)
        join_soon(&threads[i], "a timed taker or a poster");
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 4; i++)
        join_soon(&threads[i], "an untimed taker");
    CHECK(tokens == 0);
}

enum { PARTIES = 6 };
static int arrived;
static long generation;
static void *party(void *arg)
{
    for (long mine = 0;; mine++) {
        OK(pthread_mutex_lock(&mutex));
        CHECK(generation == mine);
        if (++arrived == PARTIES) {
            arrived = 0;
            generation++;
            atomic_fetch_add(&progress, 1);
            if (atomic_load(&stop))
                generation = -1;
            OK(pthread_cond_broadcast(&cond));
        } else {
            while (generation == mine)
                OK(pthread_cond_wait(&cond, &mutex));
        }
        bool end = generation < 0;
        if (arg)
            sched_yield();
        OK(pthread_mutex_unlock(&mutex));
        if (end)
            return NULL;
    }
}

static void barriers(double seconds)
{
    struct thread parties[PARTIES];
    atomic_store(&stop, false);
    atomic_store(&progress, 0);
    arrived = 0;
    generation = 0;
    for (uintptr_t i = 0; i < PARTIES; i++)
        start(&parties[i], party, i == 0 ? &mutex : NULL);
    watch(seconds, "barriers");
    for (int i = 0; i < PARTIES; i++)
        join_soon(&parties[i], "a party of the barrier");
}

int main(void)
{
    double seconds = stress_seconds(6) / 6;
    master_lock(3, seconds);
    master_lock(8, seconds);
    token_mix(seconds * 2);
    barriers(seconds);
    /* The same on condition variables of the other two sorts. */
    pthread_condattr_t attr;
    CHECK(pthread_condattr_init(&attr) == 0 && pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    OK(pthread_cond_destroy(&cond));
    OK(pthread_cond_init(&cond, &attr));
    token_mix(seconds);
    return 0;
}
