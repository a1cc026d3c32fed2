/* Programs that fork: what their children leave behind.
 *
 *   forks SCENE
 *
 * prints the address of `mutex`, and how often each process that says so waited for it. */
#include "safe.h"
#include <sys/wait.h>

static void await_child(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0)
        FAIL("a child ended with %#x", status);
}

static void in_child(void (*what)(void))
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        what();
        _exit(0);
    }
    await_child(child);
}

static void lock_once(void)
{
    lock_often(&mutex, 1);
}

static void init_and_lock(void)
{
    static pthread_mutex_t other;
    OK(pthread_mutex_init(&other, NULL));
    lock_often(&other, 1);
    OK(pthread_mutex_destroy(&other));
}

static void wait_once(void)
{
    while_held(wait_for_mutex);
}

/* Children that take free mutexes. */
static void scene_idle(void)
{
    for (int i = 0; i < 200; i++) {
        in_child(lock_once);
        in_child(init_and_lock);
    }
    say(0);
}

/* The same, with a mutex that threads of their parent have waited for. */
static void scene_idle_after_wait(void)
{
    wait_once();
    for (int i = 0; i < 200; i++)
        in_child(lock_once);
    say(1);
}

/* Children that wait, each for a mutex that it has made. */
static pthread_mutex_t *made;

NOINLINE static pthread_mutex_t *make_mutex(void)
{
    static pthread_mutex_t memory;
    OK(pthread_mutex_init(&memory, NULL));
    NOT_LAST();
    return &memory;
}

static void *hold_made(void *argument)
{
    OK(pthread_mutex_lock(made));
    atomic_store(&is_held, 1);
    await_blocked();
    OK(pthread_mutex_unlock(made));
    return argument;
}

static void make_and_wait(void)
{
    made = make_mutex();
    lock_often(made, 3);
    pthread_t thread;
    OK(pthread_create(&thread, NULL, hold_made, NULL));
    while (!atomic_load(&is_held))
        sched_yield();
    about_to_block();
    OK(pthread_mutex_lock(made));
    OK(pthread_mutex_unlock(made));
    OK(pthread_join(thread, NULL));
    printf("%ld %ld\n", (long)(uintptr_t)made, (long)(uintptr_t)make_mutex);
    fflush(stdout);
}

static void scene_made(void)
{
    in_child(make_and_wait);
}

/* Eight at a time. */
static void at_once(int children, void (*what)(void))
{
    for (int started = 0, ended = 0; ended < children; ended++) {
        for (; started < children && started < ended + 8; started++) {
            pid_t child = fork();
            CHECK(child >= 0);
            if (child == 0) {
                what();
                _exit(0);
            }
        }
        int status;
        CHECK(waitpid(-1, &status, 0) > 0 && status == 0);
    }
}

static void scene_crowd(void)
{
    at_once(64, wait_once);
    say(1);
}

MAIN({"idle", scene_idle}, {"idle-after-wait", scene_idle_after_wait}, {"made", scene_made}, {"crowd", scene_crowd})
