/* Futexes and semaphores as no sane program uses them: each call answers what the kernel and libc answer, `errno` included. Argument:
 * the scene. */
#include "check.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/select.h>

static uint32_t word;

#define SET(variable, value) __atomic_store_n(&(variable), (value), __ATOMIC_SEQ_CST)
#define GET(variable) __atomic_load_n(&(variable), __ATOMIC_SEQ_CST)

/* The result, and `errno` as the call leaves it. */
#define ANSWERS(call, result, error)                                                                           \
    do {                                                                                                       \
        errno = ERRNO_MARK;                                                                                    \
        long got_ = (call);                                                                                    \
        int errno_ = errno;                                                                                    \
        if (got_ != (result) || errno_ != (error))                                                             \
            FAIL("%s: %ld, errno %d", #call, got_, errno_);                                                    \
    } while (0)

#define FAILS(call, error) ANSWERS(call, -1, error)
#define SUCCEEDS(call, result) ANSWERS(call, result, ERRNO_MARK)

static long wait_at(uint32_t *at, int operation, uint32_t value, const struct timespec *time)
{
    return syscall(SYS_futex, at, operation, value, time, NULL, FUTEX_BITSET_MATCH_ANY);
}

static long wake_at(uint32_t *at, int operation, int number)
{
    return syscall(SYS_futex, at, operation, number, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

static const struct timespec MS_200 = {0, 200000000};

/* ---- memory ---- */

static uint32_t *page;

static void *waits_on_page(void *time)
{
    if (time)
        FAILS(wait_at(page, FUTEX_WAIT_PRIVATE, 0, time), ETIMEDOUT);
    else
        SUCCEEDS(wait_at(page, FUTEX_WAIT_PRIVATE, 0, NULL), 0);
    return NULL;
}

/* A futex without memory: the kernel knows a private one by its address alone. */
static void unmapped(void)
{
    for (int round = 0; round < 3; round++) {
        struct thread late, woken;
        page = map(4096, MAP_PRIVATE);
        start(&late, waits_on_page, (void *)&MS_200);
        await_sleep(&late);
        CHECK(munmap(page, 4096) == 0);
        join(&late);
        SUCCEEDS(wake_at(page, FUTEX_WAKE_PRIVATE, 1), 0);

        /* Nothing else comes to this one. */
        page = map(4096, MAP_PRIVATE);
        start(&woken, waits_on_page, NULL);
        await_sleep(&woken);
        CHECK(mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page);
        FAILS(wake_at(page, FUTEX_WAKE, 1), EFAULT);
        FAILS(wait_at(page, FUTEX_WAIT_PRIVATE, 0, NULL), EFAULT);
        SUCCEEDS(wake_at(page, FUTEX_WAKE_PRIVATE, 1), 1);
        join(&woken);
        FAILS(wait_at(page, FUTEX_WAIT_PRIVATE, 0, &MS_200), EFAULT);
        CHECK(munmap(page, 4096) == 0);
    }
}

/* Pointers to nowhere, and calls that the kernel refuses. */
static void wild(void)
{
    uintptr_t nowhere[] = {0, 8, 0x7ffffffff000, 0xdead000000000000, 0xffffffff81000000, UINTPTR_MAX & ~3UL};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT(nowhere); i++) {
            uint32_t *at = (uint32_t *)nowhere[i];
            FAILS(wait_at(at, FUTEX_WAIT_PRIVATE, 0, NULL), EFAULT);
            FAILS(wait_at(at, FUTEX_WAIT, 0, &MS_200), EFAULT);
            FAILS(wake_at(at, FUTEX_WAKE, 1), EFAULT);
            FAILS(syscall(SYS_futex, at, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), EFAULT);
        }
        FAILS(wait_at((uint32_t *)((char *)&word + 1), FUTEX_WAIT_PRIVATE, 0, NULL), EINVAL);
        FAILS(wake_at((uint32_t *)((char *)&word + 2), FUTEX_WAKE_PRIVATE, 1), EINVAL);
        FAILS(wait_at(&word, FUTEX_WAIT_PRIVATE, 1, NULL), EAGAIN);
        FAILS(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0), EINVAL);
        FAILS(wait_at(&word, FUTEX_WAIT_PRIVATE, 0, (struct timespec *)8), EFAULT);
        FAILS(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0), EPERM);
        FAILS(syscall(SYS_futex, &word, 99, 0, NULL, NULL, 0), ENOSYS);
        FAILS(syscall(SYS_futex, &word, -1, 0, NULL, NULL, 0), ENOSYS);
        /* futex_waitv of nothing, and of an array that is not there: a kernel without it says so. */
        errno = 0;
        CHECK(syscall(449, NULL, 0, 0, NULL, 0) == -1 && (errno == EINVAL || errno == ENOSYS));
        CHECK(syscall(449, (void *)8, 1, 0, NULL, 0) == -1 && (errno == EFAULT || errno == ENOSYS));
        FAILS(syscall(-1L), ENOSYS);
        FAILS(syscall(100000L), ENOSYS);
    }
}

