/* Threads that wait for locks of glibc's own, which one thread holds most of the time.
 *
 * usage: glibc_locks stdout | file | arena | zone | random */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAPS 250
#define WAITERS 3

static atomic_int is_over;
static FILE *journal;
static char fifo[256];

static void nap(long us) {
    struct timespec time = {0, us * 1000};
    nanosleep(&time, 0);
}

__attribute__((noinline)) void log_line(long number) {
    printf("item %ld\n", number);
    __asm__ volatile("");
}

__attribute__((noinline)) void note(long number) {
    fprintf(journal, "item %ld\n", number);
    __asm__ volatile("");
}

/* Too large for the caches of threads. */
__attribute__((noinline)) void parse_request(long number) {
    char *text = malloc(3000 + number % 100);
    text[0] = 'a';
    __asm__ volatile("" : : "r"(text) : "memory");
    free(text);
    __asm__ volatile("");
}

__attribute__((noinline)) void stamp(long number) {
    struct tm tm;
    time_t time = number;
    localtime_r(&time, &tm);
    __asm__ volatile("" : : "r"(&tm) : "memory");
}

__attribute__((noinline)) void draw(long number) {
    static atomic_long sum;
    sum += random() + number;
}

static void (*use)(long);

static void *user(void *argument) {
    for (long number = 0; !is_over; number++) use(number);
    return argument;
}

static void hold_file(FILE *file) {
    for (int i = 0; i < NAPS; i++) {
        flockfile(file);
        nap(2000);
        funlockfile(file);
        nap(50);
    }
}

/* Free pieces between others: to count them takes long, with the lock of the arena held. */
static void hold_arena(void) {
    enum { PIECES = 20000 };
    static char *pieces[2 * PIECES];
    for (int i = 0; i < 2 * PIECES; i++) pieces[i] = malloc(2000);
    for (int i = 0; i < 2 * PIECES; i += 2) free(pieces[i]);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        mallinfo2();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) / 1e9 < 0.7);
}

/* Reading a zone takes until the other end of the pipe is closed. */
static void *other_end(void *argument) {
    while (!is_over) {
        int end = open(fifo, O_WRONLY);
        nap(2000);
        close(end);
        nap(500);
    }
    return argument;
}

static void hold_zone(void) {
    char zone[300];
    snprintf(zone, sizeof zone, ":%s", fifo);
    for (int i = 0; i < NAPS; i++) {
        setenv("TZ", i % 2 ? "UTC0" : zone, 1);
        tzset();
    }
}

static void hold_random(void) {
    static char state[256];
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int i = 0; i < 100; i++) initstate(i, state, sizeof state);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) / 1e9 < 0.7);
}

static void *holder(void *what) {
    if (!strcmp(what, "stdout")) hold_file(stdout);
    if (!strcmp(what, "file")) hold_file(journal);
    if (!strcmp(what, "arena")) hold_arena();
    if (!strcmp(what, "zone")) hold_zone();
    if (!strcmp(what, "random")) hold_random();
    is_over = 1;
    return 0;
}

int main(int count, char **arguments) {
    char *what = count > 1 ? arguments[1] : "";
    pthread_t threads[WAITERS + 1], end;
    journal = fopen("/dev/null", "w");
    use = !strcmp(what, "stdout") ? log_line
        : !strcmp(what, "file")   ? note
        : !strcmp(what, "arena")  ? parse_request
        : !strcmp(what, "zone")   ? stamp
                                  : draw;
    if (!strcmp(what, "zone")) {
        char directory[] = "/tmp/zone-XXXXXX";
        if (!mkdtemp(directory)) return 1;
        snprintf(fifo, sizeof fifo, "%s/pipe", directory);
        if (mkfifo(fifo, 0600)) return 1;
        setenv("TZ", "UTC0", 1);
        tzset();
        pthread_create(&end, 0, other_end, 0);
    }
    pthread_create(&threads[0], 0, holder, what);
    for (int i = 1; i <= WAITERS; i++) pthread_create(&threads[i], 0, user, 0);
    for (int i = 0; i <= WAITERS; i++) pthread_join(threads[i], 0);
    if (!strcmp(what, "zone")) {
        /* The other end may wait for a reader. */
        int reader = open(fifo, O_RDONLY | O_NONBLOCK);
        pthread_join(end, 0);
        close(reader);
        unlink(fifo);
        *strrchr(fifo, '/') = 0;
        rmdir(fifo);
    }
    return 0;
}
