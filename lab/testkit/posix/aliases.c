/* glibc exports some functions under several names and versions (__pthread_mutex_lock, pthread_mutex_trylock at
 * GLIBC_2.2.5 and GLIBC_2.34, ...). Whichever a program is linked with, they work on the same objects: a mutex locked
 * through one name is busy for, and released by, all others, also while threads wait. */
#include "check.h"
#include <dlfcn.h>

enum { MAX = 8 };
/* Calls with one to three arguments, all passed alike. (In C23, empty parentheses take none.) */
typedef int function(void *, ...);
struct family {
    const char *name;
    int count;
    function *functions[MAX];
};

static void collect(struct family *family, const char *name)
{
    const char *versions[] = {"GLIBC_2.2.5", "GLIBC_2.30", "GLIBC_2.34"};
    char other_name[64];
    family->name = name;
    family->count = 0;
    for (int underscores = 0; underscores < 2; underscores++) {
        snprintf(other_name, sizeof other_name, "%s%s", underscores ? "__" : "", name);
        for (int v = -1; v < (int)COUNT(versions); v++) {
            /* Before glibc 2.34 these are glibc's own, past the drop-in (docs/drop-in.md). */
            if (underscores && v < 0 && !__GLIBC_PREREQ(2, 34) && on_spinpark())
                continue;
            function *f = (function *)(v < 0 ? dlsym(RTLD_DEFAULT, other_name)
                                             : dlvsym(RTLD_DEFAULT, other_name, versions[v]));
            if (f)
                family->functions[family->count++] = f;
        }
    }
    CHECK(family->count > 0);
    printf("%s: %d\n", name, family->count);
}

static struct family lock, unlock, trylock, init, destroy, rdlock, wrlock, rwunlock, tryrd, trywr, rwinit, rwdestroy,
    timedlock, clocklock;
static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock;

static void *waiter(void *how)
{
    int i = *(int *)how;
    OK(lock.functions[i % lock.count](&mutex));
    OK(unlock.functions[i % unlock.count](&mutex));
    OK((i % 2 ? rdlock : wrlock).functions[i % (i % 2 ? rdlock : wrlock).count](&rwlock));
    OK(rwunlock.functions[i % rwunlock.count](&rwlock));
    return NULL;
}

int main(void)
{
    collect(&lock, "pthread_mutex_lock");
    collect(&unlock, "pthread_mutex_unlock");
    collect(&trylock, "pthread_mutex_trylock");
    collect(&timedlock, "pthread_mutex_timedlock");
    collect(&clocklock, "pthread_mutex_clocklock");
    collect(&init, "pthread_mutex_init");
    collect(&destroy, "pthread_mutex_destroy");
    collect(&rdlock, "pthread_rwlock_rdlock");
    collect(&wrlock, "pthread_rwlock_wrlock");
    collect(&rwunlock, "pthread_rwlock_unlock");
    collect(&tryrd, "pthread_rwlock_tryrdlock");
    collect(&trywr, "pthread_rwlock_trywrlock");
    collect(&rwinit, "pthread_rwlock_init");
    collect(&rwdestroy, "pthread_rwlock_destroy");

    struct timespec past = {0, 0};
    /* 24 steps meet all combinations of a few names with a few others. */
    for (int i = 0; i < 24; i++) {
#define PICK(family, n) family.functions[(n) % family.count]
        OK(PICK(init, i)(&mutex, NULL));
        OK(PICK(rwinit, i)(&rwlock, NULL));
        for (int j = 0; j < 8; j++) {
            switch (j % 4) {
            case 0: OK(PICK(lock, i)(&mutex)); break;
            case 1: OK(PICK(trylock, i)(&mutex)); break;
            case 2: OK(PICK(timedlock, i)(&mutex, &past)); break;
            default: OK(PICK(clocklock, i)(&mutex, CLOCK_MONOTONIC, &past)); break;
            }
            for (int k = 0; k < trylock.count; k++)
                CALL(trylock.functions[k](&mutex), EBUSY);
            CALL(PICK(timedlock, i)(&mutex, &past), ETIMEDOUT);
            CALL(PICK(destroy, i)(&mutex), EBUSY);
            OK(PICK(unlock, j)(&mutex));

            OK(j % 2 ? PICK(wrlock, i)(&rwlock) : PICK(trywr, i)(&rwlock));
            for (int k = 0; k < tryrd.count; k++)
                CALL(tryrd.functions[k](&rwlock), EBUSY);
            for (int k = 0; k < trywr.count; k++)
                CALL(trywr.functions[k](&rwlock), EBUSY);
            OK(PICK(rwunlock, j)(&rwlock));
            OK(j % 2 ? PICK(rdlock, i)(&rwlock) : PICK(tryrd, i)(&rwlock));
            for (int k = 0; k < trywr.count; k++)
                CALL(trywr.functions[k](&rwlock), EBUSY);
            OK(PICK(rwunlock, j)(&rwlock));
        }
        struct thread threads[4];
        int hows[4];
        OK(PICK(lock, i)(&mutex));
        OK(PICK(wrlock, i)(&rwlock));
        for (int t = 0; t < 4; t++) {
            hows[t] = i + t;
            start(&threads[t], waiter, &hows[t]);
            await_sleep(&threads[t]);
        }
        OK(PICK(unlock, i + 1)(&mutex));
        OK(PICK(rwunlock, i + 1)(&rwlock));
        for (int t = 0; t < 4; t++)
            join_soon(&threads[t], "a waiter on another name");
        OK(PICK(destroy, i + 1)(&mutex));
        OK(PICK(rwdestroy, i + 1)(&rwlock));
    }
    return 0;
}
