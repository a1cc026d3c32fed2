/* A program that registers restartable sequences itself (glibc.pthread.rseq=0) keeps them: whatever the locks do, the kernel
 * reports each thread's CPU in the program's area, and no pointer of another's is left in it. */
#include "check.h"
#include <sys/rseq.h>

enum { THREADS = 4, ROUNDS = 20000, SIGNATURE = 0x53053053 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long count;
static _Thread_local struct rseq area __attribute__((aligned(32)));

static void *work(void *argument)
{
    (void)argument;
    area.cpu_id = (uint32_t)RSEQ_CPU_ID_UNINITIALIZED;
    if (syscall(SYS_rseq, &area, sizeof area, 0, SIGNATURE) != 0)
        FAIL("rseq: errno %d", errno);
    for (int round = 0; round < ROUNDS; round++) {
        OK(pthread_mutex_lock(&mutex));
        count++;
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_rwlock_rdlock(&rwlock));
        CHECK(area.rseq_cs == 0);
        OK(pthread_rwlock_unlock(&rwlock));
        CHECK((int32_t)area.cpu_id >= 0);
    }
    CHECK(syscall(SYS_rseq, &area, sizeof area, RSEQ_FLAG_UNREGISTER, SIGNATURE) == 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        OK(pthread_create(&threads[i], NULL, work, NULL));
    for (int i = 0; i < THREADS; i++)
        OK(pthread_join(threads[i], NULL));
    CHECK(count == THREADS * ROUNDS);
    return 0;
}
