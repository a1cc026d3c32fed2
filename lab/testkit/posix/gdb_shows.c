// Locks in all states for a debugger to look at: the test stops in `look_now`.
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t idle = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t gone = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t robust;
pthread_mutex_t beside = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
pthread_cond_t shared, shared_monotonic; // glibc's

static void *locks(void *unused) {
    (void)unused;
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return NULL;
}

static void *writes(void *unused) {
    (void)unused;
    pthread_rwlock_wrlock(&table);
    pthread_rwlock_unlock(&table);
    return NULL;
}

static int woken;

static void *waits(void *unused) {
    (void)unused;
    pthread_mutex_lock(&beside);
    while (!woken)
        pthread_cond_wait(&cond, &beside);
    pthread_mutex_unlock(&beside);
    return NULL;
}

__attribute__((noinline)) void look_now(void) { __asm__ volatile(""); }

// Queued at the latest when the thread has slept for a while.
static void start(pthread_t *thread, void *(*run)(void *)) {
    pthread_create(thread, NULL, run, NULL);
    usleep(200000);
}

int main(void) {
    pthread_t threads[4];
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_mutex_destroy(&gone);
    pthread_condattr_t shares;
    pthread_condattr_init(&shares);
    pthread_condattr_setpshared(&shares, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&shared, &shares);
    pthread_condattr_setclock(&shares, CLOCK_MONOTONIC);
    pthread_cond_init(&shared_monotonic, &shares);

    pthread_mutex_lock(&held);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_rwlock_rdlock(&table);
    start(&threads[0], locks);
    start(&threads[1], locks);
    start(&threads[2], writes);
    start(&threads[3], waits);
    look_now();
    pthread_mutex_unlock(&held);
    pthread_rwlock_unlock(&table);
    pthread_mutex_lock(&beside);
    woken = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&beside);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
