/* Each function of spinpark.h, alone and under threads. `api` runs everything; `api NAME` breaks that rule. */
#include <spinpark.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

enum { THREADS = 4, ROUNDS = 20000 };
#define MS UINT64_C(1000000)
#define LONG (60 * 1000 * MS)

static struct timespec after(uint64_t nanoseconds) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    nanoseconds += (uint64_t)time.tv_nsec;
    time.tv_sec += (time_t)(nanoseconds / 1000000000);
    time.tv_nsec = (long)(nanoseconds % 1000000000);
    return time;
}

static uint64_t now(void) {
    struct timespec time = after(0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0);
    return thread;
}

static void crowd(void *(*body)(void *)) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(body, NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* What a second thread finds. */
static void *in_thread(void *(*body)(void *), void *argument) {
    void *result;
    CHECK(pthread_join(start(body, argument), &result) == 0);
    return result;
}

/* ---- mutex */

static spinpark_mutex_t mutex = SPINPARK_MUTEX_INIT;
static spinpark_mutex_t zero;
static long count, count_of_zero;

static void *counts(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec deadline;
        switch (i % 4) {
        case 0:
            spinpark_mutex_lock(&mutex);
            break;
        case 1:
            while (!spinpark_mutex_try_lock(&mutex)) {
            }
            break;
        case 2:
            CHECK(spinpark_mutex_lock_for(&mutex, LONG));
            break;
        default:
            deadline = after(LONG);
            CHECK(spinpark_mutex_lock_until(&mutex, &deadline));
        }
        count++;
        spinpark_mutex_unlock(&mutex);
        spinpark_mutex_lock(&zero);
        count_of_zero++;
        spinpark_mutex_unlock(&zero);
    }
    return argument;
}

static void *finds_mutex_held(void *argument) {
    spinpark_mutex_t *held = argument;
    const uint64_t begin = now();
    CHECK(!spinpark_mutex_try_lock(held));
    CHECK(!spinpark_mutex_lock_for(held, 0));
    CHECK(!spinpark_mutex_lock_for(held, 2 * MS));
    CHECK(now() - begin >= 2 * MS);
    struct timespec deadline = after(2 * MS);
    CHECK(!spinpark_mutex_lock_until(held, &deadline));
    deadline.tv_sec = -1;
    CHECK(!spinpark_mutex_lock_until(held, &deadline));
    return NULL;
}

static void mutexes(void) {
    crowd(counts);
    CHECK(count == THREADS * ROUNDS && count_of_zero == count);
    spinpark_mutex_t local;
    memset(&local, 0xa5, sizeof local);
    spinpark_mutex_init(&local);
    spinpark_mutex_lock(&local);
    in_thread(finds_mutex_held, &local);
    spinpark_mutex_unlock(&local);
    /* The deadline has passed, and the mutex is free. */
    const struct timespec past = { 0, 0 };
    CHECK(spinpark_mutex_lock_until(&local, &past));
    spinpark_mutex_unlock(&local);
    spinpark_mutex_t moved;
    memcpy(&moved, &local, sizeof local);
    memset(&local, 0xa5, sizeof local);
    CHECK(spinpark_mutex_try_lock(&moved));
    in_thread(finds_mutex_held, &moved);
    spinpark_mutex_unlock(&moved);
    spinpark_mutex_destroy(&moved);
}

/* ---- recursive mutex */

static spinpark_recursive_mutex_t recursive = SPINPARK_RECURSIVE_MUTEX_INIT;
static long recursive_count;

static void *counts_recursively(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        const struct timespec past = { 0, 0 };
        spinpark_recursive_mutex_lock(&recursive);
        CHECK(spinpark_recursive_mutex_try_lock(&recursive));
        CHECK(spinpark_recursive_mutex_lock_for(&recursive, 0));
        CHECK(spinpark_recursive_mutex_lock_until(&recursive, &past));
        recursive_count++;
        for (int depth = 0; depth < 4; depth++)
            spinpark_recursive_mutex_unlock(&recursive);
    }
    return argument;
}

static void *finds_recursive_held(void *argument) {
    struct timespec deadline = after(MS);
    CHECK(!spinpark_recursive_mutex_try_lock(argument));
    CHECK(!spinpark_recursive_mutex_lock_for(argument, MS));
    CHECK(!spinpark_recursive_mutex_lock_until(argument, &deadline));
    return NULL;
}

