/* What libc has besides mutexes, read-write locks and condition variables; and futexes by system calls. */
#include "rounds.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <stdint.h>
#include <threads.h>

static void must(int is_true)
{
    if (!is_true) {
        fprintf(stderr, "a call failed: %s\n", strerror(errno));
        exit(1);
    }
}

/* ---- semaphores ---- */

static sem_t semaphore;

OF_ITS_OWN static void semaphore_waits(int round)
{
    (void)round;
    must(sem_wait(&semaphore) == 0);
    STAYS;
}

OF_ITS_OWN static void semaphore_lets_go(int round)
{
    (void)round;
    let_come();
    must(sem_post(&semaphore) == 0);
    STAYS;
}

static struct timespec in_a_minute(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += 60;
    return time;
}

OF_ITS_OWN static void timed_semaphore_waits(int round)
{
    (void)round;
    struct timespec time = in_a_minute();
    must(sem_timedwait(&semaphore, &time) == 0);
    STAYS;
}

OF_ITS_OWN static void timed_semaphore_lets_go(int round)
{
    semaphore_lets_go(round);
    STAYS;
}

/* ---- barriers, ends of threads, initialisations ---- */

static pthread_barrier_t barrier;

OF_ITS_OWN static void barrier_waits(int round)
{
    (void)round;
    pthread_barrier_wait(&barrier);
    STAYS;
}

OF_ITS_OWN static void barrier_lets_go(int round)
{
    (void)round;
    let_come();
    pthread_barrier_wait(&barrier);
    STAYS;
}

static pthread_t joined;
static int may_end;

static void *ends(void *round)
{
    until(&may_end, (int)(intptr_t)round + 1);
    return NULL;
}

OF_ITS_OWN static void join_waits(int round)
{
    (void)round;
    must(pthread_join(joined, NULL) == 0);
    STAYS;
}

OF_ITS_OWN static void join_lets_go(int round)
{
    must(pthread_create(&joined, NULL, ends, (void *)(intptr_t)round) == 0);
    let_come();
    SET(may_end, round + 1);
}

static thrd_t joined_c11;

static int ends_c11(void *round)
{
    ends(round);
    return 0;
}

OF_ITS_OWN static void thrd_join_waits(int round)
{
    (void)round;
    must(thrd_join(joined_c11, NULL) == thrd_success);
    STAYS;
}

OF_ITS_OWN static void thrd_join_lets_go(int round)
{
    must(thrd_create(&joined_c11, ends_c11, (void *)(intptr_t)round) == thrd_success);
    let_come();
    SET(may_end, round + 1);
}

static pthread_once_t onces[ROUNDS];
static once_flag onces_c11[ROUNDS];

OF_ITS_OWN static void once_waits(int round)
{
    must(pthread_once(&onces[round], abort) == 0);
    STAYS;
}

OF_ITS_OWN static void once_lets_go(int round)
{
    must(pthread_once(&onces[round], let_come) == 0);
    STAYS;
}

OF_ITS_OWN static void call_once_waits(int round)
{
    call_once(&onces_c11[round], abort);
    STAYS;
}

OF_ITS_OWN static void call_once_lets_go(int round)
{
    call_once(&onces_c11[round], let_come);
    STAYS;
}

/* ---- spin locks ---- */

static pthread_spinlock_t spin;

OF_ITS_OWN static void spin_waits(int round)
{
    (void)round;
    must(pthread_spin_lock(&spin) == 0);
    must(pthread_spin_unlock(&spin) == 0);
    STAYS;
}

OF_ITS_OWN static void spin_lets_go(int round)
{
    (void)round;
    must(pthread_spin_lock(&spin) == 0);
    let_come_awake();
    must(pthread_spin_unlock(&spin) == 0);
    STAYS;
}

/* ---- futexes, of which no table knows what they are for ---- */

static uint32_t word, other_word;

/* A futex call that may be interrupted, or find that the word has changed, which its caller looks at. */
#define MAY_FAIL(call) must((call) >= 0 || errno == EAGAIN || errno == EINTR)

OF_ITS_OWN static void futex_waits(int round)
{
    while (GET(word) == (uint32_t)round)
        MAY_FAIL(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0));
    STAYS;
}

