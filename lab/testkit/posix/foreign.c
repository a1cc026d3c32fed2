/* Objects that a program reaches through two implementations: the one that it is linked to, and glibc's own functions
 * past a drop-in. argv[1] says how: "deepbind" or "dlmopen", to open foreign_plugin.c's library so that its calls are glibc's
 * (the second has a copy of libc of its own), or "dlsym" for pointers from libc's handle. argv[2] says what, argv[3] is the
 * library.
 *
 * Under glibc both are the same. Under a drop-in no two threads are ever inside at a time, and none waits for ever; a case
 * that cannot be served ends the process with a sentence, which the harness looks for. */
#include "check.h"
#include <dlfcn.h>

static int (*there_lock)(pthread_mutex_t *), (*there_unlock)(pthread_mutex_t *);
static int (*there_rdlock)(pthread_rwlock_t *), (*there_wrlock)(pthread_rwlock_t *), (*there_rwunlock)(pthread_rwlock_t *);
static int (*there_wait)(pthread_cond_t *, pthread_mutex_t *);

static void *find(void *library, bool plugin, const char *in_plugin, const char *in_libc)
{
    void *found = dlsym(library, plugin ? in_plugin : in_libc);
    if (!found)
        FAIL("%s", dlerror());
    return found;
}

static void reach(const char *how, const char *path)
{
    bool plugin = strcmp(how, "dlsym") != 0;
    void *library = !plugin ? dlopen("libc.so.6", RTLD_NOW)
                    : strcmp(how, "dlmopen") == 0 ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW)
                                                  : dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library)
        FAIL("%s", dlerror());
    there_lock = find(library, plugin, "plugin_lock", "pthread_mutex_lock");
    there_unlock = find(library, plugin, "plugin_unlock", "pthread_mutex_unlock");
    there_rdlock = find(library, plugin, "plugin_rdlock", "pthread_rwlock_rdlock");
    there_wrlock = find(library, plugin, "plugin_wrlock", "pthread_rwlock_wrlock");
    there_rwunlock = find(library, plugin, "plugin_rwunlock", "pthread_rwlock_unlock");
    there_wait = find(library, plugin, "plugin_wait", "pthread_cond_wait");
}

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int step, inside, go_on;
static long count;

/* ---- mutexes ------------------------------------------------------------------------------------------- */

static void section(int (*lock)(pthread_mutex_t *), int (*unlock)(pthread_mutex_t *))
{
    OK(lock(&mutex));
    CHECK(atomic_fetch_add(&inside, 1) == 0);
    count++;
    for (int i = 0; i < 20; i++)
        sched_yield();
    CHECK(atomic_fetch_sub(&inside, 1) == 1);
    OK(unlock(&mutex));
}

static int timed(pthread_mutex_t *m)
{
    struct timespec time = in_ms(CLOCK_REALTIME, 20 * LONG_MS);
    return pthread_mutex_timedlock(m, &time);
}

enum { SECTIONS = 20000 };

static void *here(void *arg)
{
    for (int i = 0; i < SECTIONS; i++)
        section((i + (arg != NULL)) % 3 ? pthread_mutex_lock : timed, pthread_mutex_unlock);
    return NULL;
}

static void *there(void *arg)
{
    (void)arg;
    for (int i = 0; i < SECTIONS; i++)
        section(there_lock, there_unlock);
    return NULL;
}

/* Both sides at once. */
static void together(void)
{
    struct thread threads[6];
    count = 0;
    for (int i = 0; i < 6; i++)
        start(&threads[i], i % 2 ? here : there, i < 3 ? NULL : &count);
    for (int i = 0; i < 6; i++)
        join_soon(&threads[i], "a thread of two implementations");
    CHECK(count == 6 * SECTIONS);
    OK(other_lock(&mutex));
}

static void *lock_here(void *arg)
{
    (void)arg;
    section(pthread_mutex_lock, pthread_mutex_unlock);
    return NULL;
}

/* A waiter here is let in by an unlock there. */
static void waits_for_there(void)
{
    struct thread waiters[3];
    OK(there_lock(&mutex));
    CHECK(other_trylock(&mutex) == EBUSY);
    CHECK(pthread_mutex_destroy(&mutex) == EBUSY);
    for (int i = 0; i < 3; i++) {
        start(&waiters[i], lock_here, NULL);
        sleep_ms(5);
    }
    OK(there_unlock(&mutex));
    for (int i = 0; i < 3; i++)
        join_soon(&waiters[i], "a waiter here for a holder there");
}

static void *lock_there(void *arg)
{
    (void)arg;
    section(there_lock, there_unlock);
    return NULL;
}

/* Waiters on both sides for a holder here, whose waiters here queue first. */
static void waits_for_here(void)
{
    struct thread waiters[6];
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < 6; i++) {
        start(&waiters[i], i < 3 ? lock_here : lock_there, NULL);
        await_sleep(&waiters[i]);
    }
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 6; i++)
        join_soon(&waiters[i], "a waiter for a holder here");
}

static void of_kind(int type);

/* One waiter there for a holder here, of a mutex for which no thread here waits. */
static void sleeper(void)
{
    struct thread waiter;
    of_kind(PTHREAD_MUTEX_NORMAL);
    OK(pthread_mutex_lock(&mutex));
    start(&waiter, lock_there, NULL);
    await_sleep(&waiter);
    OK(pthread_mutex_unlock(&mutex));
    join_soon(&waiter, "a waiter there for a holder here");
    OK(other_lock(&mutex));
    OK(pthread_mutex_destroy(&mutex));
}

static void of_kind(int type)
{
    const struct mutex_kind kind = {"", type, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE};
    mutex_make(&mutex, &kind);
}