static void recursive_mutexes(void) {
    crowd(counts_recursively);
    CHECK(recursive_count == THREADS * ROUNDS);
    spinpark_recursive_mutex_t local;
    memset(&local, 0xa5, sizeof local);
    spinpark_recursive_mutex_init(&local);
    spinpark_recursive_mutex_lock(&local);
    spinpark_recursive_mutex_lock(&local);
    in_thread(finds_recursive_held, &local);
    spinpark_recursive_mutex_unlock(&local);
    in_thread(finds_recursive_held, &local);
    spinpark_recursive_mutex_unlock(&local);
    spinpark_recursive_mutex_destroy(&local);
}

/* ---- read-write lock */

static spinpark_rwlock_t rwlock = SPINPARK_RWLOCK_INIT;
static long left, right;

static void *reads_and_writes(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec deadline;
        bool is_writer = i % 16 < 4;
        switch (i % 16) {
        case 0:
            spinpark_rwlock_write_lock(&rwlock);
            break;
        case 1:
            while (!spinpark_rwlock_try_write_lock(&rwlock)) {
            }
            break;
        case 2:
            CHECK(spinpark_rwlock_write_lock_for(&rwlock, LONG));
            break;
        case 3:
            deadline = after(LONG);
            CHECK(spinpark_rwlock_write_lock_until(&rwlock, &deadline));
            break;
        case 4:
            while (!spinpark_rwlock_try_read_lock(&rwlock)) {
            }
            break;
        case 5:
            CHECK(spinpark_rwlock_read_lock_for(&rwlock, LONG));
            break;
        case 6:
            deadline = after(LONG);
            CHECK(spinpark_rwlock_read_lock_until(&rwlock, &deadline));
            break;
        default:
            spinpark_rwlock_read_lock(&rwlock);
        }
        if (is_writer) {
            left++;
            right++;
            spinpark_rwlock_write_unlock(&rwlock);
        } else {
            CHECK(left == right);
            spinpark_rwlock_read_unlock(&rwlock);
        }
    }
    return argument;
}

static void *finds_readers(void *argument) {
    struct timespec deadline = after(MS);
    CHECK(!spinpark_rwlock_try_write_lock(argument));
    CHECK(!spinpark_rwlock_write_lock_for(argument, MS));
    CHECK(!spinpark_rwlock_write_lock_until(argument, &deadline));
    spinpark_rwlock_read_lock(argument);
    spinpark_rwlock_read_unlock(argument);
    return NULL;
}

static void *finds_a_writer(void *argument) {
    struct timespec deadline = after(MS);
    CHECK(!spinpark_rwlock_try_read_lock(argument));
    CHECK(!spinpark_rwlock_read_lock_for(argument, MS));
    CHECK(!spinpark_rwlock_read_lock_until(argument, &deadline));
    CHECK(!spinpark_rwlock_try_write_lock(argument));
    return NULL;
}

static void rwlocks(void) {
    crowd(reads_and_writes);
    CHECK(left == THREADS * ROUNDS / 4 && right == left);
    spinpark_rwlock_t local;
    memset(&local, 0xa5, sizeof local);
    spinpark_rwlock_init(&local);
    /* Often, so that readers get slots. */
    for (int i = 0; i < 5000; i++) {
        spinpark_rwlock_read_lock(&local);
        spinpark_rwlock_read_lock(&local);
        if (i % 1000 == 0)
            in_thread(finds_readers, &local);
        spinpark_rwlock_read_unlock(&local);
        spinpark_rwlock_read_unlock(&local);
    }
    spinpark_rwlock_t moved;
    memcpy(&moved, &local, sizeof local);
    memset(&local, 0xa5, sizeof local);
    spinpark_rwlock_read_lock(&moved);
    in_thread(finds_readers, &moved);
    spinpark_rwlock_read_unlock(&moved);
    spinpark_rwlock_write_lock(&moved);
    in_thread(finds_a_writer, &moved);
    spinpark_rwlock_write_unlock(&moved);
    spinpark_rwlock_destroy(&moved);
}

/* ---- condition variable */

