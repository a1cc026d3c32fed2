/* A thread may hold a read lock many times; where the counter ends, the error is EAGAIN.
 *
 * glibc counts to 2^29 or so; the usual run stops at 2^20, SPINPARK_EXHAUSTIVE goes to the end. */
#include "check.h"

int main(void)
{
    const uint64_t limit = getenv("SPINPARK_EXHAUSTIVE") ? UINT64_C(1) << 33 : UINT64_C(1) << 20;
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    uint64_t depth = 0;
    int error = 0;
    while (depth < limit && (error = pthread_rwlock_rdlock(&lock)) == 0)
        depth++;
    printf("%llu read locks\n", (unsigned long long)depth);
    CHECK(error == 0 || error == EAGAIN);
    CHECK(depth >= 1 << 15);
    if (error == EAGAIN) {
        CALL(pthread_rwlock_rdlock(&lock), EAGAIN);
        CALL(pthread_rwlock_tryrdlock(&lock), EAGAIN);
        struct timespec deadline = in_ms(CLOCK_REALTIME, 10);
        CALL(pthread_rwlock_timedrdlock(&lock, &deadline), EAGAIN);
    }
    for (uint64_t left = depth; left > 0; left--) {
        if (left == 1 || left == depth)
            CALL(pthread_rwlock_trywrlock(&lock), EBUSY);
        if (pthread_rwlock_unlock(&lock) != 0)
            FAIL("unlock failed with %llu to go", (unsigned long long)left);
    }
    OK(pthread_rwlock_trywrlock(&lock));
    CALL(pthread_rwlock_tryrdlock(&lock), EBUSY);
    OK(pthread_rwlock_unlock(&lock));
    OK(pthread_rwlock_destroy(&lock));
    return 0;
}
