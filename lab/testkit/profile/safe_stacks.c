/* Stacks that are not a thread's own, or just large enough. */
#include "safe.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

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
#else
static void scene_coroutines(void)
{
    FAIL("stacks are switched on x86-64 only");
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

#if defined __x86_64__
/* Made code without unwind tables, with frame pointers: calls its argument, from a frame below another. */
static void (*make_code(void))(void (*)(void))
{
    static const unsigned char code[] = {
        0x55, 0x48, 0x89, 0xe5, 0xe8, 2, 0, 0, 0, 0x5d, 0xc3, /* push %rbp; mov %rsp, %rbp; call 1f; pop %rbp; ret */
        0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3,       /* 1: push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
    };
    void *memory = make_stack(4096);
    memcpy(memory, code, sizeof code);
    CHECK(mprotect(memory, 4096, PROT_READ | PROT_EXEC) == 0);
    return (void (*)(void (*)(void)))memory;
}
static void (*made)(void (*)(void));

static void raise_in_made_code(void)
{
    made(raise_signal);
}

static void wait_in_made_code(void)
{
    made(wait_for_mutex);
}

/* A caller that no stack has had. */
static void wait_in_made_code_again(void)
{
    made(wait_for_mutex);
    atomic_thread_fence(memory_order_seq_cst);
}

/* The handler's stack lies in the thread's own: below the frames that are followed. */
NOINLINE static void handle_in_own_stack(void)
{
    _Alignas(16) char room[65536];
    handle_on(room, sizeof room);
    for (int i = 0; i < 4; i++)
        while_held(raise_in_made_code);
    stack_t none = {.ss_flags = SS_DISABLE};
    CHECK(sigaltstack(&none, NULL) == 0);
}

/* Then in a sandbox that kills for the calls by which code could be read. */
static void scene_made_code(void)
{
    made = make_code();
    while_held(wait_in_made_code);
    handle_in_own_stack();
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {5, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
    for (int i = 0; i < 4; i++)
        while_held(wait_in_made_code_again);
    say(18);
}
#else
static void scene_made_code(void)
{
    FAIL("code is made for x86-64 only");
}
#endif

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

MAIN({"coroutines", scene_coroutines}, {"made-code", scene_made_code}, {"handler-over-fiber", scene_handler_over_fiber}, {"small-stacks", scene_small_stacks})
