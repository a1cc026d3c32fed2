/* The recursion count of a recursive mutex is large, its end is EAGAIN, and locks and unlocks balance.
 *
 * glibc counts to UINT_MAX, which takes half a minute of locking, so the usual run stops at 2^20 nested locks, more
 * than any program nests; with SPINPARK_EXHAUSTIVE set it goes on to the end, wherever that is. A lock that counts
 * less far must say EAGAIN, and must be as locked after it as before. */
#include "check.h"

int main(void)
{
    const uint64_t limit = getenv("SPINPARK_EXHAUSTIVE") ? UINT64_C(1) << 33 : UINT64_C(1) << 20;
    static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    uint64_t depth = 0;
    int error = 0;
    while (depth < limit && (error = pthread_mutex_lock(&mutex)) == 0)
        depth++;
    printf("nested %llu deep\n", (unsigned long long)depth);
    CHECK(error == 0 || error == EAGAIN);
    CHECK(depth >= 1 << 16);
    if (error == EAGAIN) {
        CALL(pthread_mutex_lock(&mutex), EAGAIN);
        CALL(pthread_mutex_trylock(&mutex), EAGAIN);
        struct timespec deadline = in_ms(CLOCK_REALTIME, 10);
        CALL(pthread_mutex_timedlock(&mutex, &deadline), EAGAIN);
        deadline = in_ms(CLOCK_MONOTONIC, 10);
        CALL(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &deadline), EAGAIN);
    }
    CALL(other_trylock(&mutex), EBUSY);
    CALL(other_unlock(&mutex), EPERM);
    for (uint64_t left = depth; left > 0; left--) {
        if (left == 1)
            CALL(other_trylock(&mutex), EBUSY);
        if (pthread_mutex_unlock(&mutex) != 0)
            FAIL("unlock failed with %llu to go", (unsigned long long)left);
    }
    CALL(pthread_mutex_unlock(&mutex), EPERM);
    OK(other_trylock(&mutex));
    OK(pthread_mutex_destroy(&mutex));
    return 0;
}