OF_ITS_OWN static void futex_lets_go(int round)
{
    let_come();
    SET(word, (uint32_t)round + 1);
    must(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
    STAYS;
}

/* Two futexes in eight bytes, alternately. */
static uint32_t neighbours[2] __attribute__((aligned(8)));

OF_ITS_OWN static void neighbours_waits(int round)
{
    uint32_t *one = &neighbours[round % 2];
    while (GET(*one) < (uint32_t)round + 1)
        MAY_FAIL(syscall(SYS_futex, one, FUTEX_WAIT_PRIVATE, GET(*one), NULL, NULL, 0));
    STAYS;
}

OF_ITS_OWN static void neighbours_lets_go(int round)
{
    let_come();
    SET(neighbours[round % 2], (uint32_t)round + 1);
    must(syscall(SYS_futex, &neighbours[round % 2], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
    STAYS;
}

OF_ITS_OWN static void bitset_waits(int round)
{
    while (GET(word) == (uint32_t)round)
        MAY_FAIL(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, round, NULL, NULL, 2));
    STAYS;
}

OF_ITS_OWN static void bitset_lets_go(int round)
{
    let_come();
    SET(word, (uint32_t)round + 1);
    /* For other bits: no thread wakes. */
    must(syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 1) == 0);
    must(syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 2) == 1);
    STAYS;
}

/* Waits for 20 ms, and is not woken. */
OF_ITS_OWN static void late_waits(int round)
{
    (void)round;
    struct timespec time = {0, HOLD_MS * 1000000L};
    must(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0) == -1 && errno == ETIMEDOUT);
    STAYS;
}

OF_ITS_OWN static void late_lets_go(int round)
{
    (void)round;
    let_come_awake();
}

OF_ITS_OWN static void pi_waits(int round)
{
    (void)round;
    uint32_t free = 0;
    if (!__atomic_compare_exchange_n(&word, &free, (uint32_t)gettid(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        must(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
    must((GET(word) & FUTEX_TID_MASK) == (uint32_t)gettid());
    must(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
    STAYS;
}

OF_ITS_OWN static void pi_lets_go(int round)
{
    (void)round;
    SET(word, (uint32_t)gettid());
    let_come();
    must(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
    STAYS;
}

/* The waiter is moved to another word, and woken there. */
OF_ITS_OWN static void requeue_waits(int round)
{
    must(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == 0);
    must(GET(other_word) == (uint32_t)round + 1);
    STAYS;
}

OF_ITS_OWN static void requeue_lets_go(int round)
{
    let_come();
    must(syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1L, &other_word, 0) == 1);
    let_wait();
    SET(other_word, (uint32_t)round + 1);
    must(syscall(SYS_futex, &other_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
    STAYS;
}

/* ---- newer calls: the structure and the numbers are the kernel's, as old headers lack them ---- */

struct one_of_several {
    uint64_t value, address;
    uint32_t flags, reserved;
};
#define PRIVATE_32_BITS (128 | 2)
#define CALL_WAITV 449
#define CALL_WAKE 454
#define CALL_WAIT 455

static void absent_unless(int is_there)
{
    if (!is_there) {
        puts("absent");
        exit(0);
    }
}

OF_ITS_OWN static void waitv_waits(int round)
{
    struct one_of_several words[2] = {
        {(uint64_t)round, (uint64_t)(uintptr_t)&word, PRIVATE_32_BITS, 0},
        {0, (uint64_t)(uintptr_t)&other_word, PRIVATE_32_BITS, 0},
    };
    long which = syscall(CALL_WAITV, words, 2, 0, NULL, CLOCK_MONOTONIC);
    must(which == 0);
    STAYS;
}

OF_ITS_OWN static void waitv_lets_go(int round)
{
    absent_unless(syscall(CALL_WAITV, NULL, 0, 0, NULL, 0) == -1 && errno == EINVAL);
    let_come();
    SET(word, (uint32_t)round + 1);
    must(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
    STAYS;
}

OF_ITS_OWN static void futex2_waits(int round)
{
    while (GET(word) == (uint32_t)round)
        MAY_FAIL(syscall(CALL_WAIT, &word, (long)round, 1L, (long)PRIVATE_32_BITS, NULL, (long)CLOCK_MONOTONIC));
    STAYS;
}

OF_ITS_OWN static void futex2_lets_go(int round)
{
    absent_unless(syscall(CALL_WAKE, &other_word, 1L, 1L, (long)PRIVATE_32_BITS) == 0);
    let_come();
    SET(word, (uint32_t)round + 1);
    must(syscall(CALL_WAKE, &word, 1L, 1L, (long)PRIVATE_32_BITS) == 1);
    STAYS;
}

int main(int argc, char **argv)
{
    static const struct scene scenes[] = {
        SCENE(semaphore), SCENE(timed_semaphore), SCENE(barrier), SCENE(join), SCENE(thrd_join), SCENE(once),
        SCENE(call_once), SCENE(spin), SCENE(futex), SCENE(neighbours), SCENE(bitset), SCENE(late), SCENE(pi),
        SCENE(requeue), SCENE(waitv), SCENE(futex2),
    };
    must(sem_init(&semaphore, 0, 0) == 0);
    must(pthread_barrier_init(&barrier, NULL, 2) == 0);
    must(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof scenes[0]);
}
