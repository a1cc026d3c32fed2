/* Process-shared read-write locks between processes. */
#include "check.h"

enum { PROCESSES = 4, ROUNDS = 10000 };
struct shared {
    pthread_rwlock_t lock;
    long a, b;
    atomic_int step;
};

int main(void)
{
    struct shared *shared = map(4096, MAP_SHARED);
    for (int kind = 0; kind < 3; kind++) {
        memset(shared, 0, sizeof *shared);
        pthread_rwlockattr_t attr;
        CHECK(pthread_rwlockattr_init(&attr) == 0);
        CHECK(pthread_rwlockattr_setkind_np(&attr, kind) == 0);
        CHECK(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
        OK(pthread_rwlock_init(&shared->lock, &attr));
        pid_t children[PROCESSES];
        for (int i = 0; i < PROCESSES; i++) {
            children[i] = fork_checked();
            if (children[i] == 0) {
                for (int r = 0; r < ROUNDS; r++) {
                    if (r % 4 == i % 4) {
                        OK(pthread_rwlock_wrlock(&shared->lock));
                        shared->a++;
                        shared->b++;
                    } else {
                        OK(pthread_rwlock_rdlock(&shared->lock));
                        CHECK(shared->a == shared->b);
                    }
                    OK(pthread_rwlock_unlock(&shared->lock));
                }
                _exit(0);
            }
        }
        for (int i = 0; i < PROCESSES; i++)
            expect_exit(children[i]);
        CHECK(shared->a == PROCESSES * (long)ROUNDS / 4);

        for (int write = 0; write < 2; write++) {
            atomic_store(&shared->step, 0);
            pid_t child = fork_checked();
            if (child == 0) {
                OK(write ? pthread_rwlock_wrlock(&shared->lock) : pthread_rwlock_rdlock(&shared->lock));
                atomic_store(&shared->step, 1);
                await_flag(&shared->step, 2);
                sleep_ms(20);
                OK(pthread_rwlock_unlock(&shared->lock));
                _exit(0);
            }
            await_flag(&shared->step, 1);
            CALL(pthread_rwlock_trywrlock(&shared->lock), EBUSY);
            struct timespec deadline = in_ms(CLOCK_MONOTONIC, 10);
            CALL(pthread_rwlock_clockwrlock(&shared->lock, CLOCK_MONOTONIC, &deadline), ETIMEDOUT);
            atomic_store(&shared->step, 2);
            OK(pthread_rwlock_wrlock(&shared->lock));
            OK(pthread_rwlock_unlock(&shared->lock));
            expect_exit(child);
        }
        OK(pthread_rwlock_destroy(&shared->lock));
    }
    return 0;
}
