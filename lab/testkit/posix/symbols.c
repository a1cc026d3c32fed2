/* Which library answers: with the drop-in, the usual and the versioned names lead into it; without it, everything is libc's. */
#include "check.h"
#include <dlfcn.h>

/* The version of glibc's oldest functions. */
#if defined __x86_64__
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif

static bool from_dropin(void *function)
{
    Dl_info info;
    CHECK(function && dladdr(function, &info) && info.dli_fname);
    const char *preload = getenv("LD_PRELOAD");
    return preload && strcmp(info.dli_fname, preload) == 0;
}

int main(void)
{
    const char *const names[] = {
        "pthread_mutex_init", "pthread_mutex_destroy", "pthread_mutex_lock", "pthread_mutex_trylock",
        "pthread_mutex_timedlock", "pthread_mutex_clocklock", "pthread_mutex_unlock", "pthread_mutex_consistent",
        "pthread_mutex_getprioceiling", "pthread_mutex_setprioceiling", "pthread_rwlock_init",
        "pthread_rwlock_destroy", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "pthread_rwlock_tryrdlock",
        "pthread_rwlock_trywrlock", "pthread_rwlock_timedrdlock", "pthread_rwlock_timedwrlock",
        "pthread_rwlock_clockrdlock", "pthread_rwlock_clockwrlock", "pthread_rwlock_unlock", "pthread_cond_init",
        "pthread_cond_destroy", "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait",
        "pthread_cond_signal", "pthread_cond_broadcast", "mtx_init", "mtx_destroy", "mtx_lock", "mtx_trylock",
        "mtx_timedlock", "mtx_unlock", "cnd_init", "cnd_destroy", "cnd_wait", "cnd_timedwait", "cnd_signal",
        "cnd_broadcast", "__pthread_mutex_init", "__pthread_mutex_destroy", "__pthread_mutex_lock",
        "__pthread_mutex_trylock", "__pthread_mutex_unlock", "__pthread_rwlock_init", "__pthread_rwlock_destroy",
        "__pthread_rwlock_rdlock", "__pthread_rwlock_wrlock", "__pthread_rwlock_tryrdlock",
        "__pthread_rwlock_trywrlock", "__pthread_rwlock_unlock",
    };
    bool want = getenv("LD_PRELOAD") != NULL;
    for (size_t i = 0; i < COUNT(names); i++) {
        void *function = dlsym(RTLD_DEFAULT, names[i]);
        /* glibc 2.34 made some underscored names unavailable to new programs, but not to dlvsym. */
        if (!function)
            function = dlvsym(RTLD_DEFAULT, names[i], OLDEST);
        if (!function)
            FAIL("%s: not found", names[i]);
        if (from_dropin(function) != want)
            FAIL("%s: from the wrong library", names[i]);
    }
    const char *const conds[] = {"pthread_cond_init", "pthread_cond_destroy", "pthread_cond_wait",
                                 "pthread_cond_timedwait", "pthread_cond_signal", "pthread_cond_broadcast"};
    for (size_t i = 0; i < COUNT(conds); i++) {
        void *function = dlvsym(RTLD_DEFAULT, conds[i], "GLIBC_2.3.2");
        if (function && from_dropin(function) != want)
            FAIL("%s@GLIBC_2.3.2: from the wrong library", conds[i]);
#if defined __x86_64__
        function = dlvsym(RTLD_DEFAULT, conds[i], "GLIBC_2.2.5");
        if (from_dropin(function) != want)
            FAIL("%s@GLIBC_2.2.5: from the wrong library", conds[i]);
#endif
    }
    /* A direct reference agrees with dlsym. */
    CHECK(from_dropin((void *)pthread_cond_wait) == want);
    CHECK(from_dropin((void *)pthread_mutex_lock) == want);
    return 0;
}
