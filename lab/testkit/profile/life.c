/* What programs do besides using locks: they fork, become others, are killed, close libraries, get signals.
 *
 *   life SCENE [ARGUMENT]
 *
 * `lock MUTEX N` says that a process took a mutex N times. With -DPLUGIN it is a library. */
#include "truth.h"
#include <dlfcn.h>

NOINLINE void lock_often(pthread_mutex_t *mutex, int times)
{
    for (int i = 0; i < times; i++) {
        OK(pthread_mutex_lock(mutex));
        OK(pthread_mutex_unlock(mutex));
    }
}

#ifndef PLUGIN
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, in_handler = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile long handled;

static void say(int times)
{
    printf("%d %ld %d\n", (int)getpid(), (long)(uintptr_t)&mutex, times);
    fflush(stdout);
}

static void scene_fork(void)
{
    lock_often(&mutex, 100);
    for (int child = 0; child < 3; child++) {
        OK(pthread_mutex_lock(&mutex));
        pid_t pid = fork();
        CHECK(pid >= 0);
        OK(pthread_mutex_unlock(&mutex));
        if (pid == 0) {
            lock_often(&mutex, 10 + child);
            say(10 + child);
            exit(0);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    say(103);
}

static void scene_exec(char **arguments)
{
    lock_often(&mutex, 5);
    say(5);
    arguments[1] = "last";
    execv("/proc/self/exe", arguments);
    FAIL("execv");
}

static void scene_killed(void)
{
    lock_often(&mutex, 1000);
    say(1000);
    raise(SIGKILL);
}

static void handler(int signal)
{
    (void)signal;
    /* Not allowed, and done. */
    int errno_before = errno;
    lock_often(&in_handler, 1);
    handled++;
    errno = errno_before;
}

static void scene_signals(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0);
    struct itimerspec often = {{0, 100000}, {0, 100000}};
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
    int times = 0;
    while (handled < 2000) {
        lock_often(&mutex, 100);
        times += 100;
    }
    CHECK(timer_delete(timer) == 0);
    say(times);
    printf("handler %ld %ld\n", (long)(uintptr_t)&in_handler, handled);
}

static void scene_dlclose(const char *path)
{
    for (int round = 0; round < 10; round++) {
        void *library = dlopen(path, RTLD_NOW);
        CHECK(library);
        void (*function)(pthread_mutex_t *, int) = (void (*)(pthread_mutex_t *, int))dlsym(library, "lock_often");
        CHECK(function);
        function(&mutex, 7);
        CHECK(dlclose(library) == 0);
        lock_often(&mutex, 3);
    }
    say(100);
}

static void *contends(void *argument)
{
    (void)argument;
    static long data;
    for (int i = 0; i < 3000; i++) {
        OK(pthread_mutex_lock(&mutex));
        data++;
        if (i % 100 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

/* Many threads and locks: more than fit on a small disk. */
static void scene_large(void)
{
    static pthread_mutex_t locks[20000];
    pthread_t threads[40];
    lock_often(&mutex, 1); /* while it is not full */
    for (int i = 0; i < 40; i++)
        OK(pthread_create(&threads[i], NULL, contends, NULL));
    for (int i = 0; i < 20000; i++)
        lock_often(&locks[i], 1);
    for (int i = 0; i < 40; i++)
        OK(pthread_join(threads[i], NULL));
    say(120001);
}

/* Waits until the test has had a look, which is a file with this name. */
static void scene_looked_at(const char *file)
{
    int times = 0;
    lock_often(&mutex, 10);
    say(10);
    OK(pthread_mutex_lock(&mutex));
    while (access(file, F_OK) != 0) {
        struct timespec soon = in_ms(CLOCK_REALTIME, 5);
        CHECK(pthread_cond_timedwait(&cond, &mutex, &soon) == ETIMEDOUT);
    }
    struct timespec soon = in_ms(CLOCK_REALTIME, 5);
    CHECK(pthread_cond_timedwait(&cond, &mutex, &soon) == ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
    lock_often(&mutex, 50);
    times += 50;
    say(times);
}

int main(int count, char **arguments)
{
    CHECK(count >= 2);
    const char *scene = arguments[1];
    if (strcmp(scene, "fork") == 0)
        scene_fork();
    else if (strcmp(scene, "exec") == 0)
        scene_exec(arguments);
    else if (strcmp(scene, "last") == 0)
        lock_often(&mutex, 6), say(6);
    else if (strcmp(scene, "killed") == 0)
        scene_killed();
    else if (strcmp(scene, "signals") == 0)
        scene_signals();
    else if (strcmp(scene, "dlclose") == 0)
        scene_dlclose(arguments[2]);
    else if (strcmp(scene, "large") == 0)
        scene_large();
    else if (strcmp(scene, "looked-at") == 0)
        scene_looked_at(arguments[2]);
    else
        FAIL("no scene %s", scene);
    return 0;
}
#endif
