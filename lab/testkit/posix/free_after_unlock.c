/* An unlock does not touch the lock after its release: the next owner may free or unmap it.
 *
 * The usual case: an object with a reference count guarded by its own lock; the last one out unmaps it. A late access
 * is a segmentation fault. For mutexes of each plain kind, with lock, trylock and timed calls, two to four threads;
 * for rwlocks, a reader's and a writer's unlock, found by the next owner. */
#include "check.h"
#include <linux/futex.h>

struct object {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    int references;
};

enum { MAX_THREADS = 4 };
static size_t PAGE;
static struct object *_Atomic current;
static atomic_int arrived, generation;
static int parties, way, rounds;
static int64_t deadline;
static atomic_long unmapped;

/* Sleeps while `*word` is `value`; without the locks that are under test, and without the yields that cost a whole
 * time slice each on a busy machine. */
static void sleep_while(atomic_int *word, int value)
{
    for (int i = 0; atomic_load(word) == value; i++)
        if (i > 300)
            syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL);
}

static void wake_all(atomic_int *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX); }

/* A barrier that releases all at nearly the same time. */
static void meet(void)
{
    int now = atomic_load(&generation);
    if (atomic_fetch_add(&arrived, 1) + 1 == parties) {
        atomic_store(&arrived, 0);
        atomic_fetch_add(&generation, 1);
        wake_all(&generation);
        return;
    }
    sleep_while(&generation, now);
}

static void mutex_lock_by(pthread_mutex_t *mutex, int how)
{
    struct timespec late = in_ms(CLOCK_REALTIME, LONG_MS);
    switch (how) {
    case 0: OK(pthread_mutex_lock(mutex)); return;
    case 1:
        while (pthread_mutex_trylock(mutex))
            sched_yield();
        return;
    default: OK(pthread_mutex_timedlock(mutex, &late)); return;
    }
}

static void mutex_round(struct object *object, int me, int round)
{
    mutex_lock_by(&object->mutex, (round / 3 + me) % 3);
    bool recursive = round % 5 == 0 && pthread_mutex_trylock(&object->mutex) == 0;
    if (round % 64 == 0)
        sleep_us(20); /* let the others queue */
    bool last = --object->references == 0;
    if (recursive)
        OK(pthread_mutex_unlock(&object->mutex));
    OK(pthread_mutex_unlock(&object->mutex));
    if (last) {
        munmap(object, PAGE);
        atomic_fetch_add(&unmapped, 1);
    }
}

/* The first one in leaves a note under the lock; the others need the write lock, and the last unmaps. `way` says
 * whether the first reads or writes. */
static atomic_int marks;
static void rwlock_round(struct object *object, int me, int round)
{
    struct timespec late = in_ms(CLOCK_MONOTONIC, LONG_MS);
    if (me == 0) {
        if (way == 0)
            OK(pthread_rwlock_rdlock(&object->rwlock));
        else
            OK(pthread_rwlock_wrlock(&object->rwlock));
        atomic_store(&marks, 1);
        wake_all(&marks);
        if (round % 64 == 0)
            sleep_us(20);
        OK(pthread_rwlock_unlock(&object->rwlock)); /* the last access of this thread */
        return;
    }
    sleep_while(&marks, 0);
    switch (round % 3) {
    case 0: OK(pthread_rwlock_wrlock(&object->rwlock)); break;
    case 1:
        while (pthread_rwlock_trywrlock(&object->rwlock))
            if (round % 2)
                sched_yield();
        break;
    default: OK(pthread_rwlock_clockwrlock(&object->rwlock, CLOCK_MONOTONIC, &late)); break;
    }
    bool last = --object->references == 1;
    OK(pthread_rwlock_unlock(&object->rwlock));
    if (last) {
        munmap(object, PAGE);
        atomic_fetch_add(&unmapped, 1);
    }
}

/* The same, but the last one needs only a read lock to know that the writer is gone. */
static void writer_found_by_reader(struct object *object, int me, int round)
{
    if (me == 0) {
        OK(pthread_rwlock_wrlock(&object->rwlock));
        atomic_store(&marks, 1);
        wake_all(&marks);
        OK(pthread_rwlock_unlock(&object->rwlock));
    } else if (me == 1) {
        sleep_while(&marks, 0);
        if (round % 2)
            OK(pthread_rwlock_rdlock(&object->rwlock));
        else
            while (pthread_rwlock_tryrdlock(&object->rwlock))
                sched_yield();
        OK(pthread_rwlock_unlock(&object->rwlock));
        munmap(object, PAGE);
        atomic_fetch_add(&unmapped, 1);
    }
}

static const struct mutex_kind *mutex_kind;
static void (*round_body)(struct object *, int, int);

static void *runner(void *arg)
{
    int me = (int)(uintptr_t)arg;
    for (int round = 0;; round++) {
        if (me == 0) {
            struct object *object = map(PAGE, MAP_PRIVATE);
            mutex_make(&object->mutex, mutex_kind);
            OK(pthread_rwlock_init(&object->rwlock, NULL));
            object->references = parties;
            atomic_store(&marks, 0);
            rounds = round;
            bool over = now_ns(CLOCK_MONOTONIC) > deadline;
            atomic_store(&current, over ? NULL : object);
            if (over)
                munmap(object, PAGE);
        }
        meet();
        struct object *object = atomic_load(&current);
        if (!object)
            return NULL;
        round_body(object, me, round);
        meet();
    }
}

/* As many rounds as fit into the time: on a busy machine a round may take long. */
static void run(void (*body)(struct object *, int, int), int threads, double seconds)
{
    struct thread runners[MAX_THREADS];
    round_body = body;
    parties = threads;
    deadline = now_ns(CLOCK_MONOTONIC) + (int64_t)(seconds * 1e9);
    atomic_store(&unmapped, 0);
    for (uintptr_t i = 0; i < (uintptr_t)threads; i++)
        start(&runners[i], runner, (void *)i);
    for (int i = 0; i < threads; i++)
        join_soon(&runners[i], "a thread that shares the object");
    CHECK(atomic_load(&unmapped) == rounds);
    printf("%s: %d threads, %d rounds\n", check_context, threads, rounds);
}

int main(void)
{
    PAGE = (size_t)sysconf(_SC_PAGESIZE);
    double seconds = stress_seconds(3) / 11;
    for (size_t k = 0; k < 4; k++) {
        mutex_kind = &MUTEX_KINDS[k];
        check_context = mutex_kind->name;
        run(mutex_round, 2, seconds);
        run(mutex_round, 4, seconds);
    }
    mutex_kind = &MUTEX_KINDS[0];
    check_context = "rwlock";
    for (way = 0; way < 2; way++)
        run(rwlock_round, 2 + 2 * way, seconds);
    run(writer_found_by_reader, 2, seconds);
    return 0;
}
