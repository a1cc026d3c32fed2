/* Threads that do not run: stopped by a signal for as long as another thread likes, as by a garbage collector, or kept from their
 * CPU by a thread of a higher priority. No other thread waits for them, but for a lock that they hold themselves.
 *
 *   not_running waiter mutex|write|condvar   a waiter is stopped; the lock is given up and taken again, by lock and by trylock
 *   not_running woken K                      K waiters are stopped as they are woken, one after the other; another waiter gets on
 *   not_running signalled alone|all          the first of four waiters on a condition variable is stopped; a broadcast, or a signal for
 *                                            each, lets the others go on; with one CPU, or with all
 *   not_running handler                      a handler takes the mutex that the call below it waits for
 *   not_running handlers                     handlers wait for a time for the mutex whose call they interrupt, at any of its steps
 *   not_running realtime                     a real-time thread takes a mutex that was promised to a waiter without a CPU
 *   not_running inversion mutex|read         threads without a CPU are in the queue of a lock, or revoke its bias; a real-time thread
 *                                            gives up its wait in time, and is through with its unlock
 *   not_running cancel LIBRARY               a cancellation waits for the loader; other threads wait and signal meanwhile
 */
#include "check.h"
#include <dlfcn.h>

enum { ROUNDS = 10, LIMIT_MS = 2000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

/* ---- stopping a thread --------------------------------------------------------------------------------- */

static atomic_int stopped, resumed;

static void stop_here(int signal)
{
    (void)signal;
    int mine = atomic_fetch_add(&stopped, 1) + 1;
    while (atomic_load(&resumed) < mine)
        sleep_us(100);
}

static void on_signal(void (*handler)(int))
{
    CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL) == 0);
}

static void stop(pthread_t thread)
{
    int before = atomic_load(&stopped);
    OK(pthread_kill(thread, SIGUSR1));
    while (atomic_load(&stopped) == before)
        sched_yield();
}

/* ---- waiter -------------------------------------------------------------------------------------------- */

enum { MUTEX, WRITE, CONDVAR };
static int kind;
static atomic_int waiting, got;

static void lock(void) { OK(kind == WRITE ? pthread_rwlock_wrlock(&rwlock) : pthread_mutex_lock(&mutex)); }
static void unlock(void) { OK(kind == WRITE ? pthread_rwlock_unlock(&rwlock) : pthread_mutex_unlock(&mutex)); }
static int try(void) { return kind == WRITE ? pthread_rwlock_trywrlock(&rwlock) : pthread_mutex_trylock(&mutex); }

static int lock_soon(void)
{
    struct timespec limit = in_ms(CLOCK_REALTIME, LIMIT_MS);
    return kind == WRITE ? pthread_rwlock_timedwrlock(&rwlock, &limit) : pthread_mutex_timedlock(&mutex, &limit);
}

static void *waits(void *arg)
{
    if (kind == CONDVAR)
        lock();
    atomic_store(&waiting, 1);
    if (kind == CONDVAR)
        OK(pthread_cond_wait(&cond, &mutex));
    else
        lock();
    atomic_store(&got, 1);
    unlock();
    return arg;
}

static void one_stopped_waiter(bool tries)
{
    atomic_store(&waiting, 0), atomic_store(&got, 0);
    if (kind != CONDVAR)
        lock();
    pthread_t thread;
    OK(pthread_create(&thread, NULL, waits, NULL));
    await_flag(&waiting, 1);
    if (kind == CONDVAR) {
        lock();
        OK(pthread_cond_signal(&cond));
    }
    sleep_ms(3);
    unlock(), lock(); /* it is woken, and loses, unless it is fast */
    sleep_ms(2);
    if (!atomic_load(&got)) {
        stop(thread);
        unlock();
        for (int i = 0; i < 3; i++) {
            int error = EBUSY;
            if (!tries)
                error = lock_soon();
            else
                for (int ms = 0; error && ms < LIMIT_MS; ms++, sleep_ms(1))
                    error = try();
            if (error)
                FAIL("the lock does not come back from a stopped waiter: %s", error_name(error));
            unlock();
        }
        atomic_fetch_add(&resumed, 1);
    } else {
        unlock();
    }
    OK(pthread_join(thread, NULL));
}

