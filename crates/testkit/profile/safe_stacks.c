/* Stacks that are not a thread's own, or hardly large enough. */
#include "safe.h"
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

MAIN({"coroutines", scene_coroutines}, {"handler-over-fiber", scene_handler_over_fiber}, {"small-stacks", scene_small_stacks})
