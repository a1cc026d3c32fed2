/* Real-time threads: locks serve waiters of a higher priority first; a waiter that was woken and cannot run keeps no
 * real-time thread from a free lock; a real-time thread hands no lock over to a lower priority; and no real-time thread
 * gives its CPU away. Needs CAP_SYS_NICE. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

/* ---- policies ------------------------------------------------------------------------------------------ */

/* `struct sched_attr`, which glibc has from 2.41 on. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static bool set_deadline(int64_t runtime_ms, int64_t period_ms)
{
    struct attributes attributes = {.size = sizeof attributes, .policy = 6 /* SCHED_DEADLINE */};
    attributes.runtime = runtime_ms * 1000000;
    attributes.deadline = attributes.period = period_ms * 1000000;
    return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

/* ---- order --------------------------------------------------------------------------------------------- */

enum { FOUR = 4 };
static const int ARRIVING[FOUR] = {10, 20, 50, 30};
static const int SERVED[FOUR] = {50, 30, 20, 10};

static int served[FOUR];
static atomic_int count;

static void note(int priority) { served[atomic_fetch_add(&count, 1)] = priority; }

struct way {
    const char *name;
    void (*hold)(void);
    void (*let_go)(void);
    void (*wait)(int priority);
};

struct waiter {
    const struct way *way;
    int priority;
};

static void *waiter_main(void *arg)
{
    struct waiter *waiter = arg;
    CHECK(set_fifo(waiter->priority));
    waiter->way->wait(waiter->priority);
    return NULL;
}

static void hold_mutex(void) { OK(pthread_mutex_lock(&mutex)); }
static void let_mutex_go(void) { OK(pthread_mutex_unlock(&mutex)); }
static void wait_for_mutex(int priority)
{
    OK(pthread_mutex_lock(&mutex));
    note(priority);
    OK(pthread_mutex_unlock(&mutex));
}

static void hold_rwlock(void) { OK(pthread_rwlock_wrlock(&rwlock)); }
static void let_rwlock_go(void) { OK(pthread_rwlock_unlock(&rwlock)); }
static void wait_to_write(int priority)
{
    OK(pthread_rwlock_wrlock(&rwlock));
    note(priority);
    OK(pthread_rwlock_unlock(&rwlock));
}
/* Those of priority 20 and 50 read. */
static void wait_to_read_or_write(int priority)
{
    if (priority == 20 || priority == 50)
        OK(pthread_rwlock_rdlock(&rwlock));
    else
        OK(pthread_rwlock_wrlock(&rwlock));
    note(priority);
    OK(pthread_rwlock_unlock(&rwlock));
}

static void hold_nothing(void) {}
static void signal_each(void)
{
    for (int i = 1; i <= FOUR; i++) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_cond_signal(&cond));
        OK(pthread_mutex_unlock(&mutex));
        await_flag(&count, i);
    }
}
static void wait_for_signal(int priority)
{
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_cond_wait(&cond, &mutex));
    note(priority);
    OK(pthread_mutex_unlock(&mutex));
}

static void check_order(const struct way *way)
{
    check_context = way->name;
    struct thread threads[FOUR];
    struct waiter waiters[FOUR];
    atomic_store(&count, 0);
    way->hold();
    for (int i = 0; i < FOUR; i++) {
        waiters[i] = (struct waiter){way, ARRIVING[i]};
        start(&threads[i], waiter_main, &waiters[i]);
        await_sleep(&threads[i]);
    }
    way->let_go();
    for (int i = 0; i < FOUR; i++)
        join_soon(&threads[i], "a waiter");
    for (int i = 0; i < FOUR; i++)
        if (served[i] != SERVED[i])
            FAIL("served %d %d %d %d", served[0], served[1], served[2], served[3]);
}

/* ---- a woken waiter that cannot run --------------------------------------------------------------------- */

enum { HOG_MS = 600 };
static atomic_int hog_runs, hog_ended, hog_stops, low_came;

/* Keeps the second CPU from all lower priorities; it is less than what the kernel leaves to real-time threads at a time. */
static void *hog_main(void *arg)
{
    (void)arg;
    CHECK(bind_to(1));
    CHECK(set_fifo(10));
    atomic_store(&hog_runs, 1);
    struct timespec end = in_ms(CLOCK_MONOTONIC, HOG_MS);
    while (!has_come(CLOCK_MONOTONIC, end) && !atomic_load(&hog_stops))
        ;
    atomic_store(&hog_ended, 1);
    return NULL;
}

static void *low_main(void *arg)
{
    (void)arg;
    CHECK(bind_to(1));
    CHECK(set_fifo(0)); /* not the creating thread's */
    OK(pthread_mutex_lock(&mutex));
    atomic_store(&low_came, 1);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static struct thread hog, low;

/* A waiter of the usual policy is woken on the second CPU, where it cannot run. The caller holds the mutex again. */
static void wake_in_vain(void)
{
    atomic_store(&hog_runs, 0);
    atomic_store(&hog_ended, 0);
    atomic_store(&hog_stops, 0);
    atomic_store(&low_came, 0);
    CHECK(bind_to(0));
    OK(pthread_mutex_lock(&mutex));
    start(&low, low_main, NULL);
    await_sleep(&low);
    start(&hog, hog_main, NULL);
    await_flag(&hog_runs, 1);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_lock(&mutex));
}

static void end_hog(void)
{
    atomic_store(&hog_stops, 1);
    join_soon(&hog, "the thread that keeps a CPU");
    join_soon(&low, "the thread that could not run");
    CHECK(sched_setaffinity(0, sizeof all_cpus, &all_cpus) == 0);
}

static atomic_int came_in_time;

