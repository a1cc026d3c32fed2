/* A program whose allocator uses a mutex, as some do: the first lock of the process is taken inside malloc, and so is each
 * that comes while libraries are looked up. */
#include "truth.h"
#include <dlfcn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char heap[64 << 20] __attribute__((aligned(16)));
static size_t used;

void *malloc(size_t bytes)
{
    OK(pthread_mutex_lock(&mutex));
    bytes = (bytes + 15) & ~(size_t)15;
    size_t *start = (size_t *)(heap + used);
    used += bytes + 16;
    start[0] = bytes;
    OK(pthread_mutex_unlock(&mutex));
    return start + 2;
}

void free(void *memory)
{
    if (memory) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
    }
}

void *calloc(size_t count, size_t bytes)
{
    return malloc(count * bytes); /* nothing is used twice */
}

void *realloc(void *old, size_t bytes)
{
    void *new = malloc(bytes);
    if (old) {
        size_t before = ((size_t *)old)[-2];
        memcpy(new, old, before < bytes ? before : bytes);
    }
    return new;
}

int main(void)
{
    int errno_at_start = errno;
    const char *error = dlerror();
    if (!on_spinpark()) /* the drop-in looks things up, too */
        CHECK(errno_at_start == 0);
    if (error)
        FAIL("another call's error: %s", error);
    char *memory = malloc(10);
    CHECK(memory);
    free(memory);
    printf("%ld\n", (long)(uintptr_t)&mutex);
    return 0;
}
