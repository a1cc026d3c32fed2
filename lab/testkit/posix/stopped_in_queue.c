/* A thread is stopped for good while it has the queue of a lock locked: for a few instructions in the middle of a call, which no test
 * hits. So the bit that says so is set by hand, in the drop-in's locks only: see the state tables of `locks/src/queue/lock.rs` and
 * `locks/src/word.rs`. A thread that comes then rechecks the lock by itself: it takes a free one within a few milliseconds,
 * leaves at its deadline, and does so although signals interrupt its sleeps all the time. */
#include "check.h"

enum { LOCKED = 1, DEMAND = 32, WAITERS = 128, SLOTS = 512, READER = 1024 };
enum { SOON_MS = 1000, DEADLINE_MS = 100, STUCK_MS = 10000 };

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock;
static atomic_int came;
static int result;
static int64_t ended;

static _Atomic uint32_t *word_of(void *lock) { return lock; }
static _Atomic uint32_t *queue_of(void *lock) { return (_Atomic uint32_t *)((char *)lock + 24); }
static _Atomic uint32_t *bias_of(pthread_rwlock_t *lock) { return (_Atomic uint32_t *)((char *)lock + 40); }

static void interrupted(int signal) { (void)signal; }

typedef int call(void);
static struct timespec limit(void) { return in_ms(CLOCK_REALTIME, DEADLINE_MS); }
static int lock(void) { return pthread_mutex_lock(&mutex); }
static int write_lock(void) { return pthread_rwlock_wrlock(&rwlock); }
static int read_lock(void) { return pthread_rwlock_rdlock(&rwlock); }
static int timed_lock(void)
{
    struct timespec at = limit();
    return pthread_mutex_timedlock(&mutex, &at);
}
static int timed_write(void)
{
    struct timespec at = limit();
    return pthread_rwlock_timedwrlock(&rwlock, &at);
}

static void *calls(void *arg)
{
    atomic_store(&came, 1);
    result = ((call *)arg)();
    ended = now_ns(CLOCK_MONOTONIC);
    atomic_store(&came, 2);
    return NULL;
}

/* Runs `what` in another thread, after 10 ms does `frees` (may be null), and returns how long the call took since then, ms. */
static double takes(call *what, void (*frees)(void), long signal_us)
{
    atomic_store(&came, 0);
    pthread_t thread;
    OK(pthread_create(&thread, NULL, calls, (void *)what));
    await_flag(&came, 1);
    sleep_ms(10);
    if (frees)
        frees();
    int64_t began = now_ns(CLOCK_MONOTONIC);
    while (atomic_load(&came) != 2) {
        sleep_us(signal_us ? signal_us : 500);
        if (signal_us && atomic_load(&came) != 2)
            pthread_kill(thread, SIGUSR1);
        if (now_ns(CLOCK_MONOTONIC) - began > STUCK_MS * 1000000LL)
            FAIL("a call does not return");
    }
    OK(pthread_join(thread, NULL));
    return (ended - began) / 1e6;
}

static void free_mutex(void) { OK(pthread_mutex_unlock(&mutex)); }
/* Does what the stopped thread had just done as it revoked the bias. */
static void end_bias(void)
{
    atomic_fetch_and(word_of(&rwlock), ~SLOTS);
    atomic_store(bias_of(&rwlock), 0);
}

static void make_biased(void)
{
    OK(pthread_rwlock_init(&rwlock, NULL));
    for (int i = 0; i < 10000000 && !(atomic_load(word_of(&rwlock)) & SLOTS); i++) {
        OK(pthread_rwlock_rdlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
    }
}

static void check_one(long signal_us)
{
    OK(pthread_mutex_init(&mutex, NULL));
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_or(queue_of(&mutex), LOCKED);
    CHECK(takes(timed_lock, NULL, signal_us) < SOON_MS && result == ETIMEDOUT);
    CHECK(takes(lock, free_mutex, signal_us) < SOON_MS && result == 0);

    make_biased();
    bool is_biased = atomic_load(word_of(&rwlock)) & SLOTS; /* not without restartable sequences */
    if (is_biased) {
        atomic_fetch_or(queue_of(&rwlock), LOCKED);
        CHECK(takes(timed_write, NULL, signal_us) < SOON_MS && result == ETIMEDOUT);
        CHECK(takes(write_lock, end_bias, signal_us) < SOON_MS && result == 0);
    }

    /* A writer requests a hand-off of the lock of a reader, which waits for another one. */
    OK(pthread_rwlock_init(&rwlock, NULL));
    atomic_store(word_of(&rwlock), READER | WAITERS | DEMAND);
    atomic_store(queue_of(&rwlock), LOCKED);
    CHECK(takes(read_lock, NULL, signal_us) < SOON_MS && result == 0);

    pthread_rwlockattr_t attributes;
    OK(pthread_rwlockattr_init(&attributes));
    OK(pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
    OK(pthread_rwlock_init(&rwlock, &attributes));
    atomic_store(word_of(&rwlock), WAITERS);
    atomic_store(queue_of(&rwlock), LOCKED);
    CHECK(takes(read_lock, NULL, signal_us) < SOON_MS && result == 0);
}

int main(void)
{
    CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = interrupted, .sa_flags = SA_RESTART}, NULL) == 0);
    check_one(0);
    check_one(300);
    return 0;
}
