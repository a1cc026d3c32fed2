/* Locks whose holders are known, also where the recorder has not seen them take the lock. Argument: which of the scenes.
 *
 * Each call notes for how long it waited and held the lock. At the end the program prints, in ns:
 *
 *   waited NS               in calls that had to wait
 *   held FUNCTION NS        of these: this function held the lock
 *   used NS                 for how long the lock was held for writing, in all
 *   unsure NS               for how long threads were preempted between their own look at the clock and the recorder's
 */
#include "truth.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static const int64_t MS = 1000 * 1000;

struct span {
    const char *function;
    int64_t from, to;
};

static struct span waits[64], holds[64];
static atomic_int wait_count, hold_count;
static atomic_llong unsure;

static void note(struct span *spans, atomic_int *count, const char *function, int64_t from, int64_t to)
{
    int at = atomic_fetch_add(count, 1);
    CHECK(at < 64);
    spans[at] = (struct span){function, from, to};
}

/* Not functions: they would be the call sites. */
#define TAKE_MUTEX pthread_mutex_lock(&mutex)
#define RELEASE_MUTEX pthread_mutex_unlock(&mutex)
#define TAKE_READ pthread_rwlock_rdlock(&rwlock)
#define TAKE_WRITE pthread_rwlock_wrlock(&rwlock)
#define RELEASE_RWLOCK pthread_rwlock_unlock(&rwlock)

/* Waits for a lock, does something with it, sleeps, and releases it, in a function of that name. */
#define HOLDER(name, lock, unlock, with_it, ns)                                                                \
    NOINLINE static void *name(void *argument)                                                                 \
    {                                                                                                          \
        int64_t late = 0;                                                                                      \
        about_to_block();                                                                                      \
        int64_t begin = call_begins();                                                                         \
        OK(lock);                                                                                              \
        int64_t taken = call_ends(&late);                                                                      \
        with_it;                                                                                               \
        sleep_ns(ns);                                                                                          \
        int64_t end = call_begins();                                                                           \
        OK(unlock);                                                                                            \
        call_ends(&late);                                                                                      \
        atomic_fetch_add(&unsure, late);                                                                       \
        note(waits, &wait_count, #name, begin, taken);                                                         \
        note(holds, &hold_count, #name, taken, end);                                                           \
        NOT_LAST();                                                                                            \
        return argument;                                                                                       \
    }

static pthread_t begin_thread(void *(*run)(void *))
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, run, NULL));
    return thread;
}

static pthread_t threads[8];
static int thread_count;

/* One more thread waits for the lock. */
static void one_more(void *(*run)(void *))
{
    atomic_store(&blocker, 0);
    threads[thread_count++] = begin_thread(run);
    await_blocked();
}

static void join_all(void)
{
    for (int i = 0; i < thread_count; i++)
        OK(pthread_join(threads[i], NULL));
}

/* ---- scenes -------------------------------------------------------------------------------------------- */

HOLDER(waiter, TAKE_MUTEX, RELEASE_MUTEX, (void)0, 0)
HOLDER(reader, TAKE_READ, RELEASE_RWLOCK, (void)0, 0)
HOLDER(writer, TAKE_WRITE, RELEASE_RWLOCK, (void)0, 0)

/* It was taken before any thread had waited for it. */
HOLDER(first_holder, TAKE_MUTEX, RELEASE_MUTEX, one_more(waiter), 100 * MS)
HOLDER(first_writer, TAKE_WRITE, RELEASE_RWLOCK, one_more(reader), 100 * MS)
HOLDER(first_reader, TAKE_READ, RELEASE_RWLOCK, one_more(writer), 100 * MS)

/* Two readers; the writer waits for the one that leaves last. */
HOLDER(early_reader, TAKE_READ, RELEASE_RWLOCK, next_turn(), 50 * MS)
HOLDER(late_reader, TAKE_READ, RELEASE_RWLOCK, (threads[thread_count++] = begin_thread(early_reader), await_turn(1),
                                               one_more(writer)), 100 * MS)

/* Threads that have the lock one after the other, all of which waited from the start; one has it for long. */
HOLDER(long_holder, TAKE_MUTEX, RELEASE_MUTEX, (void)0, 200 * MS)
HOLDER(short_holder, TAKE_MUTEX, RELEASE_MUTEX, (void)0, 4 * MS)
HOLDER(starter, TAKE_MUTEX, RELEASE_MUTEX,
       (one_more(short_holder), one_more(long_holder), one_more(short_holder), one_more(short_holder)), 20 * MS)

/* One thread takes the mutex, another releases it. */
static int64_t taken_at;

NOINLINE static void *releaser(void *argument)
{
    sleep_ns(50 * MS);
    int64_t end = call_begins(), late = 0;
    OK(pthread_mutex_unlock(&mutex));
    call_ends(&late);
    atomic_fetch_add(&unsure, late);
    note(holds, &hold_count, "releaser", taken_at, end);
    return argument;
}

NOINLINE static void taker(void)
{
    OK(pthread_mutex_lock(&mutex));
    taken_at = clock_now();
    one_more(waiter);
    OK(pthread_join(begin_thread(releaser), NULL));
    NOT_LAST();
}

/* The recorder begins, and reads what is mapped: its own time is not waiting, and would be missing from the first wait. */
static void warm_up(void)
{
    static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    int64_t end = clock_now() + MS;
    struct timespec until = {end / 1000000000, end % 1000000000};
    OK(pthread_mutex_lock(&other));
    CHECK(pthread_cond_clockwait(&cond, &other, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    OK(pthread_mutex_unlock(&other));
}

/* ---- the truth ----------------------------------------------------------------------------------------- */

static int64_t together(const struct span *a, const struct span *b)
{
    int64_t from = a->from > b->from ? a->from : b->from, to = a->to < b->to ? a->to : b->to;
    return to > from ? to - from : 0;
}

/* Where several hold it at once, `counts` says which of them the others wait for. */
static void print_truth(const char *counts)
{
    int64_t waited = 0, used = 0;
    for (int w = 0; w < wait_count; w++) {
        int64_t held = 0;
        for (int h = 0; h < hold_count; h++)
            held += together(&waits[w], &holds[h]);
        waited += held > MS ? waits[w].to - waits[w].from : 0;
    }
    printf("waited %lld\n", (long long)waited);
    for (int h = 0; h < hold_count; h++) {
        int64_t held = 0;
        for (int w = 0; w < wait_count; w++)
            held += together(&waits[w], &holds[h]);
        used += strstr(holds[h].function, "reader") ? 0 : holds[h].to - holds[h].from;
        if (held > MS && (!counts || strcmp(counts, holds[h].function) == 0))
            printf("held %s %lld\n", holds[h].function, (long long)held);
    }
    printf("used %lld\nunsure %lld\n", (long long)used, (long long)unsure);
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    const char *scene = arguments[1], *counts = NULL;
    warm_up();
    if (strcmp(scene, "first-wait") == 0)
        first_holder(NULL);
    else if (strcmp(scene, "first-write") == 0)
        first_writer(NULL);
    else if (strcmp(scene, "first-read") == 0)
        first_reader(NULL);
    else if (strcmp(scene, "readers") == 0)
        late_reader(NULL), counts = "late_reader";
    else if (strcmp(scene, "round") == 0)
        starter(NULL);
    else if (strcmp(scene, "given-away") == 0)
        taker();
    else
        FAIL("no scene %s", scene);
    join_all();
    print_truth(counts);
    return 0;
}