static spinpark_cond_t changed = SPINPARK_COND_INIT;
static int turn, waiting, is_open;

static void *takes_turns(void *argument) {
    const int mine = *(int *)argument;
    for (int i = 0; i < ROUNDS / 4; i++) {
        struct timespec deadline = after(LONG);
        spinpark_mutex_lock(&mutex);
        while (turn != mine) {
            switch (i % 3) {
            case 0:
                spinpark_cond_wait(&changed, &mutex);
                break;
            case 1:
                CHECK(spinpark_cond_wait_for(&changed, &mutex, LONG));
                break;
            default:
                CHECK(spinpark_cond_wait_until(&changed, &mutex, &deadline));
            }
        }
        turn = !turn;
        if (i % 2 == 0) {
            spinpark_cond_signal(&changed);
            spinpark_mutex_unlock(&mutex);
        } else {
            spinpark_mutex_unlock(&mutex);
            spinpark_cond_signal(&changed);
        }
    }
    return NULL;
}

static void *waits_for_opening(void *argument) {
    spinpark_cond_t *cond = argument;
    spinpark_mutex_lock(&mutex);
    waiting++;
    while (!is_open)
        spinpark_cond_wait(cond, &mutex);
    waiting--;
    spinpark_mutex_unlock(&mutex);
    return NULL;
}

static void condition_variables(void) {
    int zeroth = 0, first = 1;
    pthread_t threads[2 * THREADS];
    threads[0] = start(takes_turns, &zeroth);
    threads[1] = start(takes_turns, &first);
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);

    spinpark_cond_t *cond = malloc(sizeof *cond);
    CHECK(cond != NULL);
    memset(cond, 0xa5, sizeof *cond);
    spinpark_cond_init(cond);
    for (int i = 0; i < 2 * THREADS; i++)
        threads[i] = start(waits_for_opening, cond);
    spinpark_mutex_lock(&mutex);
    const struct timespec past = { 0, 0 };
    CHECK(!spinpark_cond_wait_until(cond, &mutex, &past));
    while (waiting < 2 * THREADS)
        CHECK(!spinpark_cond_wait_for(cond, &mutex, MS));
    CHECK(!spinpark_mutex_try_lock(&mutex)); /* held after a time-out */
    is_open = 1;
    spinpark_cond_broadcast(cond);
    /* The memory goes at once: woken threads do not touch it. */
    spinpark_cond_destroy(cond);
    memset(cond, 0xa5, sizeof *cond);
    free(cond);
    spinpark_mutex_unlock(&mutex);
    for (int i = 0; i < 2 * THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(waiting == 0);
}

/* ---- fork */

static spinpark_mutex_t of_handlers;
static spinpark_rwlock_t is_read;

static void before(void) { spinpark_mutex_lock(&of_handlers); }
static void afterwards(void) { spinpark_mutex_unlock(&of_handlers); }

static void *of_parent(void *argument) {
    spinpark_mutex_lock(argument);
    pause();
    return NULL;
}

static void forks(void) {
    spinpark_mutex_t anothers = SPINPARK_MUTEX_INIT;
    spinpark_rwlock_write_lock(&rwlock);
    /* Often, so that readers get slots. */
    for (int i = 0; i < 5000; i++) {
        spinpark_rwlock_read_lock(&is_read);
        spinpark_rwlock_read_unlock(&is_read);
    }
    spinpark_rwlock_read_lock(&is_read);
    start(of_parent, &anothers);
    while (spinpark_mutex_try_lock(&anothers))
        spinpark_mutex_unlock(&anothers);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* Held across the fork. */
        spinpark_rwlock_write_unlock(&rwlock);
        CHECK(!spinpark_rwlock_try_write_lock(&is_read));
        spinpark_rwlock_read_unlock(&is_read);
        CHECK(spinpark_rwlock_try_write_lock(&is_read));
        CHECK(!spinpark_mutex_try_lock(&anothers));
        spinpark_mutex_init(&anothers);
        left = right = count = count_of_zero = 0;
#ifndef NO_THREADS_AFTER_FORK
        crowd(reads_and_writes);
        crowd(counts);
        CHECK(count == THREADS * ROUNDS && left == right);
#endif
        spinpark_mutex_lock(&anothers);
        _exit(0);
    }
    spinpark_rwlock_read_unlock(&is_read);
    spinpark_rwlock_write_unlock(&rwlock);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- what ends the process */

