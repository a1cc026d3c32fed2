/* A mutex that is waited for once, for a short time, in a program that computes: it does not matter. */
#include "corpus.h"

static pthread_mutex_t statistics_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int ready, taken, waiter;
static volatile double sum;

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static NOINLINE void compute(void)
{
    for (double end = cpu_seconds() + 0.4; cpu_seconds() < end;)
        for (int i = 1; i < 1000; i++)
            sum += 1.0 / i;
}

/* The state of a thread, as the kernel tells it: `S` where it sleeps. */
static char state_of(int tid)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *stat = fopen(path, "r");
    CHECK(stat && fgets(line, sizeof line, stat));
    fclose(stat);
    return strrchr(line, ')')[2];
}

/* Holds the lock for `ms` milliseconds, and until the waiter sleeps: on a loaded machine it may come later. */
static NOINLINE void note(int ms)
{
    CHECK(pthread_mutex_lock(&statistics_lock) == 0);
    if (ms) {
        atomic_store(&taken, 1);
        do
            sleep_ms(ms);
        while (!atomic_load(&waiter) || state_of(atomic_load(&waiter)) != 'S');
    }
    CHECK(pthread_mutex_unlock(&statistics_lock) == 0);
    NOT_LAST();
}

static void *worker(void *none)
{
    compute();
    atomic_store(&ready, 1);
    await_at_least(&taken, 1);
    atomic_store(&waiter, gettid());
    note(0);
    return none;
}

int main(void)
{
    pthread_t thread = start(worker, NULL);
    compute();
    await_at_least(&ready, 1);
    note(8);
    join(thread);
    return 0;
}
