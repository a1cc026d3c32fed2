/* Locks work before main and after it: in .preinit_array, in constructors of the program and of a library it is
 * linked with, in atexit functions and destructors; with threads each time. A lock that a constructor took is held
 * in main. */
#include "check.h"

extern pthread_mutex_t library_recursive;
extern void library_use(void);

static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static int uses;

static void use(void)
{
    OK(pthread_mutex_lock(&mutex));
    CALL(pthread_mutex_lock(&mutex), EDEADLK);
    CALL(other_trylock(&mutex), EBUSY);
    uses++;
    OK(pthread_mutex_unlock(&mutex));
    CALL(pthread_mutex_unlock(&mutex), EPERM);
    OK(other_lock(&mutex));
}

/* Runs before any constructor, the drop-in's too: there are no threads yet, and the C library is hardly
 * initialised. */
static void preinit(void)
{
    static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    if (pthread_mutex_lock(&mutex) || pthread_mutex_trylock(&mutex) != EBUSY || pthread_cond_broadcast(&cond) ||
        pthread_mutex_unlock(&mutex) || pthread_mutex_unlock(&mutex) != EPERM)
        _exit(2);
    if (pthread_rwlock_wrlock(&rwlock) || pthread_rwlock_tryrdlock(&rwlock) != EBUSY ||
        pthread_rwlock_unlock(&rwlock) || pthread_rwlock_rdlock(&rwlock) || pthread_rwlock_unlock(&rwlock))
        _exit(3);
    uses++;
}
__attribute__((section(".preinit_array"), used)) static void (*preinit_entry)(void) = preinit;

__attribute__((constructor(101))) static void early(void)
{
    use();
    library_use();
}
__attribute__((constructor)) static void late(void)
{
    use();
    library_use();
}
__attribute__((destructor)) static void at_end(void)
{
    use();
    library_use();
    if (uses != 6)
        FAIL("used %d times", uses);
}
static void at_exit(void)
{
    use();
    library_use();
}

int main(void)
{
    CHECK(atexit(at_exit) == 0);
    CHECK(uses == 3);
    CALL(other_trylock(&library_recursive), EBUSY);
    OK(pthread_mutex_unlock(&library_recursive));
    CALL(pthread_mutex_unlock(&library_recursive), EPERM);
    use();
    library_use();
    return 0;
}