/* ---- flags and processes ---- */

static void *waits_privately(void *unused)
{
    (void)unused;
    SUCCEEDS(wait_at(&word, FUTEX_WAIT_PRIVATE, 0, NULL), 0);
    return NULL;
}

/* Private and shared futexes at one address are two. */
static void mixed(void)
{
    for (int round = 0; round < 10; round++) {
        struct thread thread;
        start(&thread, waits_privately, NULL);
        await_sleep(&thread);
        SUCCEEDS(wake_at(&word, FUTEX_WAKE, 1), 0);
        while (wake_at(&word, FUTEX_WAKE_PRIVATE, 1) == 0)
            sleep_us(100);
        join(&thread);
    }
}

/* Two processes wait for each other in shared memory. */
static void processes(void)
{
    uint32_t *shared = map(4096, MAP_SHARED);
    pid_t child = fork_checked();
    for (uint32_t turn = child ? 0 : 1; turn < 20; turn += 2) {
        for (;;) {
            uint32_t now = GET(*shared);
            if (now == turn)
                break;
            if (wait_at(shared, FUTEX_WAIT, now, NULL) != 0)
                CHECK(errno == EAGAIN || errno == EINTR);
        }
        SET(*shared, turn + 1);
        CHECK(wake_at(shared, FUTEX_WAKE, 1) >= 0);
    }
    if (!child)
        exit(0);
    expect_exit(child);
}

/* A process is forked while a thread waits: in the child none does. */
static void forked(void)
{
    struct thread thread;
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    start(&thread, waits_privately, NULL);
    await_sleep(&thread);
    pid_t child = fork_checked();
    if (!child) {
        SUCCEEDS(wake_at(&word, FUTEX_WAKE_PRIVATE, 1), 0);
        FAILS(wait_at(&word, FUTEX_WAIT_PRIVATE, 0, &MS_200), ETIMEDOUT);
        CHECK(sem_post(&semaphore) == 0 && sem_wait(&semaphore) == 0);
        struct thread again;
        start(&again, waits_privately, NULL);
        await_sleep(&again);
        while (wake_at(&word, FUTEX_WAKE_PRIVATE, 1) == 0)
            sleep_us(100);
        join(&again);
        exit(0);
    }
    expect_exit(child);
    while (wake_at(&word, FUTEX_WAKE_PRIVATE, 1) == 0)
        sleep_us(100);
    join(&thread);
}

/* The child of vfork uses its parent's memory. */
static void vforked(void)
{
    struct thread thread;
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    start(&thread, waits_privately, NULL);
    await_sleep(&thread);
    for (int round = 0; round < 10; round++) {
        pid_t child = vfork();
        CHECK(child >= 0);
        if (child == 0) {
            syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
            sem_post(&semaphore);
            _exit(0);
        }
        CHECK(sem_wait(&semaphore) == 0);
        expect_exit(child);
    }
    while (wake_at(&word, FUTEX_WAKE_PRIVATE, 1) == 0)
        sleep_us(100);
    join(&thread);
}

static sem_t semaphore;

static void *waits_for_ever(void *unused)
{
    (void)unused;
    sem_wait(&semaphore);
    FAIL("no thread has posted");
}

