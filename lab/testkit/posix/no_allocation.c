/* Lock functions do not allocate, not even the first one of a process: allocators call them while they are being set up
 * (Chromium's waits for itself for ever if it is called again there). */
#include "check.h"

static _Thread_local int inside;
static int allocations;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);

void *malloc(size_t size)
{
    allocations += inside;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations += inside;
    return __libc_calloc(count, size);
}

static void use(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    inside = 1;
    if (pthread_mutex_lock(&mutex) || pthread_cond_signal(&cond) || pthread_mutex_unlock(&mutex) || pthread_rwlock_rdlock(&rwlock) ||
        pthread_rwlock_unlock(&rwlock))
        _exit(2);
    inside = 0;
}

/* Before the drop-in's own initialiser. */
__attribute__((section(".preinit_array"), used)) static void (*preinit_entry)(void) = use;

int main(void)
{
#if !__GLIBC_PREREQ(2, 34)
    allocations = 0; /* There, `dlsym` allocates in each thread's first call, and the drop-in has no other way to glibc's functions. */
#endif
    use();
    CHECK(allocations == 0);
    return 0;
}