/* ---- woken --------------------------------------------------------------------------------------------- */

static void *waits_to_be_stopped(void *arg)
{
    atomic_fetch_add(&waiting, 1);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}

static void *waits_unstopped(void *arg)
{
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    struct timespec limit = in_ms(CLOCK_REALTIME, LIMIT_MS);
    atomic_fetch_add(&waiting, 1);
    int error = pthread_mutex_timedlock(&mutex, &limit);
    if (error)
        FAIL("a waiter sleeps on at a free mutex: %s", error_name(error));
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}

static void stopped_woken(int count)
{
    pthread_t woken[16], unstopped;
    atomic_store(&waiting, 0);
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < count; i++)
        OK(pthread_create(&woken[i], NULL, waits_to_be_stopped, NULL));
    await_flag(&waiting, count);
    sleep_ms(5);
    for (int i = 0; i < count; i++)
        stop(woken[i]);
    for (int i = 0; i < count; i++) { /* each release may wake one of them */
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_mutex_lock(&mutex));
        sleep_ms(1);
    }
    OK(pthread_create(&unstopped, NULL, waits_unstopped, NULL));
    await_flag(&waiting, count + 1);
    sleep_ms(10);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_join(unstopped, NULL));
    atomic_fetch_add(&resumed, count);
    for (int i = 0; i < count; i++)
        OK(pthread_join(woken[i], NULL));
}

/* ---- handler ------------------------------------------------------------------------------------------- */

static atomic_int handling, handled;
static bool handler_tries;

static void takes(int signal)
{
    (void)signal;
    atomic_store(&handling, 1);
    int error = EBUSY;
    if (!handler_tries)
        error = lock_soon();
    else
        for (int ms = 0; error && ms < LIMIT_MS; ms++, sleep_ms(1))
            error = try();
    if (error)
        FAIL("a handler does not get the mutex that its thread waits for: %s", error_name(error));
    unlock();
    atomic_store(&handled, 1);
}

static void one_handler(void)
{
    atomic_store(&waiting, 0), atomic_store(&got, 0), atomic_store(&handling, 0), atomic_store(&handled, 0);
    lock();
    pthread_t thread;
    OK(pthread_create(&thread, NULL, waits, NULL));
    await_flag(&waiting, 1);
    sleep_ms(3);
    unlock(), lock();
    sleep_ms(2);
    bool waits_still = !atomic_load(&got);
    if (waits_still) {
        OK(pthread_kill(thread, SIGUSR1));
        await_flag(&handling, 1);
        sleep_ms(2); /* the handler waits for the mutex, and so does the call below it */
    }
    unlock();
    if (waits_still)
        await_flag(&handled, 1);
    OK(pthread_join(thread, NULL));
}

/* ---- handlers ------------------------------------------------------------------------------------------ */

static atomic_int go;
static atomic_long calls;

static void waits_for_a_time(int signal)
{
    (void)signal;
    struct timespec limit = in_us(CLOCK_REALTIME, 200);
    int error = pthread_mutex_timedlock(&mutex, &limit);
    if (error == 0)
        OK(pthread_mutex_unlock(&mutex));
    else
        CHECK(error == ETIMEDOUT); /* its own thread may hold the mutex */
    atomic_fetch_add(&calls, 1);
}