/* A thread that holds a recursive mutex through one side locks it through the other as well. */
static void nested(void)
{
    int (*const locks[])(pthread_mutex_t *) = {pthread_mutex_lock, there_lock};
    int (*const unlocks[])(pthread_mutex_t *) = {pthread_mutex_unlock, there_unlock};
    for (int outer = 0; outer < 2; outer++) {
        of_kind(PTHREAD_MUTEX_RECURSIVE);
        for (int round = 0; round < 2; round++) { /* in the second, another thread has found out */
            OK(locks[outer](&mutex));
            for (int i = 0; i < 3; i++) {
                OK(locks[!outer](&mutex));
                OK(unlocks[!outer](&mutex));
                CHECK(mutex.__data.__owner == my_tid());
                CHECK(other_trylock(&mutex) == EBUSY);
            }
            OK(unlocks[outer](&mutex));
            CHECK(mutex.__data.__owner == 0);
            OK(other_lock(&mutex));
            if (round == 0) {
                waits_for_there();
                waits_for_here();
            }
        }
        OK(pthread_mutex_destroy(&mutex));
    }
}

static void mutexes(void)
{
    const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE};
    for (int i = 0; i < 4; i++) {
        static char name[40];
        snprintf(name, sizeof name, "type %d", types[i]);
        check_context = name;
        of_kind(types[i]);
        waits_for_there();
        waits_for_here();
        of_kind(types[i]);
        waits_for_here();
        waits_for_there();
        of_kind(types[i]);
        together();
    }
    check_context = "nested";
    nested();
}

/* A wait here while threads there use the mutex: the wait releases and takes back what both lock. */
static void *consumer(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    while (!atomic_load(&go_on))
        OK(pthread_cond_wait(&cond, &mutex));
    CHECK(atomic_fetch_add(&inside, 1) == 0);
    CHECK(atomic_fetch_sub(&inside, 1) == 1);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void waits(void)
{
    for (int round = 0; round < 100; round++) {
        struct thread threads[4];
        of_kind(round % 4 ? PTHREAD_MUTEX_NORMAL : PTHREAD_MUTEX_ERRORCHECK);
        atomic_store(&go_on, 0);
        start(&threads[0], consumer, NULL);
        start(&threads[1], consumer, NULL);
        start(&threads[2], lock_there, NULL);
        start(&threads[3], lock_there, NULL);
        if (round % 2)
            await_sleep(&threads[0]);
        OK(there_lock(&mutex));
        atomic_store(&go_on, 1);
        OK(pthread_cond_broadcast(&cond));
        if (round % 3 == 0)
            sleep_ms(1);
        OK(there_unlock(&mutex));
        for (int i = 0; i < 4; i++)
            join_soon(&threads[i], "a wait here on a mutex of both");
    }
}

/* ---- what cannot be served ----------------------------------------------------------------------------- */

/* Locked there, unlocked here. */
static void crossed_back(void)
{
    of_kind(PTHREAD_MUTEX_NORMAL);
    for (int i = 0; i < 20; i++) {
        OK(there_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
    }
    waits_for_here();
}

static void *read_here(void *arg)
{
    (void)arg;
    OK(pthread_rwlock_rdlock(&rwlock));
    CHECK(atomic_load(&inside) == 0);
    OK(pthread_rwlock_unlock(&rwlock));
    return NULL;
}

static void *write_here(void *arg)
{
    (void)arg;
    OK(pthread_rwlock_wrlock(&rwlock));
    CHECK(atomic_load(&inside) == 0);
    OK(pthread_rwlock_unlock(&rwlock));
    return NULL;
}

static void held_there(int (*lock)(pthread_rwlock_t *), int times, void *(*waiter)(void *))
{
    struct thread thread;
    for (int i = 0; i < times; i++)
        OK(lock(&rwlock));
    atomic_store(&inside, 1);
    start(&thread, waiter, NULL);
    await_sleep(&thread);
    atomic_store(&inside, 0);
    for (int i = 0; i < times; i++)
        OK(there_rwunlock(&rwlock));
    join_soon(&thread, "a waiter here for a read-write lock held there");
}

static void *wait_there(void *arg)
{
    (void)arg;
    OK(there_lock(&mutex));
    atomic_store(&step, 1);
    while (!atomic_load(&go_on))
        OK(there_wait(&cond, &mutex));
    OK(there_unlock(&mutex));
    return NULL;
}

static void signalled_here(void)
{
    struct thread thread;
    of_kind(PTHREAD_MUTEX_NORMAL);
    start(&thread, wait_there, NULL);
    await_flag(&step, 1);
    OK(there_lock(&mutex));
    atomic_store(&go_on, 1);
    OK(there_unlock(&mutex));
    OK(pthread_cond_signal(&cond));
    join_soon(&thread, "a waiter there that was signalled here");
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    reach(argv[1], argv[3]);
    const char *what = argv[2];
    if (strcmp(what, "mutexes") == 0)
        mutexes();
    else if (strcmp(what, "waits") == 0)
        waits();
    else if (strcmp(what, "sleeper") == 0)
        sleeper();
    else if (strcmp(what, "crossed-back") == 0)
        crossed_back();
    else if (strcmp(what, "read-write") == 0)
        held_there(there_rdlock, 1, write_here);
    else if (strcmp(what, "read-two-write") == 0)
        held_there(there_rdlock, 2, write_here);
    else if (strcmp(what, "write-read") == 0)
        held_there(there_wrlock, 1, read_here);
    else if (strcmp(what, "write-write") == 0)
        held_there(there_wrlock, 1, write_here);
    else if (strcmp(what, "signal") == 0)
        signalled_here();
    else
        FAIL("no case %s", what);
    return 0;
}
