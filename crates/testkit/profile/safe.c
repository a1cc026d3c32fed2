/* What programs do that a recorder may stumble over.
 *
 *   safe SCENE
 *
 * `mutex N` on standard output: the mutex at this address was taken N times by the process that said so. */
#include "truth.h"
#include <sys/time.h>
#include <ucontext.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void lock_often(pthread_mutex_t *mutex, int times)
{
    for (int i = 0; i < times; i++) {
        OK(pthread_mutex_lock(mutex));
        OK(pthread_mutex_unlock(mutex));
    }
}

static void say(int times)
{
    printf("%ld %d\n", (long)(uintptr_t)&mutex, times);
    fflush(stdout);
}

static void await_child(pid_t child)
{
    int status;
    pid_t ended;
    while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    CHECK(ended == child);
    if (status != 0)
        FAIL("a child ended with %#x", status);
}

/* ---- children ------------------------------------------------------------------------------------------ */

/* A child of which no handler of pthread_atfork is told. */
static void scene_bare_clone(void)
{
    lock_often(&mutex, 100);
    pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) {
        lock_often(&mutex, 1000);
        _exit(0);
    }
    await_child(child);
    say(100);
}

static atomic_int forks;
static volatile int is_child;

static void forks_in_handler(int signal)
{
    (void)signal;
    if (is_child || atomic_load(&forks) == 40)
        return;
    int errno_before = errno;
    pid_t child = fork();
    if (child == 0) {
        is_child = 1;
        alarm(60);
    } else {
        CHECK(child > 0);
        await_child(child);
        atomic_fetch_add(&forks, 1);
    }
    errno = errno_before;
}

/* The stack differs each time, so the recorder has much to do. */
NOINLINE static void lock_deep(int depth, pthread_mutex_t *mutex)
{
    if (depth > 0)
        lock_deep(depth - 1, mutex);
    else
        lock_often(mutex, 1);
    NOT_LAST();
}