static void *locks_and_unlocks(void *arg)
{
    while (!atomic_load(&go)) {
        OK(pthread_mutex_lock(&mutex));
        for (volatile int i = 0; i < 200; i++)
            ;
        OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void many_handlers(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        OK(pthread_create(&threads[i], NULL, locks_and_unlocks, NULL));
    int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(stress_seconds(5) * 1e9);
    long seen = -1, before = 0;
    for (int idle = 0; now_ns(CLOCK_MONOTONIC) < end; idle = atomic_load(&calls) == seen ? idle + 1 : 0) {
        seen = atomic_load(&calls);
        OK(pthread_kill(threads[before++ % 3], SIGUSR1));
        sleep_us(300);
        if (idle > 30000)
            STUCK("no handler returns any more");
    }
    atomic_store(&go, 1);
    for (int i = 0; i < 3; i++)
        OK(pthread_join(threads[i], NULL));
    printf("%ld calls in handlers\n", atomic_load(&calls));
}

/* ---- realtime ------------------------------------------------------------------------------------------ */

static atomic_int uses_cpu;
static _Atomic int64_t took_ns;

static void *low(void *arg)
{
    CHECK(bind_to(0));
    return waits(arg);
}

static void *medium(void *arg)
{
    CHECK(bind_to(0) && set_fifo(10));
    atomic_store(&uses_cpu, 1);
    for (int64_t end = now_ns(CLOCK_MONOTONIC) + 300000000; now_ns(CLOCK_MONOTONIC) < end;)
        ;
    return arg;
}

static void *high(void *arg)
{
    CHECK(bind_to(1) && set_fifo(50));
    while (!atomic_load(&go))
        sleep_us(50);
    int64_t began = now_ns(CLOCK_MONOTONIC);
    if (arg)
        while (pthread_mutex_trylock(&mutex))
            sleep_ms(1);
    else
        OK(pthread_mutex_lock(&mutex));
    atomic_store(&took_ns, now_ns(CLOCK_MONOTONIC) - began);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void one_inversion(bool tries)
{
    pthread_t threads[3];
    atomic_store(&waiting, 0), atomic_store(&got, 0), atomic_store(&uses_cpu, 0), atomic_store(&go, 0);
    OK(pthread_create(&threads[0], NULL, high, tries ? &go : NULL));
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_create(&threads[1], NULL, low, NULL));
    await_flag(&waiting, 1);
    sleep_ms(10);
    unlock(), lock(); /* it is woken, and loses */
    sleep_ms(10);
    OK(pthread_create(&threads[2], NULL, medium, NULL));
    await_flag(&uses_cpu, 1);
    bool waits_still = !atomic_load(&got);
    unlock();
    atomic_store(&go, 1);
    OK(pthread_join(threads[0], NULL));
    if (waits_still && atomic_load(&took_ns) > 50000000)
        FAIL("a real-time thread waited %.1f ms for a waiter without a CPU", atomic_load(&took_ns) / 1e6);
    OK(pthread_join(threads[1], NULL));
    OK(pthread_join(threads[2], NULL));
}

/* ---- inversion ----------------------------------------------------------------------------------------- */

enum { LOWS = 24, BURST_MS = 100 };
static bool reads;
static _Atomic int64_t longest_ns;

static void *in_queue(void *arg)
{
    CHECK(bind_to(0));
    while (!atomic_load(&go)) {
        struct timespec limit = in_us(CLOCK_REALTIME, 60);
        CHECK((reads ? pthread_rwlock_trywrlock(&rwlock) : pthread_mutex_timedlock(&mutex, &limit)) != 0);
        for (volatile int i = 0; reads && i < 2000; i++)
            ;
    }
    return arg;
}

static void *bursts(void *arg)
{
    CHECK(bind_to(0) && set_fifo(10));
    for (int round = 0; !atomic_load(&go); round++) {
        for (int64_t end = now_ns(CLOCK_MONOTONIC) + BURST_MS * 1000000; now_ns(CLOCK_MONOTONIC) < end;)
            ;
        sleep_us(3000 + round * 37 % 2000);
    }
    return arg;
}

static void *is_in_time(void *arg)
{
    CHECK(bind_to(1) && set_fifo(50));
    while (!atomic_load(&go)) {
        int64_t began = now_ns(CLOCK_MONOTONIC);
        struct timespec limit = in_us(CLOCK_REALTIME, 2000);
        if (reads) {
            OK(pthread_rwlock_rdlock(&rwlock));
            OK(pthread_rwlock_unlock(&rwlock));
        } else {
            CHECK(pthread_mutex_timedlock(&mutex, &limit) == ETIMEDOUT);
        }
        int64_t took = now_ns(CLOCK_MONOTONIC) - began;
        if (took > atomic_load(&longest_ns))
            atomic_store(&longest_ns, took);
        static int times;
        if (reads && ++times % 3000 == 0)
            sleep_us(200);
    }
    return arg;
}

static void queue_inversion(void)
{
    pthread_t threads[LOWS + 2];
    int lows = reads ? 1 : LOWS;
    OK(reads ? pthread_rwlock_rdlock(&rwlock) : pthread_mutex_lock(&mutex));
    OK(pthread_create(&threads[LOWS], NULL, bursts, NULL));
    OK(pthread_create(&threads[LOWS + 1], NULL, is_in_time, NULL));
    for (int i = 0; i < lows; i++)
        OK(pthread_create(&threads[i], NULL, in_queue, NULL));
    sleep_ms((long)(1000 * stress_seconds(5)));
    atomic_store(&go, 1);
    for (int i = 0; i < LOWS + 2; i++)
        if (i < lows || i >= LOWS)
            OK(pthread_join(threads[i], NULL));
    printf("longest call %.1f ms\n", atomic_load(&longest_ns) / 1e6);
    CHECK(atomic_load(&longest_ns) < BURST_MS * 1000000 / 2);
}

/* ---- cancel -------------------------------------------------------------------------------------------- */

static pthread_cond_t answers[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static int turn;
static atomic_int ended;
static atomic_long rounds;
static const char *library;

static void *answer(void *arg)
{
    int side = (int)(intptr_t)arg;
    OK(pthread_mutex_lock(&mutex));
    while (!atomic_load(&ended)) {
        while (turn != side && !atomic_load(&ended)) {
            struct timespec limit = in_ms(CLOCK_REALTIME, 100);
            pthread_cond_timedwait(&answers[side], &mutex, &limit);
        }
        turn = !side;
        atomic_fetch_add(&rounds, 1);
        OK(pthread_cond_signal(&answers[!side]));
    }
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *sleeps(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void *loads(void *arg)
{
    if (!dlopen(library, RTLD_NOW))
        FAIL("%s", dlerror());
    return arg;
}

static void *cancels(void *arg)
{
    pthread_cancel(*(pthread_t *)arg);
    return NULL;
}

static double rate(long ms)
{
    long before = atomic_load(&rounds);
    int64_t began = now_ns(CLOCK_MONOTONIC);
    sleep_ms(ms);
    return (atomic_load(&rounds) - before) * 1e9 / (now_ns(CLOCK_MONOTONIC) - began);
}

static void slow_cancellation(void)
{
    pthread_t sides[2], victim, loader, canceller;
    OK(pthread_create(&victim, NULL, sleeps, NULL));
    for (int i = 0; i < 2; i++)
        OK(pthread_create(&sides[i], NULL, answer, (void *)(intptr_t)i));
    double before = rate(500);
    OK(pthread_create(&loader, NULL, loads, NULL));
    sleep_ms(200);
    OK(pthread_create(&canceller, NULL, cancels, &victim));
    sleep_ms(100);
    double meanwhile = rate(1000);
    atomic_store(&ended, 1);
    OK(pthread_join(loader, NULL));
    OK(pthread_join(canceller, NULL));
    OK(pthread_join(sides[0], NULL));
    OK(pthread_join(sides[1], NULL));
    printf("%.0f answers a second, %.0f during a cancellation\n", before, meanwhile);
    /* Far from both what it is and what it was (20 a second): the machine may be busy. */
    CHECK(meanwhile > before / 20);
}

/* ---- signalled ----------------------------------------------------------------------------------------- */

enum { FRIENDS = 4 };
static atomic_int in_wait, gone;
static int may_go;

static void *waits_to_go(void *unused)
{
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&in_wait, 1);
    while (may_go == 0)
        OK(pthread_cond_wait(&cond, &mutex));
    may_go--;
    OK(pthread_mutex_unlock(&mutex));
    atomic_fetch_add(&gone, 1);
    return NULL;
}

static void gone_are(int number)
{
    for (int ms = 0; ms < LIMIT_MS && atomic_load(&gone) < number; ms++)
        sleep_us(1000);
    CHECK(atomic_load(&gone) == number);
}

/* The waiters queue one after the other, and the first one is stopped. */
static void one_of_many_signalled(int broadcasts, int under_mutex)
{
    pthread_t waiters[FRIENDS];
    atomic_store(&in_wait, 0);
    atomic_store(&gone, 0);
    may_go = 0;
    for (int i = 0; i < FRIENDS; i++) {
        OK(pthread_create(&waiters[i], NULL, waits_to_go, NULL));
        while (atomic_load(&in_wait) <= i)
            sleep_us(100);
        OK(pthread_mutex_lock(&mutex)); /* it has released it to wait */
        OK(pthread_mutex_unlock(&mutex));
    }
    stop(waiters[0]);
    OK(pthread_mutex_lock(&mutex));
    may_go = FRIENDS;
    if (!under_mutex)
        OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < (broadcasts ? 1 : FRIENDS); i++)
        OK(broadcasts ? pthread_cond_broadcast(&cond) : pthread_cond_signal(&cond));
    if (under_mutex)
        OK(pthread_mutex_unlock(&mutex));
    gone_are(FRIENDS - 1);
    atomic_store(&resumed, atomic_load(&stopped));
    gone_are(FRIENDS);
    for (int i = 0; i < FRIENDS; i++)
        OK(pthread_join(waiters[i], NULL));
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    const char *what = argv[1];
    if (strcmp(what, "waiter") == 0) {
        CHECK(argc > 2);
        kind = strcmp(argv[2], "write") == 0 ? WRITE : strcmp(argv[2], "condvar") == 0 ? CONDVAR : MUTEX;
        on_signal(stop_here);
        for (int round = 0; round < ROUNDS; round++)
            one_stopped_waiter(round % 2);
    } else if (strcmp(what, "woken") == 0) {
        on_signal(stop_here);
        for (int round = 0; round < ROUNDS; round++)
            stopped_woken(argc > 2 ? atoi(argv[2]) : 1);
    } else if (strcmp(what, "signalled") == 0) {
        CHECK(argc > 2);
        CHECK(strcmp(argv[2], "all") == 0 || bind_to(0));
        on_signal(stop_here);
        for (int round = 0; round < ROUNDS; round++)
            one_of_many_signalled(round & 1, round & 2);
    } else if (strcmp(what, "handler") == 0) {
        on_signal(takes);
        for (int round = 0; round < 2 * ROUNDS; round++) {
            handler_tries = round % 2;
            one_handler();
        }
    } else if (strcmp(what, "handlers") == 0) {
        on_signal(waits_for_a_time);
        many_handlers();
    } else if (strcmp(what, "realtime") == 0 || strcmp(what, "inversion") == 0) {
        if (CPU_COUNT(&all_cpus) < 2 || !set_fifo(1)) {
            puts("skipped: needs two CPUs and CAP_SYS_NICE");
            return 0;
        }
        CHECK(set_fifo(0) && bind_to(1));
        reads = argc > 2 && strcmp(argv[2], "read") == 0;
        for (int round = 0; strcmp(what, "realtime") == 0 && round < 6; round++)
            one_inversion(round % 2);
        if (strcmp(what, "inversion") == 0)
            queue_inversion();
    } else {
        CHECK(strcmp(what, "cancel") == 0 && argc > 2);
        library = argv[2];
        slow_cancellation();
    }
    return 0;
}
