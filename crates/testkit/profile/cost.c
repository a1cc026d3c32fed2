/* What a pair of calls costs, or how often several threads get one lock: what the profiler is measured with.
 *
 *   cost pair MILLISECONDS         ns per pthread_mutex_lock and pthread_mutex_unlock, in a process that has threads
 *   cost contended MILLISECONDS    pairs per second of all of 4 threads on one mutex, with some work in and outside
 */
#include "../posix/check.h"

enum { THREADS = 4, BATCH = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static atomic_long pairs;
static volatile long data[16];

static int64_t now(void) { return now_ns(CLOCK_MONOTONIC); }

static void *pair(void *argument)
{
    int64_t end = now() + 1000000 * *(const long *)argument, begin = now(), last = begin;
    long count = 0;
    double best = 1e9;
    while (last < end) {
        for (int i = 0; i < BATCH; i++) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
        int64_t next = now();
        double each = (double)(next - last) / BATCH;
        best = each < best ? each : best;
        last = next;
        count += BATCH;
    }
    /* The least of many batches: what others do to this CPU is not the pair's. */
    printf("%.3f\n", best);
    return NULL;
}

static void work(int steps)
{
    for (int i = 0; i < steps; i++)
        data[i % 16]++;
}

static void *contend(void *argument)
{
    (void)argument;
    long count = 0;
    long own = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        pthread_mutex_lock(&mutex);
        work(100);
        pthread_mutex_unlock(&mutex);
        for (int i = 0; i < 200; i++)
            __asm__ volatile("" : "+r"(own));
        count++;
    }
    atomic_fetch_add(&pairs, count);
    return NULL;
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    long milliseconds = atol(arguments[2]);
    struct thread threads[THREADS];
    if (strcmp(arguments[1], "pair") == 0) {
        start(&threads[0], pair, &milliseconds);
        join(&threads[0]);
        return 0;
    }
    for (int i = 0; i < THREADS; i++)
        start(&threads[i], contend, NULL);
    sleep_ms(milliseconds);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        join(&threads[i]);
    printf("%.0f\n", atomic_load(&pairs) * 1000.0 / milliseconds);
    return 0;
}
