/* Locks of other processes, where another lock was, in memory that is locked itself; and a time that is none. */
#include "safe.h"

/* Mutexes of processes, which are never waited for. */
static void scene_shared_mutexes(void)
{
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    static pthread_mutex_t mutexes[3];
    pthread_t thread;
    pthread_mutexattr_t attributes;
    OK(pthread_create(&thread, NULL, waits, NULL)); /* a process of one thread is not looked at */
    OK(pthread_join(thread, NULL));
    say(1);
    for (int i = 0; i < 3; i++) {
        OK(pthread_mutexattr_init(&attributes));
        OK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
        OK(pthread_mutexattr_settype(&attributes, types[i]));
        OK(pthread_mutex_init(&mutexes[i], &attributes));
        for (int times = 0; times < 100; times++) {
            OK(pthread_mutex_lock(&mutexes[i]));
            if (types[i] == PTHREAD_MUTEX_RECURSIVE) {
                OK(pthread_mutex_lock(&mutexes[i]));
                OK(pthread_mutex_unlock(&mutexes[i]));
            }
            OK(pthread_mutex_unlock(&mutexes[i]));
        }
        printf("%ld\n", (long)(uintptr_t)&mutexes[i]);
    }
}

/* A mutex, and then a read-write lock where it was. */
static void scene_memory_used_again(void)
{
    static union {
        pthread_mutex_t mutex;
        pthread_rwlock_t lock;
    } memory;
    memory.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    lock_often(&memory.mutex, 10);
    memset(&memory, 0, sizeof memory);
    memory.lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    for (int i = 0; i < 20; i++) {
        OK(pthread_rwlock_wrlock(&memory.lock));
        OK(pthread_rwlock_unlock(&memory.lock));
    }
    say(0);
    printf("%ld\n", (long)(uintptr_t)&memory);
}

/* A time that is none at all is not looked at. */
static void scene_null_time(void)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct timespec *volatile time = NULL;
    if (!on_spinpark()) {
        OK(pthread_rwlock_timedrdlock(&lock, time));
        OK(pthread_rwlock_unlock(&lock));
    }
    say(0);
}

/* What is locked in memory is what is used. */
static void scene_locked_memory(void)
{
    lock_often(&mutex, 1);
    bool is_locked = mlockall(MCL_CURRENT) == 0;
    long there = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status);
    while (fgets(line, sizeof line, status))
        sscanf(line, "VmRSS: %ld kB", &there);
    fclose(status);
    say(1);
    printf("%d %ld\n", is_locked, there);
}

/* Of 600 MB of addresses, 400 MB at once. */
static void scene_few_addresses(void)
{
    lock_often(&mutex, 1);
    CHECK(mmap(NULL, 400 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    say(1);
}

MAIN({"shared-mutexes", scene_shared_mutexes}, {"memory-used-again", scene_memory_used_again}, {"null-time", scene_null_time},
     {"locked-memory", scene_locked_memory}, {"few-addresses", scene_few_addresses})
