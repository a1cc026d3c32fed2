/* Locks that are taken by way of functions whose names say nothing of locks.
 *
 * usage: wrapper_shapes wrapper: one function takes the lock and another releases it, for three callers
 *        wrapper_shapes worker: one function takes and releases it, for three callers */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
#define ROUNDS 150

struct store {
    pthread_mutex_t guarded;
    long number;
};
static struct store store = {PTHREAD_MUTEX_INITIALIZER, 0};

static void nap(long us) {
    struct timespec time = {0, us * 1000};
    nanosleep(&time, 0);
}

NOINLINE void grab(struct store *store) {
    if (pthread_mutex_lock(&store->guarded)) perror("grab");
    store->number++;
}

NOINLINE void give(struct store *store) {
    store->number--;
    if (pthread_mutex_unlock(&store->guarded)) perror("give");
}

NOINLINE void rebuild(void) {
    grab(&store);
    nap(2000);
    give(&store);
}

NOINLINE void look_up(void) {
    grab(&store);
    store.number += 2;
    give(&store);
}

NOINLINE void count_up(void) {
    grab(&store);
    store.number -= 2;
    give(&store);
}

NOINLINE void bump(long us) {
    pthread_mutex_lock(&store.guarded);
    if (us) nap(us);
    store.number++;
    pthread_mutex_unlock(&store.guarded);
}

NOINLINE void slow_bump(void) { bump(2000); store.number += 0; __asm__ volatile(""); }
NOINLINE void quick_bump(void) { bump(0); __asm__ volatile(""); }
NOINLINE void other_bump(void) { bump(0); __asm__ volatile("nop"); }

static void (*uses[2][3])(void) = {{rebuild, look_up, count_up}, {slow_bump, quick_bump, other_bump}};

static void *run(void *argument) {
    void (*use)(void) = *(void (**)(void))argument;
    for (int i = 0; i < ROUNDS; i++) {
        use();
        nap(50);
    }
    return 0;
}

int main(int count, char **arguments) {
    int which = count > 1 && !strcmp(arguments[1], "worker");
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, run, &uses[which][i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
