/* Generated code, without unwind tables, with frame pointers, as V8 makes it and a JVM with `-XX:+PreserveFramePointer`. Two
 * kinds of requests take the same lock through one function: only their callers, which are made code and the functions that
 * called it, tell them apart. */
#include "corpus.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 40 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held, waited;
typedef void made(void (*)(long), long);
static made *rebuild, *look_up;

static NOINLINE void with_lock(long ms)
{
    CHECK(pthread_mutex_lock(&table_lock) == 0);
    if (ms > 0) {
        atomic_fetch_add(&held, 1);
        sleep_ms(ms);
    }
    CHECK(pthread_mutex_unlock(&table_lock) == 0);
    NOT_LAST();
}

/* A function that calls its first argument with its second one, from a frame below another. */
static made *make(FILE *map, unsigned char *at, const char *name)
{
    static const unsigned char code[] = {
        0x55,                   /*     push %rbp */
        0x48, 0x89, 0xe5,       /*     mov %rsp, %rbp */
        0xe8, 2, 0, 0, 0,       /*     call 1f */
        0x5d,                   /*     pop %rbp */
        0xc3,                   /*     ret */
        0x55,                   /* 1:  push %rbp */
        0x48, 0x89, 0xe5,       /*     mov %rsp, %rbp */
        0x48, 0x89, 0xf8,       /*     mov %rdi, %rax */
        0x48, 0x89, 0xf7,       /*     mov %rsi, %rdi */
        0xff, 0xd0,             /*     call *%rax */
        0x5d,                   /*     pop %rbp */
        0xc3,                   /*     ret */
    };
    memcpy(at, code, sizeof code);
    fprintf(map, "%lx b %s\n%lx %lx %s::inner\n", (unsigned long)(uintptr_t)at, name,
            (unsigned long)(uintptr_t)(at + 11), (unsigned long)(sizeof code - 11), name);
    return (made *)(uintptr_t)at;
}

static NOINLINE void *refresh(void *none)
{
    for (int round = 0; round < ROUNDS; round++) {
        rebuild(with_lock, 5);
        await_at_least(&waited, round + 1);
    }
    return none;
}

static NOINLINE void *answer(void *none)
{
    for (int round = 0; round < ROUNDS; round++) {
        await_at_least(&held, round + 1);
        look_up(with_lock, 0);
        atomic_store(&waited, round + 1);
    }
    return none;
}

int main(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    CHECK(map);
    unsigned char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    rebuild = make(map, memory, "made::rebuild");
    look_up = make(map, memory + 64, "made::look_up");
    CHECK(fclose(map) == 0);
    CHECK(mprotect(memory, 4096, PROT_READ | PROT_EXEC) == 0);
    pthread_t one = start(refresh, NULL), other = start(answer, NULL);
    join(one);
    join(other);
    return 0;
}
