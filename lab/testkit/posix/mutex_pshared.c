/* Process-shared mutexes exclude and wake between processes, and through two mappings of one page. */
#include "check.h"

enum { PROCESSES = 4, ROUNDS = 20000 };
struct shared {
    pthread_mutex_t mutex;
    long counter;
    atomic_int step;
};

static void count(struct shared *shared)
{
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_mutex_lock(&shared->mutex));
        shared->counter++;
        OK(pthread_mutex_unlock(&shared->mutex));
    }
}

static void *count_main(void *arg)
{
    count(arg);
    return NULL;
}

int main(void)
{
    int file = memfd_create("spinpark", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, 4096) == 0);
    struct shared *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    struct shared *twin = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared != MAP_FAILED && twin != MAP_FAILED && shared != twin);

    FOR_EACH_KIND(kind) {
        if (kind->pshared != PTHREAD_PROCESS_SHARED)
            continue;
        memset(shared, 0, sizeof *shared);
        mutex_make(&shared->mutex, kind);
        pid_t children[PROCESSES];
        for (int i = 0; i < PROCESSES; i++) {
            children[i] = fork_checked();
            if (children[i] == 0) {
                count(i % 2 ? twin : shared);
                _exit(0);
            }
        }
        for (int i = 0; i < PROCESSES; i++)
            expect_exit(children[i]);
        CHECK(shared->counter == PROCESSES * (long)ROUNDS);

        struct thread threads[2];
        start(&threads[0], count_main, shared);
        start(&threads[1], count_main, twin);
        join_soon(&threads[0], "a thread on the first mapping");
        join_soon(&threads[1], "a thread on the second mapping");
        CHECK(shared->counter == (PROCESSES + 2) * (long)ROUNDS);

        /* A child holds it: the parent sees it, times out, waits, and is woken. */
        pid_t child = fork_checked();
        if (child == 0) {
            OK(pthread_mutex_lock(&shared->mutex));
            atomic_store(&shared->step, 1);
            await_flag(&shared->step, 2);
            sleep_ms(20);
            OK(pthread_mutex_unlock(&shared->mutex));
            _exit(0);
        }
        await_flag(&shared->step, 1);
        CALL(pthread_mutex_trylock(&shared->mutex), EBUSY);
        struct timespec deadline = in_ms(CLOCK_REALTIME, 10);
        CALL(pthread_mutex_timedlock(&twin->mutex, &deadline), ETIMEDOUT);
        CHECK(has_come(CLOCK_REALTIME, deadline));
        atomic_store(&shared->step, 2);
        OK(pthread_mutex_lock(&twin->mutex));
        OK(pthread_mutex_unlock(&shared->mutex));
        expect_exit(child);
        OK(pthread_mutex_destroy(&shared->mutex));
    }
    return 0;
}
