/* Mixed locks under load: argv[1] threads, for SPINPARK_STRESS_SECONDS (3). Half of the threads live as long as the
 * run; the others are cancelled and replaced all the time. Each step takes one of a few locks of every plain kind in
 * one of the possible ways (lock, try, deadlines on both clocks), sometimes two of them nested in a fixed order,
 * waits on or wakes a condition variable, reads or writes under read-write locks.
 * Invariants: mutual exclusion, counters that add up, readers see whole writes, tokens are neither lost nor made, the
 * run ends, everything is free and destroyable afterwards. */
#include "check.h"

enum { MUTEXES = 6, RWLOCKS = 3, MAX_THREADS = 512 };

static struct {
    pthread_mutex_t mutex;
    atomic_int inside;
    long counter;
    char pad[64];
} mutexes[MUTEXES];

static struct {
    pthread_rwlock_t lock;
    atomic_int readers, writers;
    volatile long a, b, c;
    char pad[64];
} rwlocks[RWLOCKS];

/* A bounded queue of tokens. */
static pthread_mutex_t queue_mutex;
static pthread_cond_t not_empty, not_full;
static long queued, produced, consumed;
enum { CAPACITY = 8 };

static atomic_bool stop;
static atomic_long steps, cancellations, counted, written;
static _Atomic int64_t worst_wait_ns;

static int lock_somehow(pthread_mutex_t *mutex, uint32_t *seed)
{
    struct timespec t;
    switch (random_next(seed) % 8) {
    case 0: return pthread_mutex_trylock(mutex);
    case 1: t = in_us(CLOCK_REALTIME, random_next(seed) % 300); return pthread_mutex_timedlock(mutex, &t);
    case 2:
        t = in_us(CLOCK_MONOTONIC, random_next(seed) % 3000);
        return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &t);
    default: return pthread_mutex_lock(mutex);
    }
}

static int rwlock_somehow(pthread_rwlock_t *lock, bool write, uint32_t *seed)
{
    struct timespec t;
    switch (random_next(seed) % 6) {
    case 0: return write ? pthread_rwlock_trywrlock(lock) : pthread_rwlock_tryrdlock(lock);
    case 1:
        t = in_us(CLOCK_REALTIME, random_next(seed) % 300);
        return write ? pthread_rwlock_timedwrlock(lock, &t) : pthread_rwlock_timedrdlock(lock, &t);
    case 2:
        t = in_us(CLOCK_MONOTONIC, random_next(seed) % 3000);
        return write ? pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &t)
                     : pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &t);
    default: return write ? pthread_rwlock_wrlock(lock) : pthread_rwlock_rdlock(lock);
    }
}

static bool in_time(int error)
{
    CHECK(error == 0 || error == EBUSY || error == ETIMEDOUT);
    return error == 0;
}

static void critical_work(uint32_t *seed)
{
    uint32_t r = random_next(seed) % 256;
    if (r == 0)
        sched_yield();
    for (volatile uint32_t i = 0; i < r; i++)
        ;
}

static void mutex_step(uint32_t *seed)
{
    int first = (int)(random_next(seed) % MUTEXES), second = (int)(random_next(seed) % MUTEXES);
    if (!in_time(lock_somehow(&mutexes[first].mutex, seed)))
        return;
    CHECK(atomic_fetch_add(&mutexes[first].inside, 1) == 0);
    mutexes[first].counter++;
    long done = 1;
    if (second > first && in_time(lock_somehow(&mutexes[second].mutex, seed))) {
        CHECK(atomic_fetch_add(&mutexes[second].inside, 1) == 0);
        mutexes[second].counter++;
        done++;
        critical_work(seed);
        CHECK(atomic_fetch_sub(&mutexes[second].inside, 1) == 1);
        OK(pthread_mutex_unlock(&mutexes[second].mutex));
    }
    critical_work(seed);
    CHECK(atomic_fetch_sub(&mutexes[first].inside, 1) == 1);
    OK(pthread_mutex_unlock(&mutexes[first].mutex));
    atomic_fetch_add(&counted, done);
}

static void rwlock_step(uint32_t *seed)
{
    int n = (int)(random_next(seed) % RWLOCKS);
    bool write = random_next(seed) % 4 == 0;
    if (!in_time(rwlock_somehow(&rwlocks[n].lock, write, seed)))
        return;
    if (write) {
        CHECK(atomic_fetch_add(&rwlocks[n].writers, 1) == 0 && atomic_load(&rwlocks[n].readers) == 0);
        rwlocks[n].a++;
        critical_work(seed);
        rwlocks[n].b++;
        rwlocks[n].c++;
        CHECK(atomic_fetch_sub(&rwlocks[n].writers, 1) == 1);
        atomic_fetch_add(&written, 1);
    } else {
        atomic_fetch_add(&rwlocks[n].readers, 1);
        CHECK(atomic_load(&rwlocks[n].writers) == 0);
        long a = rwlocks[n].a;
        critical_work(seed);
        CHECK(a == rwlocks[n].b && a == rwlocks[n].c);
        atomic_fetch_sub(&rwlocks[n].readers, 1);
    }
    OK(pthread_rwlock_unlock(&rwlocks[n].lock));
}

static void unlock_handler(void *mutex) { OK(pthread_mutex_unlock(mutex)); }

