/* A thread that waits for a lock ends by pthread_exit in a signal handler, wherever in its call the signal comes: before it queues, in a
 * change of the queue, in its sleep. Its clean-up handlers run once, other waiters get the lock, and the lock works afterwards.
 * Some handlers have a stack of their own; some interrupt another handler, which waits for a lock, too; some come when the thread
 * is ending already, and waits for the mutex of its condition variable; some write locks have to revoke a bias. argv[1]: "mutex",
 * or "rwlock" (glibc counts such a waiter for ever). Condition variables on spinpark only: glibc's undoes a wait only from its
 * sleep, and a thread that leaves before it keeps the next broadcast waiting for it. */
#include "check.h"

enum { WAITERS = 3 };
enum kind { MUTEX, WRITE, READ, COND };

static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, never = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int waiting, cleaned, entered;
static atomic_bool go_on;

struct job {
    enum kind kind;
    bool has_stack, stays;
};

static void leave(int signal)
{
    (void)signal;
    pthread_exit(&cleaned);
}

/* Another call that waits, in a handler. The handler that interrupts it leaves both. */
static void waits_too(int signal)
{
    (void)signal;
    OK(pthread_mutex_lock(&never));
}

static void clean(void *argument)
{
    const struct job *job = argument;
    atomic_fetch_add(&cleaned, 1);
    if (job->kind == COND && !job->stays)
        (void)pthread_mutex_unlock(&mutex); /* EPERM, if it ended before or behind its wait, for the mutex */
}

static void *waiter(void *argument)
{
    const struct job *job = argument;
    static _Thread_local char stack[65536];
    if (job->has_stack)
        CHECK(sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL) == 0);
    if (job->kind == COND)
        OK(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(clean, argument);
    atomic_fetch_add(&waiting, 1);
    switch (job->kind) {
    case MUTEX: OK(pthread_mutex_lock(&mutex)); break;
    case WRITE: OK(pthread_rwlock_wrlock(&rwlock)); break;
    case READ: OK(pthread_rwlock_rdlock(&rwlock)); break;
    default:
        while (!atomic_load(&go_on))
            OK(pthread_cond_wait(&cond, &mutex));
    }
    CHECK(job->stays);
    atomic_fetch_add(&entered, 1);
    if (job->kind == MUTEX || job->kind == COND)
        OK(pthread_mutex_unlock(&mutex));
    else
        OK(pthread_rwlock_unlock(&rwlock));
    pthread_cleanup_pop(1);
    return &cleaned;
}

static void busy(int64_t ns)
{
    for (int64_t end = now_ns(CLOCK_MONOTONIC) + ns; now_ns(CLOCK_MONOTONIC) < end;)
        ;
}

/* A reader has the write lock's waiters revoke its bias. */
static void hold(enum kind kind, bool reads)
{
    if (reads && kind == WRITE)
        OK(pthread_rwlock_destroy(&rwlock) || pthread_rwlock_init(&rwlock, NULL)); /* one without a past has a bias soon */
    for (int i = reads && kind == WRITE ? 3000 : 0; i > 0; i--) {
        OK(pthread_rwlock_rdlock(&rwlock));
        if (i > 1)
            OK(pthread_rwlock_unlock(&rwlock));
    }
    if (kind == MUTEX)
        OK(pthread_mutex_lock(&mutex));
    else if (kind != COND && !(reads && kind == WRITE))
        OK(pthread_rwlock_wrlock(&rwlock));
}

static void let_go(enum kind kind)
{
    if (kind == MUTEX)
        OK(pthread_mutex_unlock(&mutex));
    else if (kind != COND)
        OK(pthread_rwlock_unlock(&rwlock));
    else {
        OK(pthread_mutex_lock(&mutex));
        atomic_store(&go_on, true);
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&mutex));
    }
}

static void once(enum kind kind, bool has_stack, bool nests, bool stays, bool more, int64_t after)
{
    int waiters = kind == WRITE && more ? 1 : WAITERS; /* the first one revokes the bias */
    stays = stays && waiters > 1;
    struct thread threads[WAITERS];
    struct job jobs[WAITERS];
    atomic_store(&waiting, 0);
    atomic_store(&cleaned, 0);
    atomic_store(&entered, 0);
    atomic_store(&go_on, false);
    hold(kind, more);
    for (int i = 0; i < waiters; i++) {
        jobs[i] = (struct job){kind, has_stack, i == 0 && stays};
        start(&threads[i], waiter, &jobs[i]);
    }
    await_flag(&waiting, waiters);
    busy(after);
    bool twice = kind == COND && more;
    if (twice)
        OK(pthread_mutex_lock(&mutex));
    for (int signal = nests ? SIGUSR2 : SIGUSR1;; signal = SIGUSR1) {
        for (int i = stays; i < waiters; i++)
            CHECK(pthread_kill(threads[i].handle, signal) == 0);
        if (signal == SIGUSR1)
            break;
        busy(after);
    }
    if (twice) {
        for (int i = stays; i < waiters; i++) { /* not while the stack is unwound, for which glibc is not ready */
            await_sleep(&threads[i]);
            CHECK(pthread_kill(threads[i].handle, SIGRTMIN) == 0);
        }
        OK(pthread_mutex_unlock(&mutex));
    }
    for (int i = stays; i < waiters; i++)
        CHECK(join_soon(&threads[i], "a thread that leaves") == &cleaned);
    CHECK(atomic_load(&cleaned) == waiters - stays && atomic_load(&entered) == 0);
    let_go(kind);
    if (stays)
        CHECK(join_soon(&threads[0], "a waiter beside those that left") == &cleaned);
    hold(kind, false);
    let_go(kind);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    bool mutexes = strcmp(argv[1], "mutex") == 0;
    int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(stress_seconds(3) * 1e9);
    static const char *const NAMES[] = {"a mutex", "a write lock", "a read lock", "a condition variable"};
    uint32_t seed = 1;
    OK(pthread_mutex_lock(&never));
    do {
        uint32_t random = random_next(&seed);
        bool has_stack = random & 1, nests = random & 2, stays = random & 4;
        int flags = has_stack ? SA_ONSTACK : 0;
        struct sigaction leaves = {.sa_handler = leave, .sa_flags = flags};
        sigaddset(&leaves.sa_mask, SIGUSR2); /* no handler waits above one that is to leave */
        CHECK(sigaction(SIGUSR1, &leaves, NULL) == 0);
        CHECK(sigaction(SIGRTMIN, &leaves, NULL) == 0);
        CHECK(sigaction(SIGUSR2, &(struct sigaction){.sa_handler = waits_too, .sa_flags = flags}, NULL) == 0);
        enum kind kind = mutexes ? (on_spinpark() && random / 8 % 2 ? COND : MUTEX) : WRITE + random / 8 % 2;
        check_context = NAMES[kind];
        once(kind, has_stack, nests, stays, random & 64, random / 128 % 40000);
    } while (now_ns(CLOCK_MONOTONIC) < end);
    return 0;
}
