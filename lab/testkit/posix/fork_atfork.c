/* The discipline that pthread_atfork was made for: prepare takes the locks, parent and child release them. Under
 * load, many times; the child then uses the locks with threads of its own. And a storm of forks without handlers
 * from a process whose threads never stop locking: the child uses only what was not held.
 *
 * The read-write lock takes part on the drop-in's own locks only: glibc knows its writer by the thread id, which is
 * another one in the child, and hands it to a writer that waited at the moment of the fork and does not exist there. */
#include "check.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t quiet = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t quiet_cond = PTHREAD_COND_INITIALIZER;
static bool use_handlers, quiet_done;
static atomic_bool use_table;
static long a, b;
static atomic_bool stop;

static void prepare(void)
{
    if (!use_handlers)
        return;
    OK(pthread_mutex_lock(&first));
    OK(pthread_mutex_lock(&second));
    if (use_table)
        OK(pthread_rwlock_wrlock(&table));
}

static void release(void)
{
    if (!use_handlers)
        return;
    CHECK(a == b); /* the fork came at a quiet moment */
    if (use_table)
        OK(pthread_rwlock_unlock(&table));
    OK(pthread_mutex_unlock(&second));
    OK(pthread_mutex_unlock(&first));
}

static void *hammer(void *arg)
{
    uintptr_t rounds = arg ? (uintptr_t)arg : UINTPTR_MAX;
    for (uintptr_t i = 0; i < rounds && !atomic_load(&stop); i++) {
        OK(pthread_mutex_lock(&first));
        if (i % 8 == 0)
            sched_yield();
        OK(pthread_mutex_lock(&second));
        a++;
        b++;
        OK(pthread_mutex_unlock(&second));
        OK(pthread_mutex_unlock(&first));
        if (use_table) {
            OK(i % 4 ? pthread_rwlock_rdlock(&table) : pthread_rwlock_wrlock(&table));
            OK(pthread_rwlock_unlock(&table));
        }
    }
    return NULL;
}

static void *says_done(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&quiet));
    quiet_done = true;
    OK(pthread_cond_signal(&quiet_cond));
    OK(pthread_mutex_unlock(&quiet));
    return NULL;
}

static void use_quiet_ones(void)
{
    struct thread thread;
    quiet_done = false;
    start(&thread, says_done, NULL);
    OK(pthread_mutex_lock(&quiet));
    while (!quiet_done)
        OK(pthread_cond_wait(&quiet_cond, &quiet));
    OK(pthread_mutex_unlock(&quiet));
    join_soon(&thread, "a thread of the child");
}

static void forks(int rounds, bool handlers)
{
    use_handlers = handlers;
    for (int i = 0; i < rounds; i++) {
        pid_t child = fork_checked();
        if (child == 0) {
            use_quiet_ones();
            if (handlers) {
                struct thread threads[2];
                OK(pthread_mutex_trylock(&first));
                OK(pthread_mutex_unlock(&first));
                for (int t = 0; t < 2; t++)
                    start(&threads[t], hammer, (void *)50);
                for (int t = 0; t < 2; t++)
                    join_soon(&threads[t], "a hammer in the child");
                if (use_table) {
                    OK(pthread_rwlock_trywrlock(&table));
                    OK(pthread_rwlock_unlock(&table));
                }
                if (i % 8 == 0) { /* a grandchild */
                    pid_t grandchild = fork_checked();
                    if (grandchild == 0) {
                        use_quiet_ones();
                        _exit(0);
                    }
                    expect_exit(grandchild);
                }
            }
            _exit(0);
        }
        expect_exit(child);
    }
}

int main(void)
{
    CHECK(pthread_atfork(prepare, release, release) == 0);
    struct thread threads[4];
    for (int i = 0; i < 4; i++)
        start(&threads[i], hammer, NULL);
    check_context = "handlers";
    forks(100, true);
    if (on_spinpark()) {
        check_context = "handlers with a read-write lock";
        use_table = true;
        forks(100, true);
    }
    check_context = "storm";
    forks(200, false);
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++)
        join_soon(&threads[i], "a hammer");
    return 0;
}
