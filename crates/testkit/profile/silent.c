/* Programs that wait for nothing that is recorded. The first argument says how; all but `briefly` take LENGTH s.
 *
 * semaphore  three threads; one holds a semaphore for 10 ms at a time
 * handoff    the same with a lock as CPython's: a semaphore with a time-out
 * raw        two threads sleep at a futex by a system call of their own, 10 ms at a time
 * run        two threads compute
 * io         two threads wait for a pipe that a third one writes to every 10 ms
 * idle       three threads wait for a signal of a condition variable that comes at the end
 * briefly    nothing
 * daemon     forks twice, closes all descriptors, and its threads then wait for a mutex for 2 * LENGTH s
 * signals    two threads hand each other work by condition variables, with sleep in between
 * become     executes the rest of its arguments
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LENGTH 0.8

static sem_t semaphore;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static int pipe_ends[2];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static __attribute__((noinline)) void wait_semaphore(int is_timed) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 10;
    while (is_timed ? sem_timedwait(&semaphore, &deadline) : sem_wait(&semaphore)) {}
    usleep(10000);
    sem_post(&semaphore);
}

static void *semaphores(void *is_timed) {
    for (double end = now() + LENGTH; now() < end;) wait_semaphore(is_timed != NULL);
    return NULL;
}

static void *raw(void *argument) {
    static int word;
    struct timespec time = {0, 10000000};
    for (double end = now() + LENGTH; now() < end;) {
        long result;
        register struct timespec *deadline __asm__("r10") = &time;
        /* FUTEX_WAIT_PRIVATE, as code that does not go through libc. */
        __asm__ volatile("syscall" : "=a"(result) : "a"(202), "D"(&word), "S"(128), "d"(0), "r"(deadline)
                         : "rcx", "r11", "memory");
    }
    return argument;
}

static void *run(void *argument) {
    volatile unsigned long sum = 0;
    for (double end = now() + LENGTH; now() < end;) for (int i = 0; i < 100000; i++) sum += i;
    return argument;
}

static void *reader(void *argument) {
    char byte;
    while (read(pipe_ends[0], &byte, 1) == 1 && byte) {}
    return argument;
}

static void *writer(void *argument) {
    for (double end = now() + LENGTH; now() < end;) {
        usleep(10000);
        if (write(pipe_ends[1], "..", 2) != 2) return argument;
    }
    if (write(pipe_ends[1], "\0\0", 2) != 2) abort();
    return argument;
}

/* What an idle thread waits for. Each has its own: a loaded machine must not make them wait for a lock. */
static struct worker { pthread_mutex_t lock; pthread_cond_t changed; int is_over; } workers[3];

static void *idle(void *argument) {
    struct worker *own = argument;
    pthread_mutex_lock(&own->lock);
    while (!own->is_over) pthread_cond_wait(&own->changed, &own->lock);
    pthread_mutex_unlock(&own->lock);
    return NULL;
}

static void *alternate(void *argument) {
    int own = argument != NULL;
    for (int round = 0; round < 40; round++) {
        pthread_mutex_lock(&lock);
        while (turn != own) pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        usleep(10000);
        pthread_mutex_lock(&lock);
        turn = !own;
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&changed);
    }
    return NULL;
}

static void *spool(void *argument) {
    for (double end = now() + 2 * LENGTH; now() < end;) {
        pthread_mutex_lock(&lock);
        usleep(500);
        pthread_mutex_unlock(&lock);
        usleep(10);
    }
    return argument;
}

static void threads(int number, void *(*body)(void *), void *argument) {
    pthread_t all[4];
    for (int i = 0; i < number; i++) pthread_create(&all[i], NULL, body, argument);
    for (int i = 0; i < number; i++) pthread_join(all[i], NULL);
}

static void daemonize(void) {
    if (fork()) _exit(0);
    setsid();
    if (fork()) _exit(0);
    closefrom(0);
    for (int i = 0; i < 3; i++) open("/dev/null", O_RDWR);
    if (chdir("/")) abort();
    umask(0);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "briefly";
    sem_init(&semaphore, 0, 1);
    if (!strcmp(how, "semaphore")) threads(3, semaphores, NULL);
    if (!strcmp(how, "handoff")) threads(3, semaphores, &semaphore);
    if (!strcmp(how, "raw")) threads(2, raw, NULL);
    if (!strcmp(how, "run")) threads(2, run, NULL);
    if (!strcmp(how, "io")) {
        pthread_t other;
        if (pipe(pipe_ends)) abort();
        pthread_create(&other, NULL, writer, NULL);
        threads(2, reader, NULL);
        pthread_join(other, NULL);
    }
    if (!strcmp(how, "idle")) {
        pthread_t all[3];
        for (int i = 0; i < 3; i++) pthread_create(&all[i], NULL, idle, &workers[i]);
        usleep(1000000 * LENGTH);
        for (int i = 0; i < 3; i++) {
            pthread_mutex_lock(&workers[i].lock);
            workers[i].is_over = 1;
            pthread_mutex_unlock(&workers[i].lock);
            pthread_cond_signal(&workers[i].changed);
        }
        for (int i = 0; i < 3; i++) pthread_join(all[i], NULL);
    }
    if (!strcmp(how, "signals")) {
        pthread_t other;
        pthread_create(&other, NULL, alternate, NULL);
        alternate(&lock);
        pthread_join(other, NULL);
    }
    if (!strcmp(how, "daemon")) {
        daemonize();
        threads(3, spool, NULL);
    }
    if (!strcmp(how, "become") && argc > 2) {
        execv(argv[2], argv + 2);
        abort();
    }
    return 0;
}
