/* Programs that forbid themselves system calls, by a filter that kills: locks must need none that glibc's do not need.
 *
 *   single    one thread, uncontended: no call at all, not even futex; the filter is installed behind libc's back
 *   waits     one thread that waits for what only time can end: futex, and the clock where the vDSO does not have it
 *   child     as single, in the child of a process with threads
 *   forked    a filter without membarrier and the scheduler's calls, then children that only leave, or lock first
 *   refused   a prctl that fails announces nothing: releases go on as before
 *   threads   threads contend, before and after the filter, which allows what glibc's locks and threads call
 */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define MOST 40

/* ---- the filter ---------------------------------------------------------------------------------------- */

static struct sock_filter code[8 + 2 * MOST];
static size_t length;

static void say(struct sock_filter instruction) { code[length++] = instruction; }

/* A call without a rule kills the process. */
static void begin(void)
{
    length = 0;
    say((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
}

static void decide(int call, uint32_t how)
{
    say((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1));
    say((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, how));
}

static void allow(int call) { decide(call, SECCOMP_RET_ALLOW); }

/* The clocks of other threads, which are negative numbers, kill. */
static void allow_own_clocks(void)
{
    say((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 4));
    say((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])));
    say((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x80000000, 0, 1));
    say((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    say((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

/* `how`: through libc's prctl, as sandboxes do it, or behind its back. */
static void install(bool announced, uint32_t otherwise, unsigned flags)
{
    say((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise));
    struct sock_fprog program = {(unsigned short)length, code};
    if (announced)
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    else
        CHECK(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != 0) {
        puts("skipped: no seccomp here");
        exit(0);
    }
}

static void allow_report(void)
{
    allow(SYS_write);
    allow(SYS_exit_group);
}

/* ---- one thread ---------------------------------------------------------------------------------------- */

static pthread_mutex_t mutexes[4];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void use_alone(void)
{
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            OK(pthread_mutex_lock(&mutexes[i]));
            OK(pthread_cond_signal(&cond));
            OK(pthread_mutex_unlock(&mutexes[i]));
            OK(pthread_mutex_trylock(&mutexes[i]));
            OK(pthread_cond_broadcast(&cond));
            OK(pthread_mutex_unlock(&mutexes[i]));
        }
        for (int i = 0; i < 50000; i++) {
            OK(pthread_rwlock_rdlock(&rwlock));
            OK(pthread_rwlock_unlock(&rwlock));
        }
        OK(pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        for (int i = 0; i < 50000; i++) {
            OK(pthread_rwlock_tryrdlock(&rwlock));
            OK(pthread_rwlock_unlock(&rwlock));
        }
        OK(pthread_rwlock_trywrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
    }
    OK(pthread_cond_destroy(&cond));
    OK(pthread_rwlock_destroy(&rwlock));
}

static void single(void)
{
    begin();
    allow_report();
    install(false, SECCOMP_RET_KILL_PROCESS, 0);
    use_alone();
    _exit(0);
}

static void waits(void)
{
    begin();
    allow_report();
    allow_own_clocks();
    allow(SYS_futex);
    install(false, SECCOMP_RET_KILL_PROCESS, 0);
    OK(pthread_mutex_lock(&mutexes[0]));
    OK(pthread_rwlock_rdlock(&rwlock));
    for (int i = 0; i < 40; i++) {
        struct timespec soon = in_us(CLOCK_REALTIME, 300);
        CALL(pthread_mutex_timedlock(&mutexes[0], &soon), ETIMEDOUT);
        soon = in_us(CLOCK_REALTIME, 300);
        CALL(pthread_rwlock_timedwrlock(&rwlock, &soon), ETIMEDOUT);
        soon = in_us(CLOCK_REALTIME, 300);
        CALL_EITHER(pthread_cond_timedwait(&cond, &mutexes[0], &soon), ETIMEDOUT, 0);
    }
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_mutex_unlock(&mutexes[0]));
    _exit(0);
}

/* ---- threads ------------------------------------------------------------------------------------------- */

#define THREADS 5

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_bool stop;
static atomic_long rounds;
static long turn, shared_data;

static void *contend(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg + 1;
    while (!atomic_load(&stop)) {
        OK(pthread_mutex_lock(&mutex));
        for (int i = random_next(&seed) % 16 * 500; i > 0; i--)
            turn += i % 2;
        if (random_next(&seed) % 8 == 0) {
            struct timespec soon = in_us(CLOCK_REALTIME, 300);
            CALL_EITHER(pthread_cond_timedwait(&changed, &mutex, &soon), ETIMEDOUT, 0);
        } else {
            OK(pthread_cond_signal(&changed));
        }
        OK(pthread_mutex_unlock(&mutex));
        for (int i = random_next(&seed) % 2000; i > 0; i--) {
            OK(pthread_rwlock_rdlock(&table));
            CHECK(shared_data >= 0);
            OK(pthread_rwlock_unlock(&table));
        }
        OK(pthread_rwlock_wrlock(&table));
        shared_data++;
        OK(pthread_rwlock_unlock(&table));
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

static void start_all(pthread_t *threads)
{
    atomic_store(&stop, false);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, contend, (void *)i) == 0);
}

static void await_rounds(long more)
{
    for (long until = atomic_load(&rounds) + more; atomic_load(&rounds) < until;)
        sleep_us(500);
}

static void join_all(pthread_t *threads)
{
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void threads(void)
{
    pthread_t threads[THREADS];
    start_all(threads);
    await_rounds(2000);
    begin();
    allow_report();
    allow_own_clocks();
    static const int calls[] = {SYS_futex,  SYS_exit,    SYS_clone,           SYS_clone3, SYS_mmap,           SYS_munmap,
                                SYS_mprotect, SYS_madvise, SYS_set_robust_list, SYS_rseq,   SYS_rt_sigprocmask, SYS_brk,
                                SYS_nanosleep, SYS_clock_nanosleep, SYS_rt_sigreturn, SYS_getrandom};
    for (size_t i = 0; i < COUNT(calls); i++)
        allow(calls[i]);
    install(true, SECCOMP_RET_KILL_PROCESS, SECCOMP_FILTER_FLAG_TSYNC);
    await_rounds(4000);
    join_all(threads);
    start_all(threads);
    await_rounds(4000);
    join_all(threads);
    _exit(0);
}

/* ---- children ------------------------------------------------------------------------------------------ */

static void child(void)
{
    pthread_t threads[THREADS];
    start_all(threads);
    await_rounds(500);
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork_checked();
        if (pid == 0)
            single();
        expect_exit(pid);
    }
    join_all(threads);
    single(); /* the others have left: they are to be forgotten */
}

static void forked(void)
{
    static const int calls[] = {SYS_membarrier, SYS_sched_getaffinity, SYS_sched_getattr, SYS_sched_yield, SYS_gettid};
    begin();
    for (size_t i = 0; i < COUNT(calls); i++)
        decide(calls[i], SECCOMP_RET_KILL_PROCESS);
    install(false, SECCOMP_RET_ALLOW, 0);
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork_checked();
        if (pid == 0) {
            if (i % 2)
                use_alone();
            _exit(0);
        }
        expect_exit(pid);
    }
}

/* ---- announcements ------------------------------------------------------------------------------------- */

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

static char *thread_pointer(void)
{
#ifdef __x86_64__
    char *pointer; /* __builtin_thread_pointer since GCC 11 only */
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return __builtin_thread_pointer();
#endif
}

/* Whether releases are restartable sequences: one leaves its descriptor in the thread's area, until the thread is preempted. */
static bool is_restartable(void)
{
    if (!on_spinpark() || !&__rseq_size || __rseq_size == 0)
        return false;
    uint64_t *descriptor = (uint64_t *)(thread_pointer() + __rseq_offset + 8);
    int armed = 0;
    for (int i = 0; i < 1000; i++) {
        *(volatile uint64_t *)descriptor = 0;
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        armed += *(volatile uint64_t *)descriptor != 0;
    }
    return armed != 0;
}

static void *refuse(void *arg)
{
    bool before = is_restartable();
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 2, 0, 0, 0) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(is_restartable() == before);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(!is_restartable());
    return arg;
}

static void refused(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, refuse, NULL) == 0);
    OK(pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*body)(void);
    } modes[] = {{"single", single}, {"waits", waits}, {"child", child}, {"forked", forked}, {"refused", refused}, {"threads", threads}};
    for (int i = 0; i < 4; i++)
        mutex_make(&mutexes[i], &MUTEX_KINDS[i]);
    for (size_t i = 0; i < COUNT(modes); i++)
        if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
            modes[i].body();
            return 0;
        }
    fputs("usage: sandbox single|waits|child|forked|refused|threads\n", stderr);
    return 1;
}