/* A handler forks wherever the signal comes; the child returns from it, and goes on with what was interrupted. */
static void scene_fork_in_handler(void)
{
    static pthread_mutex_t mutexes[512];
    CHECK(signal(SIGALRM, forks_in_handler) != SIG_ERR);
    struct itimerval often = {{0, 1500}, {0, 1500}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; atomic_load(&forks) < 40; i++) {
        lock_deep(i % 23, &mutexes[i * 7 % 512]);
        if (is_child) {
            for (int more = 0; more < 100; more++)
                lock_deep(more % 23, &mutexes[more * 7 % 512]);
            exit(0);
        }
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    say(0);
}

/* ---- stacks -------------------------------------------------------------------------------------------- */

static atomic_int is_held;

static void *holds(void *argument)
{
    (void)argument;
    OK(pthread_mutex_lock(&mutex));
    atomic_store(&is_held, 1);
    await_blocked();
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

/* Takes the mutex, for which it has to wait. */
NOINLINE static void wait_for_mutex(void)
{
    about_to_block();
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
}

/* Lets a thread take the mutex, runs `waits` meanwhile, which is to wait for it. */
static void while_held(void (*waits)(void))
{
    pthread_t thread;
    atomic_store(&is_held, 0);
    OK(pthread_create(&thread, NULL, holds, NULL));
    while (!atomic_load(&is_held))
        sched_yield();
    waits();
    OK(pthread_join(thread, NULL));
}

static void *make_stack(size_t bytes)
{
    void *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    return stack;
}

#if defined __x86_64__
/* Coroutines as people make them: above the first frame of a stack lies what happens to lie there. */
void switch_stacks(void **from, void *to);
__asm__(".globl switch_stacks\n"
        "switch_stacks: push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
        "mov %rsp, (%rdi); mov %rsi, %rsp\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret");
static void *main_stack, *coroutine_stack, *next_stack;

static void coroutine(void)
{
    wait_for_mutex();
    switch_stacks(&coroutine_stack, main_stack);
}

static void run_coroutine(void)
{
    switch_stacks(&main_stack, next_stack);
}

static void scene_coroutines(void)
{
    static void *const above[] = {(void *)0x21, (void *)0x7000deadbeef, NULL, (void *)abort};
    for (int i = 0; i < 4; i++) {
        void **top = (void **)((char *)make_stack(65536) + 65536);
        *--top = above[i];
        *--top = (void *)coroutine;
        for (int saved = 0; saved < 6; saved++)
            *--top = NULL;
        next_stack = top;
        while_held(run_coroutine);
    }
    say(8);
}
#endif

static void waits_in_handler(int signal)
{
    (void)signal;
    wait_for_mutex();
}

static void raise_signal(void)
{
    CHECK(raise(SIGUSR1) == 0);
}

static void handle_on(void *stack, size_t bytes)
{
    stack_t alternate = {.ss_sp = stack, .ss_size = bytes};
    CHECK(sigaltstack(&alternate, NULL) == 0);
    struct sigaction action = {.sa_handler = waits_in_handler, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}

static ucontext_t back, fiber;

static void raise_in_fiber(void)
{
    while_held(raise_signal);
}

/* A handler on a stack of its own interrupts a fiber, whose stack is gone when it comes again. */
static void scene_handler_over_fiber(void)
{
    void *stack = make_stack(65536);
    handle_on(make_stack(65536), 65536); /* below the other one: mappings grow downwards */
    CHECK(getcontext(&fiber) == 0);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = 65536;
    fiber.uc_link = &back;
    makecontext(&fiber, raise_in_fiber, 0);
    CHECK(swapcontext(&back, &fiber) == 0);
    CHECK(munmap(stack, 65536) == 0);
    while_held(raise_signal);
    say(4);
}

static void *waits(void *argument)
{
    (void)argument;
    wait_for_mutex();
    return NULL;
}

static void wait_in_small_thread(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    OK(pthread_attr_init(&attributes));
    OK(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN));
    OK(pthread_create(&thread, &attributes, waits, NULL));
    OK(pthread_join(thread, NULL));
}

/* The smallest stacks that there are. */
static void scene_small_stacks(void)
{
    enum { BELOW = 16384 };
    long bytes = sysconf(_SC_MINSIGSTKSZ) + 4500;
    bytes = bytes < 8192 ? 8192 : bytes;
    unsigned char *memory = make_stack(BELOW + bytes);
    memset(memory, 0xa5, BELOW);
    handle_on(memory + BELOW, bytes);
    while_held(raise_signal);
    for (int i = 0; i < BELOW; i++)
        CHECK(memory[i] == 0xa5);
    while_held(wait_in_small_thread);
    say(4);
}

/* A time that is none at all is not looked at. */
static void scene_null_time(void)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct timespec *volatile time = NULL;
    if (!on_spinpark()) {
        OK(pthread_rwlock_timedrdlock(&lock, time));
        OK(pthread_rwlock_unlock(&lock));
    }
    say(0);
}

/* ---- holders ------------------------------------------------------------------------------------------- */

enum { ROUNDS = 40 };

NOINLINE static void take(void)
{
    OK(pthread_mutex_lock(&mutex));
    NOT_LAST();
}

NOINLINE static void quick(void)
{
    take();
    OK(pthread_mutex_unlock(&mutex));
    NOT_LAST();
}

NOINLINE static void slow(void)
{
    take();
    atomic_store(&is_held, 1);
    await_blocked();
    OK(pthread_mutex_unlock(&mutex));
    NOT_LAST();
}

static void *serves(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(2 * round);
        for (int i = 0; i < 7; i++)
            quick();
        slow();
        next_turn();
    }
    return NULL;
}

/* A function of the program's own locks: those who call it do so from equal frames. All wait for `slow`. */
static void scene_wrapper(void)
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, serves, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        while (!atomic_load(&is_held))
            sched_yield();
        wait_for_mutex();
        await_turn(2 * round + 1);
        atomic_store(&is_held, 0);
        next_turn();
    }
    OK(pthread_join(thread, NULL));
    say(9 * ROUNDS);
    printf("%ld %ld\n", (long)(uintptr_t)quick, (long)(uintptr_t)slow);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE static void stale(void)
{
    OK(pthread_rwlock_rdlock(&rwlock));
    NOT_LAST();
}

/* Reads, after a wait, and leaves it to another thread to say that it has read. */
static void *reads(void *argument)
{
    (void)argument;
    about_to_block();
    stale();
    next_turn();
    await_turn(-1);
    return NULL;
}

