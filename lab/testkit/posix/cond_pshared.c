/* A process-shared condition variable with a process-shared mutex (plain and robust), across processes: ping-pong,
 * broadcast to children, a deadline. */
#include "check.h"

enum { ROUNDS = 2000, CHILDREN = 4 };
struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int turn, arrived;
    bool go;
};

int main(void)
{
    struct shared *shared = map(4096, MAP_SHARED);
    pthread_condattr_t attr;
    CHECK(pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    FOR_EACH_KIND(kind) {
        if (kind->pshared != PTHREAD_PROCESS_SHARED)
            continue;
        memset(shared, 0, sizeof *shared);
        mutex_make(&shared->mutex, kind);
        OK(pthread_cond_init(&shared->cond, &attr));

        pid_t child = fork_checked();
        for (int i = 0; i < ROUNDS; i++) {
            OK(pthread_mutex_lock(&shared->mutex));
            while (shared->turn != (child == 0))
                OK(pthread_cond_wait(&shared->cond, &shared->mutex));
            shared->turn = child != 0;
            OK(pthread_cond_signal(&shared->cond));
            OK(pthread_mutex_unlock(&shared->mutex));
        }
        if (child == 0)
            _exit(0);
        expect_exit(child);

        pid_t children[CHILDREN];
        for (int i = 0; i < CHILDREN; i++) {
            children[i] = fork_checked();
            if (children[i] == 0) {
                OK(pthread_mutex_lock(&shared->mutex));
                shared->arrived++;
                while (!shared->go)
                    OK(pthread_cond_wait(&shared->cond, &shared->mutex));
                OK(pthread_mutex_unlock(&shared->mutex));
                _exit(0);
            }
        }
        for (int arrived = 0; arrived < CHILDREN; sched_yield()) {
            OK(pthread_mutex_lock(&shared->mutex));
            arrived = shared->arrived;
            OK(pthread_mutex_unlock(&shared->mutex));
        }
        OK(pthread_mutex_lock(&shared->mutex));
        struct timespec deadline = in_ms(CLOCK_REALTIME, 10);
        CALL_EITHER(pthread_cond_timedwait(&shared->cond, &shared->mutex, &deadline), ETIMEDOUT, 0);
        shared->go = true;
        OK(pthread_cond_broadcast(&shared->cond));
        OK(pthread_mutex_unlock(&shared->mutex));
        for (int i = 0; i < CHILDREN; i++)
            expect_exit(children[i]);
        OK(pthread_cond_destroy(&shared->cond));
        OK(pthread_mutex_destroy(&shared->mutex));
    }
    return 0;
}
