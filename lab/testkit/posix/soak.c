/* Random operations on all kinds of locks, disturbed in all ways at once, for a time: `ci/soak.sh` runs it with new seeds.
 *
 *   soak SEED SECONDS
 *
 * Workers lock, try, time out, wait, signal, nest; others are cancelled in what they wait for, at a cancellation point or at
 * once, or leave by pthread_exit from a handler; signals interrupt all of them, and some handlers stop their thread for
 * milliseconds, as a collector does; processes fork, and the child uses what the forking thread holds; a sibling stops the
 * whole process; threads change their CPUs and their scheduling class. What a lock protects must never be seen half done, and
 * each worker must get on. One seed is one sequence of decisions for each thread, not one run. */
#include "check.h"
#include <sys/prctl.h>
#include <sys/resource.h>

enum { WORKERS = 6, PLAIN = 4, LOCKS = 8, TABLES = 3, QUEUES = 2 };

/* What a lock protects: both numbers are equal, but for its owner. */
struct pair {
    volatile long a, b;
};

static pthread_mutex_t mutexes[LOCKS];
static struct pair under_mutex[LOCKS];
static pthread_rwlock_t tables[TABLES];
static struct pair under_table[TABLES];
static pthread_mutex_t queue_mutex[QUEUES];
static pthread_cond_t queue_cond[QUEUES];
static volatile long items[QUEUES];
static pthread_rwlock_t for_handlers = PTHREAD_RWLOCK_INITIALIZER;
static struct pair under_handlers;
static atomic_bool stop;
static _Atomic uint32_t progress[WORKERS];
static pthread_t workers[WORKERS];
enum { CANCELLED, FORKED, SIGNALS, STOPPED, TIMED_OUT, LEFT, KINDS_OF_COUNTS };
static atomic_long counts[KINDS_OF_COUNTS];

static void change(struct pair *pair, uint32_t random)
{
    CHECK(pair->a == pair->b);
    pair->a++;
    for (volatile int i = random % 64 ? random % 200 : 20000; i > 0; i--)
        ;
    if (random % 512 == 0)
        sched_yield();
    pair->b++;
}

static void look(struct pair *pair) { CHECK(pair->a == pair->b); }

static struct timespec deadline(uint32_t *seed, clockid_t clock)
{
    return in_us(clock, (int)(random_next(seed) % 3000) - 100);
}

/* Counts a time-out; whether the lock was got. */
static bool got(int result)
{
    if (result == ETIMEDOUT)
        atomic_fetch_add(&counts[TIMED_OUT], 1);
    CHECK(result == 0 || result == ETIMEDOUT || result == EBUSY);
    return result == 0;
}

static void use_mutex(uint32_t *seed)
{
    int n = (int)(random_next(seed) % LOCKS);
    struct timespec until;
    bool mine = true;
    switch (random_next(seed) % 6) {
    case 0: mine = got(pthread_mutex_trylock(&mutexes[n])); break;
    case 1: until = deadline(seed, CLOCK_REALTIME); mine = got(pthread_mutex_timedlock(&mutexes[n], &until)); break;
    case 2:
        until = deadline(seed, CLOCK_MONOTONIC);
        mine = got(pthread_mutex_clocklock(&mutexes[n], CLOCK_MONOTONIC, &until));
        break;
    default: CHECK(pthread_mutex_lock(&mutexes[n]) == 0);
    }
    if (!mine)
        return;
    change(&under_mutex[n], random_next(seed));
    if (n % PLAIN == 1 && random_next(seed) % 4 == 0) { /* recursive */
        CHECK(pthread_mutex_lock(&mutexes[n]) == 0);
        change(&under_mutex[n], 1);
        CHECK(pthread_mutex_unlock(&mutexes[n]) == 0);
    }
    if (n + 1 < LOCKS && random_next(seed) % 8 == 0) { /* nested, in order */
        CHECK(pthread_mutex_lock(&mutexes[n + 1]) == 0);
        change(&under_mutex[n + 1], 1);
        CHECK(pthread_mutex_unlock(&mutexes[n + 1]) == 0);
    }
    if (random_next(seed) % 256 == 0) {
        fflush(NULL);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) { /* what this thread holds is the child's, but for kinds that ask who unlocks: it has a new number */
            change(&under_mutex[n], 1);
            if (n % PLAIN == 0 || n % PLAIN == 3) {
                CHECK(pthread_mutex_unlock(&mutexes[n]) == 0);
                CHECK(pthread_mutex_lock(&mutexes[n]) == 0);
            }
            _exit(0);
        }
        CHECK(pthread_mutex_unlock(&mutexes[n]) == 0);
        int status;
        while (waitpid(pid, &status, 0) != pid)
            CHECK(errno == EINTR);
        CHECK(status == 0);
        atomic_fetch_add(&counts[FORKED], 1);
        return;
    }
    CHECK(pthread_mutex_unlock(&mutexes[n]) == 0);
}