static void breaks(const char *rule) {
    const struct timespec bad = { 0, 1000000000 };
    spinpark_mutex_t other = SPINPARK_MUTEX_INIT;
    if (strcmp(rule, "mutex-twice") == 0) {
        spinpark_mutex_lock(&mutex);
        spinpark_mutex_lock(&mutex);
    } else if (strcmp(rule, "mutex-twice-in-child") == 0) {
        /* The child's number is another one, also in what the header writes into the mutex. */
        const pid_t child = fork();
        int status;
        if (child == 0) {
            spinpark_mutex_lock(&mutex);
            spinpark_mutex_lock(&mutex);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        abort();
    } else if (strcmp(rule, "mutex-twice-for") == 0) {
        spinpark_mutex_lock(&mutex);
        CHECK(!spinpark_mutex_lock_for(&mutex, MS));
    } else if (strcmp(rule, "mutex-destroy") == 0) {
        spinpark_mutex_lock(&mutex);
        spinpark_mutex_destroy(&mutex);
    } else if (strcmp(rule, "deadline") == 0) {
        CHECK(spinpark_mutex_lock_until(&mutex, &bad));
    } else if (strcmp(rule, "recursive-unlock") == 0) {
        spinpark_recursive_mutex_unlock(&recursive);
    } else if (strcmp(rule, "recursive-destroy") == 0) {
        spinpark_recursive_mutex_lock(&recursive);
        spinpark_recursive_mutex_destroy(&recursive);
    } else if (strcmp(rule, "read-unlock") == 0) {
        spinpark_rwlock_read_unlock(&rwlock);
    } else if (strcmp(rule, "read-unlock-of-write") == 0) {
        spinpark_rwlock_write_lock(&rwlock);
        spinpark_rwlock_read_unlock(&rwlock);
    } else if (strcmp(rule, "write-unlock") == 0) {
        spinpark_rwlock_write_unlock(&rwlock);
    } else if (strcmp(rule, "write-unlock-of-read") == 0) {
        spinpark_rwlock_read_lock(&rwlock);
        spinpark_rwlock_write_unlock(&rwlock);
    } else if (strcmp(rule, "write-twice") == 0) {
        spinpark_rwlock_write_lock(&rwlock);
        spinpark_rwlock_write_lock(&rwlock);
    } else if (strcmp(rule, "read-of-write") == 0) {
        spinpark_rwlock_write_lock(&rwlock);
        spinpark_rwlock_read_lock(&rwlock);
    } else if (strcmp(rule, "rwlock-destroy") == 0) {
        spinpark_rwlock_read_lock(&rwlock);
        spinpark_rwlock_destroy(&rwlock);
    } else if (strcmp(rule, "cond-free-mutex") == 0) {
        spinpark_cond_wait(&changed, &mutex);
    } else if (strcmp(rule, "cond-two-mutexes") == 0) {
        start(waits_for_opening, &changed);
        for (;;) {
            spinpark_mutex_lock(&mutex);
            const int there = waiting;
            spinpark_mutex_unlock(&mutex);
            if (there)
                break;
        }
        spinpark_mutex_lock(&other);
        spinpark_cond_wait(&changed, &other);
    } else if (strcmp(rule, "cond-destroy") == 0) {
        start(waits_for_opening, &changed);
        for (;;) {
            spinpark_mutex_lock(&mutex);
            const int there = waiting;
            spinpark_mutex_unlock(&mutex);
            if (there)
                spinpark_cond_destroy(&changed);
        }
    }
}

int main(int argc, char **argv) {
    if (argc > 1) {
        breaks(argv[1]);
        printf("still there\n");
        return 1;
    }
    /* Before the first lock, with which the library registers its own handler. */
    CHECK(pthread_atfork(before, afterwards, afterwards) == 0);
    errno = 77;
    mutexes();
    recursive_mutexes();
    rwlocks();
    condition_variables();
    CHECK(errno == 77);
    forks();
    spinpark_before_filter();
    count = count_of_zero = left = right = 0;
    crowd(counts);
    crowd(reads_and_writes);
    printf("all good\n");
    return 0;
}