static void *high_main(void *arg)
{
    (void)arg;
    CHECK(bind_to(0));
    CHECK(set_fifo(50));
    OK(pthread_mutex_lock(&mutex));
    atomic_store(&came_in_time, atomic_load(&hog_ended) ? -1 : 1);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void check_beside(void)
{
    check_context = "beside a waiter that cannot run";
    for (int attempt = 0; attempt < 5; attempt++) {
        struct thread high;
        atomic_store(&came_in_time, 0);
        CHECK(set_fifo(20)); /* so that nothing else delays the steps */
        wake_in_vain();
        start(&high, high_main, NULL);
        await_sleep(&high);
        bool is_late = atomic_load(&hog_ended) || atomic_load(&low_came);
        OK(pthread_mutex_unlock(&mutex));
        join_soon(&high, "the real-time thread");
        end_hog();
        CHECK(set_fifo(0));
        if (is_late)
            continue; /* the machine was too busy: that says nothing */
        if (atomic_load(&came_in_time) < 0)
            FAIL("the mutex was free, but the waiter got it only as the other one could run");
        return;
    }
    puts("skipped: the machine is too busy");
}

/* ---- a starved waiter that cannot run --------------------------------------------------------------------- */

/* A real-time thread releases a mutex for which a waiter of the usual policy requests a hand-off, and comes back for it
 * at once. */
static void check_hand_over(void)
{
    check_context = "a starved waiter that cannot run";
    for (int attempt = 0; attempt < 5; attempt++) {
        atomic_store(&hog_runs, 0);
        atomic_store(&hog_ended, 0);
        atomic_store(&hog_stops, 0);
        atomic_store(&low_came, 0);
        CHECK(bind_to(0));
        CHECK(set_fifo(20));
        OK(pthread_mutex_lock(&mutex));
        start(&low, low_main, NULL);
        await_sleep(&low);
        OK(pthread_mutex_unlock(&mutex)); /* it is woken, loses, and starves */
        OK(pthread_mutex_lock(&mutex));
        sleep_ms(20);
        await_sleep(&low);
        start(&hog, hog_main, NULL);
        await_flag(&hog_runs, 1);
        bool is_late = atomic_load(&hog_ended) || atomic_load(&low_came);
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_mutex_lock(&mutex));
        bool had_to_wait = atomic_load(&hog_ended);
        OK(pthread_mutex_unlock(&mutex));
        end_hog();
        CHECK(set_fifo(0));
        if (is_late)
            continue; /* the machine was too busy: that says nothing */
        if (had_to_wait)
            FAIL("the real-time thread waited for a thread of no priority, which could not run");
        return;
    }
    puts("skipped: the machine is too busy");
}

/* ---- a deadline thread passes a woken waiter ------------------------------------------------------------- */

enum { RUNTIME_MS = 20, PERIOD_MS = 300, LOOP_MS = 5 };
static atomic_int refused;
static atomic_llong longest;

static void *passing_main(void *arg)
{
    (void)arg;
    /* The mutex is taken again and again, while the woken waiter cannot run. */
    CHECK(sched_setaffinity(0, sizeof all_cpus, &all_cpus) == 0); /* the kernel asks for that */
    if (!set_deadline(RUNTIME_MS, PERIOD_MS)) {
        atomic_store(&refused, 1);
        return NULL;
    }
    int64_t start = now_ns(CLOCK_MONOTONIC), used = now_ns(CLOCK_THREAD_CPUTIME_ID);
    do {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
    } while (now_ns(CLOCK_THREAD_CPUTIME_ID) - used < LOOP_MS * 1000000LL);
    atomic_store(&longest, now_ns(CLOCK_MONOTONIC) - start);
    return NULL;
}

static void check_deadline(void)
{
    check_context = "a deadline thread";
    struct thread passing;
    /* Others' work (a virtual machine's host, interrupts) may delay one attempt; a yield delays each, by most of a period. */
    for (int attempt = 0; attempt < 5; attempt++) {
        atomic_store(&refused, 0);
        CHECK(set_fifo(20));
        wake_in_vain();
        OK(pthread_mutex_unlock(&mutex));
        start(&passing, passing_main, NULL);
        join_soon(&passing, "the deadline thread");
        end_hog();
        CHECK(set_fifo(0));
        if (atomic_load(&refused)) {
            puts("skipped: no deadline threads here");
            return;
        }
        if (atomic_load(&longest) < PERIOD_MS / 2 * 1000000LL)
            return;
    }
    FAIL("%d ms of work took %lld ms", LOOP_MS, atomic_load(&longest) / 1000000);
}

static void check_orders(void)
{
    static const struct way ways[] = {
        {"mutex", hold_mutex, let_mutex_go, wait_for_mutex},
        {"writers", hold_rwlock, let_rwlock_go, wait_to_write},
        {"signals", hold_nothing, signal_each, wait_for_signal},
    };
    for (size_t i = 0; i < COUNT(ways); i++)
        check_order(&ways[i]);
    /* glibc's readers and writers do not wait in one queue. */
    if (on_spinpark())
        check_order(&(struct way){"readers and writers", hold_rwlock, let_rwlock_go, wait_to_read_or_write});
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "order";
    struct sched_param param = {.sched_priority = 20};
    if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
        puts("skipped: no real-time threads here");
        return 0;
    }
    CHECK(set_fifo(0));
    if (strcmp(what, "order") == 0)
        check_orders();
    else if (CPU_COUNT(&all_cpus) < 2)
        puts("skipped: one CPU");
    else if (strcmp(what, "beside") == 0)
        check_beside();
    else if (strcmp(what, "hand_over") == 0)
        check_hand_over();
    else if (strcmp(what, "deadline") == 0)
        check_deadline();
    else
        FAIL("what is \"%s\"?", what);
    return 0;
}
