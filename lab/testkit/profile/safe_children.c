/* Children that come about in odd ways. */
#include "safe.h"
#include <sys/time.h>

static void await_child(pid_t child)
{
    int status;
    pid_t ended;
    while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    CHECK(ended == child);
    if (status != 0)
        FAIL("a child ended with %#x", status);
}

/* A child of which no handler of pthread_atfork is told. */
static void scene_bare_clone(void)
{
    lock_often(&mutex, 100);
    pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) {
        lock_often(&mutex, 1000);
        _exit(0);
    }
    await_child(child);
    say(100);
}

static atomic_int forks;
static volatile int is_child;

static void forks_in_handler(int signal)
{
    (void)signal;
    if (is_child || atomic_load(&forks) == 40)
        return;
    int errno_before = errno;
    pid_t child = fork();
    if (child == 0) {
        is_child = 1;
        alarm(60);
    } else {
        CHECK(child > 0);
        await_child(child);
        atomic_fetch_add(&forks, 1);
    }
    errno = errno_before;
}

/* The stack differs each time, so the recorder has much to do. */
NOINLINE static void lock_deep(int depth, pthread_mutex_t *mutex)
{
    if (depth > 0)
        lock_deep(depth - 1, mutex);
    else
        lock_often(mutex, 1);
    NOT_LAST();
}

/* A handler forks wherever the signal comes; the child returns from it, and goes on with what was interrupted. */
static void scene_fork_in_handler(void)
{
    static pthread_mutex_t mutexes[512];
    CHECK(signal(SIGALRM, forks_in_handler) != SIG_ERR);
    struct itimerval often = {{0, 1500}, {0, 1500}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; atomic_load(&forks) < 40; i++) {
        lock_deep(i % 23, &mutexes[i * 7 % 512]);
        if (is_child) {
            for (int more = 0; more < 100; more++)
                lock_deep(more % 23, &mutexes[more * 7 % 512]);
            exit(0);
        }
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    say(0);
}

MAIN({"bare-clone", scene_bare_clone}, {"fork-in-handler", scene_fork_in_handler})