static void use_table(uint32_t *seed)
{
    int n = (int)(random_next(seed) % TABLES);
    struct timespec until = deadline(seed, CLOCK_REALTIME);
    bool mine = true;
    if (random_next(seed) % 8 == 0) {
        switch (random_next(seed) % 3) {
        case 0: mine = got(pthread_rwlock_trywrlock(&tables[n])); break;
        case 1: mine = got(pthread_rwlock_timedwrlock(&tables[n], &until)); break;
        default: CHECK(pthread_rwlock_wrlock(&tables[n]) == 0);
        }
        if (mine)
            change(&under_table[n], random_next(seed));
    } else {
        for (int i = random_next(seed) % 50 == 0 ? 2000 : 1; i > 1; i--) { /* a read-mostly lock at times */
            CHECK(pthread_rwlock_rdlock(&tables[n]) == 0);
            CHECK(pthread_rwlock_unlock(&tables[n]) == 0);
        }
        switch (random_next(seed) % 3) {
        case 0: mine = got(pthread_rwlock_tryrdlock(&tables[n])); break;
        case 1: mine = got(pthread_rwlock_timedrdlock(&tables[n], &until)); break;
        default: CHECK(pthread_rwlock_rdlock(&tables[n]) == 0);
        }
        if (mine)
            look(&under_table[n]);
    }
    if (mine)
        CHECK(pthread_rwlock_unlock(&tables[n]) == 0);
}

static void use_queue(uint32_t *seed)
{
    int n = (int)(random_next(seed) % QUEUES);
    CHECK(pthread_mutex_lock(&queue_mutex[n]) == 0);
    if (random_next(seed) % 2) {
        items[n]++;
        if (random_next(seed) % 8)
            CHECK(pthread_cond_signal(&queue_cond[n]) == 0);
        else
            CHECK(pthread_cond_broadcast(&queue_cond[n]) == 0);
    } else {
        struct timespec until = deadline(seed, CLOCK_REALTIME);
        while (items[n] == 0 && got(pthread_cond_timedwait(&queue_cond[n], &queue_mutex[n], &until)))
            ;
        items[n] -= items[n] > 0;
    }
    CHECK(pthread_mutex_unlock(&queue_mutex[n]) == 0);
}

/* ---- disturbances -------------------------------------------------------------------------------------- */

static void on_signal(int signal)
{
    int saved = errno;
    atomic_fetch_add(&counts[SIGNALS], 1);
    CHECK(pthread_rwlock_rdlock(&for_handlers) == 0);
    look(&under_handlers);
    CHECK(pthread_rwlock_unlock(&for_handlers) == 0);
    if (signal == SIGUSR2) {
        atomic_fetch_add(&counts[STOPPED], 1);
        sleep_us(2000);
    }
    errno = saved;
}

static void on_leave(int signal)
{
    (void)signal;
    pthread_exit(NULL);
}

static void wander(uint32_t *seed)
{
    uint32_t random = random_next(seed);
    if (random % 3 == 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        for (long i = 0; i < cpus; i++)
            if (random & 1 || random / 8 % cpus == (uint32_t)i)
                CPU_SET(i, &set);
        sched_setaffinity(0, sizeof set, &set); /* may be refused */
    } else if (random % 3 == 1) {
        struct sched_param none = {0};
        sched_setscheduler(0, random & 64 ? SCHED_BATCH : SCHED_OTHER, &none);
    } else {
        setpriority(PRIO_PROCESS, (id_t)my_tid(), random & 64 ? 5 : 0);
    }
}

/* Held for good. */
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;

static void unlock(void *mutex) { CHECK(pthread_mutex_unlock(mutex) == 0); }

/* Waits for good, in one of several calls, until it is cancelled. */
static void *victim(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument;
    int n = (int)(seed / 8 % QUEUES);
    if (seed % 4) {
        CHECK(pthread_mutex_lock(&queue_mutex[n]) == 0);
        pthread_cleanup_push(unlock, &queue_mutex[n]);
        for (;;)
            pthread_cond_wait(&queue_cond[n], &queue_mutex[n]);
        pthread_cleanup_pop(0);
    }
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_mutex_lock(&never); /* a cancellation point of a thread that is cancelled at once */
    return NULL;
}

/* Waits for a lock that it will not get, until a handler ends it. */
static void *leaver(void *argument)
{
    pthread_mutex_lock(&never);
    return argument;
}