static void *writes(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_rwlock_wrlock(&rwlock));
        atomic_store(&is_held, 1);
        await_blocked();
        OK(pthread_rwlock_unlock(&rwlock));
        while (atomic_load(&is_held))
            sched_yield();
    }
    return NULL;
}

static void scene_stale_reader(void)
{
    pthread_t reader, writer;
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_create(&reader, NULL, reads, NULL));
    await_blocked();
    OK(pthread_rwlock_unlock(&rwlock));
    await_turn(1);
    OK(pthread_rwlock_unlock(&rwlock)); /* the reader's */
    OK(pthread_create(&writer, NULL, writes, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        while (!atomic_load(&is_held))
            sched_yield();
        about_to_block();
        OK(pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        atomic_store(&is_held, 0);
    }
    OK(pthread_join(writer, NULL));
    atomic_store(&turn, -1);
    OK(pthread_join(reader, NULL));
    say(0);
    printf("%ld\n", (long)(uintptr_t)stale);
}

/* ---- kinds --------------------------------------------------------------------------------------------- */

/* Mutexes of processes, which nobody waits for. */
static void scene_shared_mutexes(void)
{
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    static pthread_mutex_t mutexes[3];
    pthread_t thread;
    pthread_mutexattr_t attributes;
    OK(pthread_create(&thread, NULL, waits, NULL)); /* a process of one thread is not looked at */
    OK(pthread_join(thread, NULL));
    say(1);
    for (int i = 0; i < 3; i++) {
        OK(pthread_mutexattr_init(&attributes));
        OK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
        OK(pthread_mutexattr_settype(&attributes, types[i]));
        OK(pthread_mutex_init(&mutexes[i], &attributes));
        for (int times = 0; times < 100; times++) {
            OK(pthread_mutex_lock(&mutexes[i]));
            if (types[i] == PTHREAD_MUTEX_RECURSIVE) {
                OK(pthread_mutex_lock(&mutexes[i]));
                OK(pthread_mutex_unlock(&mutexes[i]));
            }
            OK(pthread_mutex_unlock(&mutexes[i]));
        }
        printf("%ld\n", (long)(uintptr_t)&mutexes[i]);
    }
}

/* A mutex, and then a read-write lock where it was. */
static void scene_memory_used_again(void)
{
    static union {
        pthread_mutex_t mutex;
        pthread_rwlock_t lock;
    } memory;
    memory.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    lock_often(&memory.mutex, 10);
    memset(&memory, 0, sizeof memory);
    memory.lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    for (int i = 0; i < 20; i++) {
        OK(pthread_rwlock_wrlock(&memory.lock));
        OK(pthread_rwlock_unlock(&memory.lock));
    }
    say(0);
    printf("%ld\n", (long)(uintptr_t)&memory);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

/* What is locked in memory is what is used. */
static void scene_locked_memory(void)
{
    lock_often(&mutex, 1);
    bool is_locked = mlockall(MCL_CURRENT) == 0;
    long there = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status);
    while (fgets(line, sizeof line, status))
        sscanf(line, "VmRSS: %ld kB", &there);
    fclose(status);
    say(1);
    printf("%d %ld\n", is_locked, there);
}

int main(int count, char **arguments)
{
    CHECK(count >= 2);
    const char *scene = arguments[1];
#define SCENE(name, function) else if (strcmp(scene, name) == 0) function()
    if (0)
        ;
    SCENE("bare-clone", scene_bare_clone);
    SCENE("fork-in-handler", scene_fork_in_handler);
#if defined __x86_64__
    SCENE("coroutines", scene_coroutines);
#endif
    SCENE("handler-over-fiber", scene_handler_over_fiber);
    SCENE("small-stacks", scene_small_stacks);
    SCENE("null-time", scene_null_time);
    SCENE("wrapper", scene_wrapper);
    SCENE("stale-reader", scene_stale_reader);
    SCENE("shared-mutexes", scene_shared_mutexes);
    SCENE("memory-used-again", scene_memory_used_again);
    SCENE("locked-memory", scene_locked_memory);
    else
        FAIL("no scene %s", scene);
    return 0;
}
