/* A program that has a function of its own called `syscall`, which libraries can see: all calls go there, none is lost. */
#include "check.h"
#include <linux/futex.h>
#include <stdarg.h>

static atomic_long calls;

long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    atomic_fetch_add(&calls, 1);
    register long fourth __asm__("r10") = a[3];
    register long fifth __asm__("r8") = a[4];
    register long sixth __asm__("r9") = a[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    /* Its own way to report errors. */
    return result;
}

static atomic_int word;

static void *waits(void *unused)
{
    (void)unused;
    for (int round = 0; round < 20; round++)
        while (atomic_load(&word) == round) {
            long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
            CHECK(result == 0 || result == -EAGAIN || result == -EINTR);
        }
    return NULL;
}

int main(void)
{
    struct thread thread;
    start(&thread, waits, NULL);
    for (int round = 0; round < 20; round++) {
        await_sleep(&thread);
        atomic_store(&word, round + 1);
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    join(&thread);
    errno = ERRNO_MARK;
    CHECK(syscall(SYS_futex, NULL, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == -EFAULT && errno == ERRNO_MARK);
    /* The wake-ups, the waits of at least one round, and the last. */
    CHECK(atomic_load(&calls) >= 22);
    puts("ok");
    return 0;
}
