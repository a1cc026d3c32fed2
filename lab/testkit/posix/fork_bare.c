/* Children that are made without fork handlers, by _Fork (glibc 2.34) and by a bare clone, while other threads contend: what
 * the forking thread holds, the child may release and lock again, although waiters are queued that do not exist there.
 *
 * The same holds after fork. Locks that other threads hold stay held; the child leaves those alone. Read-write locks and condition
 * variables on the drop-in only: glibc's wait for threads that are not there; see fork_phantoms. */
#include "check.h"

#define THREADS 4
#define CHILDREN 60

extern pid_t _Fork(void) __attribute__((weak));

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_bool stop;
static long turn, shared_data;

static void *contend(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg + 1;
    while (!atomic_load(&stop)) {
        OK(pthread_mutex_lock(&mutex));
        turn++;
        if (random_next(&seed) % 8 == 0) {
            struct timespec soon = in_ms(CLOCK_REALTIME, 2);
            CALL_EITHER(pthread_cond_timedwait(&cond, &mutex, &soon), ETIMEDOUT, 0);
        }
        OK(pthread_mutex_unlock(&mutex));
        if (random_next(&seed) % 4 == 0) {
            OK(pthread_rwlock_wrlock(&rwlock));
            shared_data++;
        } else {
            OK(pthread_rwlock_rdlock(&rwlock));
            CHECK(shared_data >= 0);
        }
        OK(pthread_rwlock_unlock(&rwlock));
    }
    return NULL;
}

/* With both locks held. */
static void child(void)
{
    for (int i = 0; i < 20; i++) {
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_mutex_lock(&mutex));
        if (!on_spinpark())
            continue;
        OK(pthread_cond_signal(&cond));
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_rwlock_unlock(&rwlock));
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_rwlock_rdlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        OK(pthread_rwlock_wrlock(&rwlock));
        OK(pthread_mutex_lock(&mutex));
        struct timespec soon = in_us(CLOCK_REALTIME, 100);
        CALL_EITHER(pthread_cond_timedwait(&cond, &mutex, &soon), ETIMEDOUT, 0);
    }
    CALL(pthread_mutex_trylock(&mutex), EBUSY);
}

static pid_t bare_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static void try_children(const char *how, pid_t (*make)(void))
{
    check_context = how;
    for (int i = 0; i < CHILDREN; i++) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_rwlock_wrlock(&rwlock));
        sleep_us(i % 2 * 200); /* the others queue */
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_mutex_lock(&mutex)); /* the first of them loses a race, and then its patience */
        sleep_us(i % 4 * 600);
        pid_t pid = make();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(20);
            child();
            _exit(0);
        }
        OK(pthread_rwlock_unlock(&rwlock));
        OK(pthread_mutex_unlock(&mutex));
        expect_exit(pid);
    }
}

int main(void)
{
    struct thread threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        start(&threads[i], contend, (void *)i);
    try_children("fork", fork);
    try_children("a bare clone", bare_clone);
    if (_Fork)
        try_children("_Fork", _Fork);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        join_soon(&threads[i], "a thread that contended while children were made");
    return 0;
}
