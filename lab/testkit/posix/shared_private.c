/* A read-write lock and a mutex that are private by their attributes, in memory that two processes share: as long as no thread sleeps, glibc
 * keeps them apart. */
#include "check.h"

enum { READS = 1000000, TURNS = 200000 };

static struct shared {
    pthread_rwlock_t rwlock;
    pthread_mutex_t mutex;
    atomic_int step;
    long count; /* guarded by the mutex */
} *shared;

static void *idle(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void take_turns(void)
{
    for (int i = 0; i < TURNS; i++) {
        while (pthread_mutex_trylock(&shared->mutex))
            sched_yield();
        shared->count++;
        OK(pthread_mutex_unlock(&shared->mutex));
    }
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    OK(pthread_rwlock_init(&shared->rwlock, NULL));
    OK(pthread_mutex_init(&shared->mutex, NULL));
    pid_t child = fork();
    pthread_t thread;
    OK(pthread_create(&thread, NULL, idle, NULL));
    if (child == 0) {
        for (int i = 0; i < READS; i++) {
            OK(pthread_rwlock_rdlock(&shared->rwlock));
            OK(pthread_rwlock_unlock(&shared->rwlock));
        }
        OK(pthread_rwlock_rdlock(&shared->rwlock));
        atomic_store(&shared->step, 1);
        await_flag(&shared->step, 2);
        OK(pthread_rwlock_unlock(&shared->rwlock));
        atomic_store(&shared->step, 3);
        take_turns();
        _exit(0);
    }
    await_flag(&shared->step, 1);
    CALL(pthread_rwlock_trywrlock(&shared->rwlock), EBUSY);
    atomic_store(&shared->step, 2);
    await_flag(&shared->step, 3);
    OK(pthread_rwlock_trywrlock(&shared->rwlock));
    OK(pthread_rwlock_unlock(&shared->rwlock));
    take_turns();
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(shared->count == 2L * TURNS);
    return 0;
}
