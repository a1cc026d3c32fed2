/* A program that forbids itself membarrier while its threads are at work: what relies on that call must notice the error,
 * and lose no wake-up over it. Argument: how many children are forked before and after. */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define THREADS 6

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool stop;
static long turn, plain, shared_data;
static atomic_long rounds;

static void work(uint32_t *seed)
{
    OK(pthread_mutex_lock(&mutex));
    plain++;
    turn++;
    OK(pthread_cond_signal(&changed));
    OK(pthread_mutex_unlock(&mutex));
    if (random_next(seed) % 64 == 0) {
        OK(pthread_rwlock_wrlock(&rwlock));
        shared_data++;
        OK(pthread_rwlock_unlock(&rwlock));
    }
    for (int i = 0; i < 200; i++) {
        OK(pthread_rwlock_rdlock(&rwlock));
        CHECK(shared_data >= 0);
        OK(pthread_rwlock_unlock(&rwlock));
    }
    if (random_next(seed) % 4 == 0) {
        /* Others keep signalling, so this ends. */
        OK(pthread_mutex_lock(&mutex));
        long seen = turn;
        while (turn == seen && !atomic_load(&stop))
            OK(pthread_cond_wait(&changed, &mutex));
        OK(pthread_mutex_unlock(&mutex));
    }
}

static void *run(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg + 1;
    while (!atomic_load(&stop)) {
        work(&seed);
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

/* One that signals for ever, so that no thread waits for a signal alone. */
static void *signals(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        OK(pthread_mutex_lock(&mutex));
        turn++;
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_cond_broadcast(&changed));
        sleep_us(50);
    }
    OK(pthread_mutex_lock(&mutex));
    turn++;
    OK(pthread_cond_broadcast(&changed));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

/* In the other threads, too. */
static bool forbid_membarrier(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static void await_rounds(long more)
{
    long until = atomic_load(&rounds) + more;
    for (int64_t end = now_ns(CLOCK_MONOTONIC) + LONG_MS * 1000000LL; atomic_load(&rounds) < until;) {
        CHECK(now_ns(CLOCK_MONOTONIC) < end);
        sleep_ms(1);
    }
}

/* All of it again in a child, whose barrier must be registered, or forbidden, as the parent's. */
static void in_child(void (*body)(void))
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void threads(bool forbid)
{
    struct thread thread[THREADS], signaller;
    atomic_store(&stop, false);
    for (uintptr_t i = 0; i < THREADS; i++)
        start(&thread[i], run, (void *)i);
    start(&signaller, signals, NULL);
    await_rounds(200);
    if (forbid && !forbid_membarrier())
        puts("skipped: no seccomp here");
    await_rounds(200);
    atomic_store(&stop, true);
    join(&signaller);
    for (int i = 0; i < THREADS; i++)
        join(&thread[i]);
}

static void as_ever(void) { threads(false); }

int main(void)
{
    as_ever();
    in_child(as_ever);
    threads(true);
    in_child(as_ever);
    as_ever();
    return 0;
}
