/* Errors that do not depend on time or on other threads:
 *  - EPERM from unlocking an errorcheck or recursive mutex that is free, or locked by another thread;
 *  - EDEADLK and EBUSY for the owner; none of them changes the state;
 *  - EINVAL from consistent and the priority-ceiling calls on a mutex that is not of that kind;
 *  - EINVAL from unknown attribute values; attributes read back as set. */
#include "check.h"

static pthread_mutex_t mutex;

static void *holder(void *arg)
{
    atomic_int *step = arg;
    OK(pthread_mutex_lock(&mutex));
    atomic_store(step, 1);
    await_flag(step, 2);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void not_owned(int type)
{
    bool checks = type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
    if (checks)
        CALL(pthread_mutex_unlock(&mutex), EPERM);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    if (checks)
        CALL(pthread_mutex_unlock(&mutex), EPERM);

    atomic_int step = 0;
    struct thread thread;
    start(&thread, holder, &step);
    await_flag(&step, 1);
    CALL(pthread_mutex_trylock(&mutex), EBUSY);
    if (checks)
        CALL(pthread_mutex_unlock(&mutex), EPERM);
    CALL(pthread_mutex_trylock(&mutex), EBUSY);
    atomic_store(&step, 2);
    join(&thread);
    if (checks)
        CALL(pthread_mutex_unlock(&mutex), EPERM);
    OK(pthread_mutex_trylock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
}

int main(void)
{
    FOR_EACH_KIND(kind) {
        mutex_make(&mutex, kind);
        not_owned(kind->type);
        if (kind->type == PTHREAD_MUTEX_ERRORCHECK) {
            OK(pthread_mutex_lock(&mutex));
            for (int i = 0; i < 3; i++)
                CALL(pthread_mutex_lock(&mutex), EDEADLK);
            OK(pthread_mutex_unlock(&mutex));
            CALL(pthread_mutex_unlock(&mutex), EPERM);
            OK(other_trylock(&mutex));
        }
        int ceiling = 77;
        CALL(pthread_mutex_consistent(&mutex), EINVAL);
        CALL(pthread_mutex_getprioceiling(&mutex, &ceiling), EINVAL);
        CHECK(ceiling == 77);
        CALL(pthread_mutex_setprioceiling(&mutex, sched_get_priority_min(SCHED_FIFO), &ceiling), EINVAL);
        OK(pthread_mutex_trylock(&mutex));
        CALL(pthread_mutex_consistent(&mutex), EINVAL);
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_mutex_destroy(&mutex));
    }

    check_context = "attributes";
    pthread_mutexattr_t attr;
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_settype(&attr, 99) == EINVAL);
    CHECK(pthread_mutexattr_settype(&attr, -1) == EINVAL);
    CHECK(pthread_mutexattr_setrobust(&attr, 99) == EINVAL);
    CHECK(pthread_mutexattr_setprotocol(&attr, 99) == EINVAL);
    CHECK(pthread_mutexattr_setpshared(&attr, 99) == EINVAL);
    CHECK(pthread_mutexattr_setprioceiling(&attr, 100000) == EINVAL);
    const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                         PTHREAD_MUTEX_ADAPTIVE_NP};
    for (size_t i = 0; i < COUNT(types); i++) {
        int type;
        CHECK(pthread_mutexattr_settype(&attr, types[i]) == 0);
        CHECK(pthread_mutexattr_gettype(&attr, &type) == 0 && type == types[i]);
    }
    return 0;
}