static void *disturb(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument;
    while (!atomic_load(&stop)) {
        uint32_t random = random_next(&seed);
        sleep_us(random % 400);
        if (random % 8 == 0) {
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, victim, (void *)(uintptr_t)random_next(&seed)) == 0);
            sleep_us(random_next(&seed) % 500);
            pthread_cancel(thread);
            CHECK(pthread_join(thread, NULL) == 0);
            atomic_fetch_add(&counts[CANCELLED], 1);
        } else if (random % 8 == 1) {
            struct thread thread;
            start(&thread, leaver, NULL);
            sleep_us(random_next(&seed) % 300);
            CHECK(pthread_kill(thread.handle, SIGRTMIN) == 0);
            join_soon(&thread, "a thread whose handler leaves");
            atomic_fetch_add(&counts[LEFT], 1);
        } else if (random % 8 == 2) {
            CHECK(pthread_rwlock_wrlock(&for_handlers) == 0);
            change(&under_handlers, 1);
            CHECK(pthread_rwlock_unlock(&for_handlers) == 0);
        } else {
            int result = pthread_kill(workers[random / 8 % WORKERS], random / 64 % 16 ? SIGUSR1 : SIGUSR2);
            CHECK(result == 0 || (result == ESRCH && atomic_load(&stop))); /* one that has ended: before glibc 2.34 */
        }
    }
    return NULL;
}

/* A sibling that stops the whole process for milliseconds, at times for longer than a fifth of a second. */
static pid_t stopper(uint32_t seed)
{
    pid_t parent = getpid(), pid = fork_checked();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            sleep_us(random_next(&seed) % 400000);
            if (kill(parent, SIGSTOP))
                _exit(0);
            sleep_us(random_next(&seed) % 16 ? random_next(&seed) % 4000 : 250000);
            kill(parent, SIGCONT);
        }
    }
    return pid;
}

struct worker {
    uint32_t seed;
    int me;
};

static void *work(void *argument)
{
    struct worker *own = argument;
    uint32_t seed = own->seed;
    sigset_t leave;
    sigemptyset(&leave);
    sigaddset(&leave, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &leave, NULL);
    while (!atomic_load(&stop)) {
        uint32_t random = random_next(&seed) % 100;
        if (random < 45)
            use_mutex(&seed);
        else if (random < 75)
            use_table(&seed);
        else if (random < 98)
            use_queue(&seed);
        else
            wander(&seed);
        atomic_fetch_add(&progress[own->me], 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: soak SEED SECONDS\n", stderr);
        return 1;
    }
    uint32_t seed = (uint32_t)strtoul(argv[1], NULL, 0) | 1;
    double seconds = atof(argv[2]);
    alarm(0); /* its own watchdog is better */
    for (int i = 0; i < LOCKS; i++) /* normal, recursive, checking for errors, adaptive; twice */
        mutex_make(&mutexes[i], &MUTEX_KINDS[i % PLAIN]);
    for (int i = 0; i < TABLES; i++) {
        pthread_rwlockattr_t attributes;
        CHECK(pthread_rwlockattr_init(&attributes) == 0);
        CHECK(pthread_rwlockattr_setkind_np(&attributes, i ? PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP
                                                           : PTHREAD_RWLOCK_PREFER_READER_NP) == 0);
        CHECK(pthread_rwlock_init(&tables[i], &attributes) == 0);
    }
    for (int i = 0; i < QUEUES; i++) {
        CHECK(pthread_mutex_init(&queue_mutex[i], NULL) == 0);
        CHECK(pthread_cond_init(&queue_cond[i], NULL) == 0);
    }
    CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL) == 0);
    CHECK(sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_signal}, NULL) == 0);
    CHECK(sigaction(SIGRTMIN, &(struct sigaction){.sa_handler = on_leave}, NULL) == 0);
    pid_t sibling = stopper(random_next(&seed));
    CHECK(pthread_mutex_lock(&never) == 0);

    struct worker own[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        own[i].seed = random_next(&seed);
        own[i].me = i;
        CHECK(pthread_create(&workers[i], NULL, work, &own[i]) == 0);
    }
    struct thread disturber;
    start(&disturber, disturb, (void *)(uintptr_t)random_next(&seed));

    uint32_t before[WORKERS] = {0};
    for (double left = seconds; left > 0; left -= 10) {
        sleep_ms((long)((left < 10 ? left : 10) * 1000));
        for (int i = 0; i < WORKERS && left >= 10; i++) {
            uint32_t now = atomic_load(&progress[i]);
            if (now == before[i])
                STUCK("worker %d has done nothing for 10 s", i);
            before[i] = now;
        }
    }
    atomic_store(&stop, true);
    join_soon(&disturber, "the thread that disturbs");
    long operations = 0;
    for (int i = 0; i < WORKERS; i++) {
        struct timespec limit = in_ms(CLOCK_REALTIME, LONG_MS);
        int error = pthread_timedjoin_np(workers[i], NULL, &limit);
        if (error)
            STUCK("worker %d: %s", i, error_name(error));
        operations += progress[i];
    }
    kill(sibling, SIGKILL);
    printf("seed %s: %ld operations, %ld time-outs, %ld cancelled, %ld left, %ld forks, %ld signals, %ld stopped threads\n",
           argv[1], operations, counts[TIMED_OUT], counts[CANCELLED], counts[LEFT], counts[FORKED], counts[SIGNALS], counts[STOPPED]);
    return 0;
}
