/* Programs whose threads measure themselves for which share of their time they wait for a lock: `truth N` is
 * that share, %. The first argument says how:
 *
 * crowd       threads live for a few waits; 20 at a time, 1,500 in all
 * daemon      forks; the program ends, and six threads of the child go on for 1.2 s, and then write
 *             `truth N` into the file `truth`
 * condvars    eight workers wait for one signal and end; four threads sleep at futexes that are not recorded
 * semaphores  eight workers wait at semaphores; one thread computes
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static sem_t work;
static int is_over;
static int ended[2];
static _Atomic long waited, lived;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static __attribute__((noinline)) void use(int us) {
    long begin = now();
    pthread_mutex_lock(&lock);
    waited += now() - begin;
    usleep(us);
    pthread_mutex_unlock(&lock);
}

static void *briefly(void *argument) {
    long begin = now();
    usleep(5000);
    use(700);
    usleep(5000);
    lived += now() - begin;
    return write(ended[1], "", 1) == 1 ? NULL : argument;
}

/* The main thread waits in `read`: for I/O, and not idly. */
static void crowd(int all, int at_a_time) {
    long begin = now();
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pipe(ended)) abort();
    for (int i = 0; i < all + at_a_time; i++) {
        char byte;
        pthread_t thread;
        if (i >= at_a_time && read(ended[0], &byte, 1) != 1) abort();
        if (i < all && pthread_create(&thread, &attributes, briefly, NULL)) abort();
    }
    lived += now() - begin;
}

static void *serve(void *argument) {
    long begin = now();
    while (now() < begin + 1200000000) {
        usleep(7000);
        use(2000);
    }
    lived += now() - begin;
    return argument;
}

static void *wait_for_signal(void *argument) {
    pthread_mutex_lock(&lock);
    while (!is_over) pthread_cond_wait(&over, &lock);
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *wait_for_work(void *argument) {
    while (sem_wait(&work)) {}
    return argument;
}

/* Sleeps at a futex, 10 ms at a time, as code that does not go through libc. */
static void *sleep_unseen(void *argument) {
    static int word;
    struct timespec time = {0, 10000000};
    for (long end = now() + *(long *)argument; now() < end;) {
        long result;
        register struct timespec *deadline __asm__("r10") = &time;
        __asm__ volatile("syscall" : "=a"(result) : "a"(202), "D"(&word), "S"(128), "d"(0), "r"(deadline)
                         : "rcx", "r11", "memory");
    }
    return NULL;
}

static void threads(pthread_t *all, int number, void *(*body)(void *), void *argument) {
    for (int i = 0; i < number; i++)
        if (pthread_create(&all[i], NULL, body, argument)) abort();
}

static void join(pthread_t *all, int number) {
    for (int i = 0; i < number; i++) pthread_join(all[i], NULL);
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    pthread_t all[8], team[4];
    FILE *truth = stdout;
    if (!strcmp(how, "crowd")) crowd(1500, 20);
    if (!strcmp(how, "daemon")) {
        if (fork()) return 0;
        setsid();
        threads(all, 6, serve, NULL);
        join(all, 6);
        truth = fopen("truth.unfinished", "w");
    }
    if (!strcmp(how, "condvars")) {
        long first = 900000000, second = 300000000;
        threads(all, 8, wait_for_signal, NULL);
        threads(team, 4, sleep_unseen, &first);
        join(team, 4);
        pthread_mutex_lock(&lock);
        is_over = 1;
        pthread_cond_broadcast(&over);
        pthread_mutex_unlock(&lock);
        join(all, 8);
        threads(team, 4, sleep_unseen, &second);
        join(team, 4);
    }
    if (!strcmp(how, "semaphores")) {
        volatile long sum = 0;
        sem_init(&work, 0, 0);
        threads(all, 8, wait_for_work, NULL);
        for (long end = now() + 900000000; now() < end;) for (int i = 0; i < 100000; i++) sum += i;
        for (int i = 0; i < 8; i++) sem_post(&work);
        join(all, 8);
    }
    if (truth && lived) fprintf(truth, "truth %ld\n", 100 * waited / lived);
    if (truth && truth != stdout) return fclose(truth) || rename("truth.unfinished", "truth");
    return 0;
}
