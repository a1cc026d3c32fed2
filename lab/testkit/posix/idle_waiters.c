/* Threads that wait for an object that is simply held cost nothing: no wake-up, so no CPU time, however many they are.
 *
 *     idle_waiters KIND
 *
 * A span without any wake-up of any waiter must come soon, and it is long beside the time between two rechecks of a waiter. */
#include "check.h"

#include <dirent.h>
#include <sys/resource.h>

enum { WAITERS = 64, SPAN_MS = 1000, SPANS = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int about_to_wait;
static atomic_bool go;
static const char *kind;

static bool is(const char *name) { return strcmp(kind, name) == 0; }

static void *waiter(void *unused)
{
    (void)unused;
    struct timespec later;
    clock_gettime(CLOCK_REALTIME, &later);
    later.tv_sec += 3600;
    about_to_wait++;
    if (is("mutex") || is("realtime")) {
        CALL(pthread_mutex_lock(&mutex), 0);
        CALL(pthread_mutex_unlock(&mutex), 0);
    } else if (is("timed")) {
        CALL(pthread_mutex_timedlock(&mutex, &later), 0);
        CALL(pthread_mutex_unlock(&mutex), 0);
    } else if (is("cond")) {
        CALL(pthread_mutex_lock(&mutex), 0);
        while (!go)
            CALL(pthread_cond_wait(&cond, &mutex), 0);
        CALL(pthread_mutex_unlock(&mutex), 0);
    } else if (is("readers")) {
        CALL(pthread_rwlock_rdlock(&rwlock), 0);
        CALL(pthread_rwlock_unlock(&rwlock), 0);
    } else {
        CALL(pthread_rwlock_wrlock(&rwlock), 0);
        CALL(pthread_rwlock_unlock(&rwlock), 0);
    }
    return NULL;
}

/* Voluntary switches of all threads but the first one: each ends a sleep that began before. */
static long switches(void)
{
    long sum = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], line[200];
        if (atoi(task->d_name) == 0 || atoi(task->d_name) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        CHECK(status);
        while (fgets(line, sizeof line, status))
            if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
                sum += atol(line + 24);
        fclose(status);
    }
    closedir(tasks);
    return sum;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    kind = argv[1];
    bool by_reader = is("writers_behind_a_reader"), by_writer = is("readers") || is("writers");
    if (by_reader)
        CALL(pthread_rwlock_rdlock(&rwlock), 0);
    else if (by_writer)
        CALL(pthread_rwlock_wrlock(&rwlock), 0);
    else if (!is("cond"))
        CALL(pthread_mutex_lock(&mutex), 0);

    pthread_attr_t attr;
    CALL(pthread_attr_init(&attr), 0);
    if (is("realtime")) {
        struct sched_param param = {.sched_priority = 1};
        if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
            printf("skipped: no real-time priority here\n");
            return 0;
        }
        param.sched_priority = 0;
        CHECK(sched_setscheduler(0, SCHED_OTHER, &param) == 0);
        param.sched_priority = 1;
        CALL(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED), 0);
        CALL(pthread_attr_setschedpolicy(&attr, SCHED_FIFO), 0);
        CALL(pthread_attr_setschedparam(&attr, &param), 0);
    }
    pthread_t threads[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        CALL(pthread_create(&threads[i], &attr, waiter, NULL), 0);
    while (about_to_wait < WAITERS)
        sleep_us(1000);

    long before = -1, woken = -1;
    for (int i = 0; i < SPANS && woken != 0; i++) {
        long now = switches();
        woken = before < 0 ? -1 : now - before;
        before = now;
        if (woken != 0)
            sleep_us(SPAN_MS * 1000);
    }
    if (woken != 0)
        printf("%s: %ld wake-ups of %d idle waiters in the last %d ms\n", kind, woken, WAITERS, SPAN_MS);
    CHECK(woken == 0);

    go = true;
    if (is("cond"))
        CALL(pthread_cond_broadcast(&cond), 0);
    else if (by_reader || by_writer)
        CALL(pthread_rwlock_unlock(&rwlock), 0);
    else
        CALL(pthread_mutex_unlock(&mutex), 0);
    for (int i = 0; i < WAITERS; i++)
        CALL(pthread_join(threads[i], NULL), 0);
    return 0;
}