static void queue_step(uint32_t *seed)
{
    bool produce = random_next(seed) % 2;
    pthread_cond_t *mine = produce ? &not_full : &not_empty, *theirs = produce ? &not_empty : &not_full;
    OK(pthread_mutex_lock(&queue_mutex));
    pthread_cleanup_push(unlock_handler, &queue_mutex);
    /* Threads may all want the same side, so every wait has an end. */
    struct timespec late = in_us(CLOCK_MONOTONIC, 20 + random_next(seed) % 1000);
    int error = 0;
    while (error == 0 && (produce ? queued == CAPACITY : queued == 0))
        error = pthread_cond_clockwait(mine, &queue_mutex, CLOCK_MONOTONIC, &late);
    CHECK(error == 0 || error == ETIMEDOUT);
    if (error == 0) {
        queued += produce ? 1 : -1;
        CHECK(queued >= 0 && queued <= CAPACITY);
        *(produce ? &produced : &consumed) += 1;
        if (random_next(seed) % 8 == 0)
            OK(pthread_cond_broadcast(theirs));
        else
            OK(pthread_cond_signal(theirs));
    }
    pthread_cleanup_pop(1);
}

static void *works(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg * 2654435761u + 1;
    while (!atomic_load(&stop)) {
        int64_t before = now_ns(CLOCK_MONOTONIC);
        switch (random_next(&seed) % 8) {
        case 0:
        case 1: rwlock_step(&seed); break;
        case 2: queue_step(&seed); break;
        default: mutex_step(&seed); break;
        }
        int64_t took = now_ns(CLOCK_MONOTONIC) - before, worst = atomic_load(&worst_wait_ns);
        while (took > worst && !atomic_compare_exchange_weak(&worst_wait_ns, &worst, took))
            ;
        atomic_fetch_add(&steps, 1);
    }
    return NULL;
}

/* Waits for ever on a condition variable that others use as well, until it is cancelled. */
static void *to_be_cancelled(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg + 1;
    for (;;) {
        OK(pthread_mutex_lock(&queue_mutex));
        pthread_cleanup_push(unlock_handler, &queue_mutex);
        OK(pthread_cond_wait(random_next(&seed) % 2 ? &not_full : &not_empty, &queue_mutex));
        /* It may have been given a token's signal: pass it on. */
        OK(pthread_cond_signal(&not_full));
        OK(pthread_cond_signal(&not_empty));
        pthread_cleanup_pop(1);
        mutex_step(&seed);
    }
}

static void *replaces(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg * 40503u + 7;
    while (!atomic_load(&stop)) {
        struct thread victim;
        start(&victim, to_be_cancelled, (void *)(uintptr_t)random_next(&seed));
        if (random_next(&seed) % 2)
            sleep_us(random_next(&seed) % 500);
        CHECK(pthread_cancel(victim.handle) == 0);
        CHECK(join_soon(&victim, "a cancelled thread") == PTHREAD_CANCELED);
        atomic_fetch_add(&cancellations, 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 16;
    CHECK(threads >= 2 && threads <= MAX_THREADS);
    for (int i = 0; i < MUTEXES; i++)
        mutex_make(&mutexes[i].mutex, &MUTEX_KINDS[i % 4]);
    for (int i = 0; i < RWLOCKS; i++) {
        pthread_rwlockattr_t attr;
        CHECK(pthread_rwlockattr_init(&attr) == 0 && pthread_rwlockattr_setkind_np(&attr, i) == 0);
        OK(pthread_rwlock_init(&rwlocks[i].lock, &attr));
    }
    mutex_make(&queue_mutex, &MUTEX_KINDS[2]);
    OK(pthread_cond_init(&not_empty, NULL));
    OK(pthread_cond_init(&not_full, NULL));

    static struct thread workers[MAX_THREADS];
    int replacers = threads > 32 ? 8 : threads / 4 + 1;
    for (int i = 0; i < threads; i++)
        start(&workers[i], i < replacers ? replaces : works, (void *)(uintptr_t)(i + 1));
    int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(stress_seconds(3) * 1e9), moved = now_ns(CLOCK_MONOTONIC);
    long seen = -1;
    for (int64_t now; (now = now_ns(CLOCK_MONOTONIC)) < end; sleep_ms(20)) {
        if (atomic_load(&steps) != seen) {
            seen = atomic_load(&steps);
            moved = now;
        } else if (now - moved > 30 * 1000000000LL) {
            STUCK("no step in 30 s");
        } else if (now - moved > 100000000) {
            end = now + 1000000000; /* do not end in a state that may be stuck */
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < threads; i++)
        join_soon(&workers[i], i < replacers ? "a replacer" : "a worker");

    long sum = 0, writes = 0;
    for (int i = 0; i < MUTEXES; i++) {
        sum += mutexes[i].counter;
        OK(pthread_mutex_trylock(&mutexes[i].mutex));
        OK(pthread_mutex_unlock(&mutexes[i].mutex));
        OK(pthread_mutex_destroy(&mutexes[i].mutex));
    }
    for (int i = 0; i < RWLOCKS; i++) {
        writes += rwlocks[i].a;
        OK(pthread_rwlock_trywrlock(&rwlocks[i].lock));
        OK(pthread_rwlock_unlock(&rwlocks[i].lock));
        OK(pthread_rwlock_destroy(&rwlocks[i].lock));
    }
    /* A cancelled thread may have counted a lock that it did not live to report. */
    CHECK(sum == atomic_load(&counted) && writes == atomic_load(&written));
    CHECK(queued == produced - consumed);
    OK(pthread_cond_destroy(&not_empty));
    OK(pthread_cond_destroy(&not_full));
    OK(pthread_mutex_destroy(&queue_mutex));
    printf("%d threads: %ld steps, %ld locks, %ld writes, %ld tokens, %ld cancellations, longest step %.1f ms\n",
           threads, atomic_load(&steps), sum, writes, produced, atomic_load(&cancellations),
           (double)atomic_load(&worst_wait_ns) / 1e6);
    return 0;
}
