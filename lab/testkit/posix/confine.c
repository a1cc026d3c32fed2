/* Runs a program under a restriction: confine WHAT PROGRAM ARGUMENTS...
 *   no-membarrier  no membarrier
 *   no-rseq        no rseq, no membarrier, no other thread's CPU clock (as under strict seccomp filters)
 *   plain-futex    only FUTEX_WAIT, FUTEX_WAKE and FUTEX_WAIT_BITSET; no other futex call
 *   one-cpu        bound to one CPU
 *   fifo           real-time priority, on one CPU: a thread that spins without end starves the owner
 * Exit status 77 says that the restriction is not available here. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNAVAILABLE 77
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF_EQUAL(value, skip_if_not) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip_if_not))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define FAIL_WITH(error) RETURN(SECCOMP_RET_ERRNO | (error))
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

static int filter(struct sock_filter *code, unsigned short length)
{
    struct sock_fprog program = {length, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int no_rseq(void)
{
    struct sock_filter code[] = {
        LOAD(nr),
        IF_EQUAL(SYS_rseq, 1),
        FAIL_WITH(ENOSYS),
        IF_EQUAL(SYS_membarrier, 1),
        FAIL_WITH(EPERM),
        IF_EQUAL(SYS_clock_gettime, 3),
        LOAD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x80000000u, 0, 1), /* CPU clocks of others are negative numbers */
        FAIL_WITH(EPERM),
        RETURN(SECCOMP_RET_ALLOW),
    };
    return filter(code, sizeof code / sizeof code[0]);
}

static int no_membarrier(void)
{
    struct sock_filter code[] = {
        LOAD(nr),
        IF_EQUAL(SYS_membarrier, 1),
        FAIL_WITH(EPERM),
        RETURN(SECCOMP_RET_ALLOW),
    };
    return filter(code, sizeof code / sizeof code[0]);
}

static int plain_futex(void)
{
    struct sock_filter code[] = {
        LOAD(nr),
        IF_EQUAL(SYS_futex_waitv, 1),
        FAIL_WITH(ENOSYS),
        IF_EQUAL(SYS_futex, 9),
        LOAD(args[1]),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(unsigned)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)),
        IF_EQUAL(FUTEX_WAIT, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(FUTEX_WAKE, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(FUTEX_WAIT_BITSET, 1),
        RETURN(SECCOMP_RET_ALLOW),
        FAIL_WITH(ENOSYS),
        RETURN(SECCOMP_RET_ALLOW),
    };
    return filter(code, sizeof code / sizeof code[0]);
}

static int one_cpu(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    for (int cpu = 0, kept = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && kept++)
            CPU_CLR(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

/* Into the control group that SPINPARK_TEST_GROUP names. */
static int quota(void)
{
    char path[4096];
    const char *group = getenv("SPINPARK_TEST_GROUP");
    if (!group)
        return 1;
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    FILE *file = fopen(path, "w");
    return !file || fputs("0", file) < 0 || fclose(file);
}

static int fifo(void)
{
    struct sched_param param = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    return one_cpu() || sched_setscheduler(0, SCHED_FIFO, &param);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*restrict_it)(void);
    } restrictions[] = {{"no-rseq", no_rseq},
                        {"no-membarrier", no_membarrier},
                        {"plain-futex", plain_futex},
                        {"one-cpu", one_cpu},
                        {"quota", quota},
                        {"fifo", fifo}};
    for (size_t i = 0; argc > 2 && i < sizeof restrictions / sizeof restrictions[0]; i++) {
        if (strcmp(argv[1], restrictions[i].name))
            continue;
        if (restrictions[i].restrict_it()) {
            fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
            return UNAVAILABLE;
        }
        execv(argv[2], argv + 2);
        fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
        return 1;
    }
    fprintf(stderr, "usage: confine no-rseq|no-membarrier|plain-futex|one-cpu|quota|fifo PROGRAM [ARGUMENTS]\n");
    return 1;
}