/* The program becomes another one while a thread waits. */
static void executed(void)
{
    struct thread thread;
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    start(&thread, waits_for_ever, NULL);
    await_sleep(&thread);
    execl("/proc/self/exe", "odd", "mixed", NULL);
    FAIL("exec: %s", strerror(errno));
}

/* ---- cancellation ---- */

static atomic_int cleaned;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&cleaned, 1);
}

static void *is_cancelled_in_sem_wait(void *unused)
{
    (void)unused;
    pthread_cleanup_push(count, NULL);
    sem_wait(&semaphore);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *is_cancelled_in_join(void *thread)
{
    pthread_cleanup_push(count, NULL);
    pthread_join(((struct thread *)thread)->handle, NULL);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancelled(void)
{
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    for (int round = 0; round < 10; round++) {
        struct thread waiter, joiner;
        start(&waiter, is_cancelled_in_sem_wait, NULL);
        await_sleep(&waiter);
        start(&joiner, is_cancelled_in_join, &waiter);
        await_sleep(&joiner);
        cancel(&joiner);
        CHECK(join(&joiner) == PTHREAD_CANCELED);
        cancel(&waiter);
        CHECK(join(&waiter) == PTHREAD_CANCELED);
        CHECK(atomic_load(&cleaned) == 2 * round + 2);
    }
    /* The semaphore is as good as before. */
    CHECK(sem_trywait(&semaphore) == -1 && errno == EAGAIN);
    CHECK(sem_post(&semaphore) == 0 && sem_wait(&semaphore) == 0);
}

/* ---- signals ---- */

static void posts(int signal)
{
    (void)signal;
    int error = errno;
    sem_post(&semaphore);
    errno = error;
}

static void wakes(int signal)
{
    (void)signal;
    int error = errno;
    atomic_fetch_add((_Atomic uint32_t *)&word, 1);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = error;
}

static atomic_int rounds_done;

static void *waits_for_signals(void *unused)
{
    (void)unused;
    for (int round = 0; round < 20; round++) {
        while (sem_wait(&semaphore) != 0)
            CHECK(errno == EINTR);
        atomic_fetch_add(&rounds_done, 1);
    }
    for (uint32_t round = 0; round < 20; round++) {
        while (GET(word) == round)
            if (wait_at(&word, FUTEX_WAIT_PRIVATE, round, NULL) != 0)
                CHECK(errno == EINTR || errno == EAGAIN);
        atomic_fetch_add(&rounds_done, 1);
    }
    return NULL;
}

/* A handler ends the wait of the thread that it interrupts; system calls go on after it, or fail. */
static void signalled(void)
{
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        struct sigaction post = {.sa_handler = posts, .sa_flags = flags};
        struct sigaction wake = {.sa_handler = wakes, .sa_flags = flags};
        CHECK(sigaction(SIGUSR1, &post, NULL) == 0 && sigaction(SIGUSR2, &wake, NULL) == 0);
        SET(word, 0);
        atomic_store(&rounds_done, 0);
        struct thread thread;
        start(&thread, waits_for_signals, NULL);
        for (int round = 0; round < 40; round++) {
            await_sleep(&thread);
            OK(pthread_kill(thread.handle, round < 20 ? SIGUSR1 : SIGUSR2));
            await_flag(&rounds_done, round + 1);
        }
        join(&thread);
    }
}

/* ---- the function itself ---- */

/* All arguments arrive, and `errno` stays as it is if nothing fails. */
static void arguments(void)
{
    for (int round = 0; round < 3; round++) {
        errno = ERRNO_MARK;
        void *memory = (void *)syscall(SYS_mmap, NULL, 8192L, (long)(PROT_READ | PROT_WRITE),
                                       (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 0L);
        CHECK(memory != MAP_FAILED && errno == ERRNO_MARK);
        FAILS(syscall(SYS_mmap, NULL, 4096L, (long)PROT_READ, (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 1L), EINVAL);
        SUCCEEDS(syscall(SYS_munmap, memory, 8192L), 0);
        /* The sixth argument is a structure with the signals, and the size of the set. */
        sigset_t none;
        sigemptyset(&none);
        struct timespec short_time = {0, 1000000};
        struct {
            sigset_t *signals;
            size_t size;
        } good = {&none, 8}, bad = {&none, 3};
        SUCCEEDS(syscall(SYS_pselect6, 0L, NULL, NULL, NULL, &short_time, &good), 0);
        FAILS(syscall(SYS_pselect6, 0L, NULL, NULL, NULL, &short_time, &bad), EINVAL);
        SUCCEEDS(syscall(SYS_getpid), getpid());
        SUCCEEDS(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);
        /* The fifth and the sixth: the other word, and what it is compared with. */
        uint32_t other = 0;
        SUCCEEDS(syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1L, &other, 0), 0);
        FAILS(syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1L, &other, 1), EAGAIN);
        /* *other = 5, and wake if it was 0. */
        SUCCEEDS(syscall(SYS_futex, &word, FUTEX_WAKE_OP_PRIVATE, 1, 1L, &other,
                         FUTEX_OP(FUTEX_OP_SET, 5, FUTEX_OP_CMP_EQ, 0)), 0);
        CHECK(other == 5);
        struct timespec end;
        CHECK(clock_gettime(CLOCK_MONOTONIC, &end) == 0);
        FAILS(wait_at(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &end), ETIMEDOUT);
    }
}

/* ---- under a filter ---- */

/* All threads may do what waiting and waking take, and end, and what the recorder's documentation asks for; anything else kills the
 * process. */
static bool allow_little(void)
{
#define ALLOW(number)                                                                                          \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_futex),
        ALLOW(SYS_gettid),
        ALLOW(SYS_getpid),
        ALLOW(SYS_tgkill),
        ALLOW(SYS_prctl),
        ALLOW(SYS_mmap),
        ALLOW(SYS_mprotect),
        ALLOW(SYS_clock_gettime),
        ALLOW(SYS_nanosleep),
        ALLOW(SYS_clock_nanosleep),
        ALLOW(SYS_sched_yield),
        ALLOW(SYS_write),
        ALLOW(SYS_rt_sigprocmask),
        ALLOW(SYS_madvise),
        ALLOW(SYS_munmap),
        ALLOW(SYS_exit),
        ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static atomic_int seen_by_waiter;

static void *waits_confined(void *unused)
{
    (void)unused;
    for (uint32_t round = 0; round < 20; round++) {
        while (GET(word) == round)
            if (wait_at(&word, FUTEX_WAIT_PRIVATE, round, NULL) != 0)
                CHECK(errno == EINTR || errno == EAGAIN);
        CHECK(sem_wait(&semaphore) == 0);
        atomic_store(&seen_by_waiter, (int)round + 1);
    }
    return NULL;
}

static void let_go_confined(uint32_t from, uint32_t to)
{
    for (uint32_t round = from; round < to; round++) {
        sleep_ms(5);
        SET(word, round + 1);
        CHECK(wake_at(&word, FUTEX_WAKE_PRIVATE, 1) >= 0);
        sleep_ms(5);
        CHECK(sem_post(&semaphore) == 0);
        await_flag(&seen_by_waiter, (int)round + 1);
    }
}

static void confine_after(uint32_t rounds)
{
    struct thread thread;
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    start(&thread, waits_confined, NULL);
    let_go_confined(0, rounds);
    if (!allow_little()) {
        puts("skipped: no seccomp here");
        fflush(stdout);
    }
    let_go_confined(rounds, 20);
    join(&thread);
    _exit(0);
}

static void confined_at_start(void) { confine_after(0); }
static void confined_later(void) { confine_after(10); }

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenes[] = {
        {"unmapped", unmapped},   {"wild", wild},
        {"mixed", mixed},         {"processes", processes},
        {"forked", forked},       {"vforked", vforked},
        {"executed", executed},   {"cancelled", cancelled},
        {"signalled", signalled}, {"arguments", arguments},
        {"confined_at_start", confined_at_start},
        {"confined_later", confined_later},
    };
    for (size_t i = 0; argc == 2 && i < COUNT(scenes); i++) {
        if (strcmp(argv[1], scenes[i].name) == 0) {
            check_context = scenes[i].name;
            scenes[i].run();
            puts("ok");
            return 0;
        }
    }
    FAIL("no such scene");
}
