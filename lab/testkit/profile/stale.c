/* Locks that are released without the recorder, or by another thread than the one that took them: their noted holders do
 * not hold them. Where it looks like a circle, two threads wait, not for each other; then the program is killed. */
#include "truth.h"
#include <glob.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static pthread_t begin_thread(void *(*run)(void *))
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, run, NULL));
    return thread;
}

static void *keeps_mutex(void *argument)
{
    OK(pthread_mutex_lock(&mutex));
    next_turn();
    for (;;)
        pause();
    return argument;
}

static void *has_second_and_waits(void *argument)
{
    OK(pthread_mutex_lock(&second));
    next_turn();
    about_to_block();
    OK(pthread_mutex_lock(&mutex));
    return argument;
}

static void *kills(void *argument)
{
    await_blocked();
    raise(SIGKILL);
    return argument;
}

/* The caller had the mutex, and has it no more. It waits for the second lock, whose owner waits for the mutex. */
static void look_like_a_circle(void)
{
    int now = atomic_load(&turn);
    begin_thread(keeps_mutex);
    await_turn(now + 1);
    begin_thread(has_second_and_waits);
    await_turn(now + 2);
    await_blocked();
    begin_thread(kills);
    about_to_block();
    OK(pthread_mutex_lock(&second));
}

static void *waits_once(void *argument)
{
    about_to_block();
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    return argument;
}

/* Whose holders are noted, from then on. */
static void have_it_waited_for(void)
{
    OK(pthread_mutex_lock(&mutex));
    pthread_t thread = begin_thread(waits_once);
    await_blocked();
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_join(thread, NULL));
}

static void *lets_go(void *argument)
{
    OK(pthread_mutex_unlock(&mutex));
    return argument;
}

/* A mutex as a semaphore: one thread takes it, another releases it. */
static void scene_given_away(void)
{
    have_it_waited_for();
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_join(begin_thread(lets_go), NULL));
    look_like_a_circle();
}

static void set_detail(uint32_t detail, const char *file, off_t at)
{
    int recording = open(file, O_RDWR | O_CLOEXEC);
    CHECK(recording >= 0 && pwrite(recording, &detail, sizeof detail, at) == sizeof detail);
    close(recording);
    /* The next calls look at it. */
    pthread_mutex_t looks = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_init(&looks, NULL));
    OK(pthread_mutex_init(&looks, NULL));
}

/* The detail becomes `contended` while a lock is held that was never waited for: its release is not seen. */
static void scene_less_detail(const char *file, off_t at)
{
    OK(pthread_mutex_lock(&mutex));
    set_detail(1, file, at);
    OK(pthread_mutex_unlock(&mutex));
    look_like_a_circle();
}

/* With `contended` a lock is noted without its time; while it is off, its release is not seen. */
static void scene_off_meanwhile(const char *file, off_t at)
{
    set_detail(1, file, at);
    have_it_waited_for();
    OK(pthread_mutex_lock(&mutex));
    set_detail(0, file, at);
    OK(pthread_mutex_unlock(&mutex));
    set_detail(1, file, at);
    look_like_a_circle();
}

enum { HELD = 40 };

/* More locks at a time than are noted; of those that are, another thread releases one. All are counted nevertheless.
 * */
static void scene_many_held(void)
{
    static pthread_mutex_t locks[HELD];
    for (int i = 0; i < HELD; i++)
        OK(pthread_mutex_init(&locks[i], NULL));
    have_it_waited_for();
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_join(begin_thread(lets_go), NULL));
    for (int i = 0; i < HELD; i++)
        OK(pthread_mutex_lock(&locks[i]));
    for (int i = 0; i < HELD; i++)
        OK(pthread_mutex_unlock(&locks[i]));
    struct truth once = {.acquisitions = 1}, thrice = {.acquisitions = 3};
    for (int i = 0; i < HELD; i++)
        truth_print(&once, "write", &locks[i]);
    truth_print(&thrice, "write", &mutex);
}

static void *takes_and_ends(void *lock)
{
    OK(pthread_mutex_lock(lock));
    return NULL;
}

/* Threads that end with a lock. Others take over what they had. */
static void scene_ended(void)
{
    static pthread_mutex_t locks[HELD];
    struct truth once = {.acquisitions = 1};
    for (int i = 0; i < HELD; i++) {
        OK(pthread_mutex_init(&locks[i], NULL));
        pthread_t thread;
        OK(pthread_create(&thread, NULL, takes_and_ends, &locks[i]));
        OK(pthread_join(thread, NULL));
        if (i < HELD / 2)
            truth_print(&once, "write", &locks[i]);
    }
}

static pthread_mutex_t robust;

static void *dies(void *argument)
{
    OK(pthread_mutex_lock(&robust));
    return argument;
}

NOINLINE static void *waiter_site(void *argument)
{
    about_to_block();
    OK(pthread_mutex_lock(&robust));
    OK(pthread_mutex_unlock(&robust));
    NOT_LAST();
    return argument;
}

NOINLINE static void holder_site(void)
{
    CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD);
    pthread_t thread = begin_thread(waiter_site);
    await_blocked();
    OK(pthread_mutex_consistent(&robust));
    OK(pthread_mutex_unlock(&robust));
    OK(pthread_join(thread, NULL));
    NOT_LAST();
}

/* While a robust mutex is being repaired, the word that names its owner does not. */
static void scene_repaired(void)
{
    pthread_mutexattr_t attributes;
    OK(pthread_mutexattr_init(&attributes));
    OK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    OK(pthread_mutex_init(&robust, &attributes));
    OK(pthread_join(begin_thread(dies), NULL));
    holder_site();
    PRINT_FUNCTION(holder_site);
    PRINT_FUNCTION(waiter_site);
}

int main(int count, char **arguments)
{
    CHECK(count >= 2);
    char file[4096];
    snprintf(file, sizeof file, "%s/%d-*.spinprof", getenv("SPINPARK_PROFILE_DIR"), getpid());
    glob_t recordings;
    if (glob(file, 0, NULL, &recordings) == 0)
        snprintf(file, sizeof file, "%s", recordings.gl_pathv[0]);
    off_t at = count == 3 ? atoi(arguments[2]) : 0;
    if (strcmp(arguments[1], "given-away") == 0)
        scene_given_away();
    else if (strcmp(arguments[1], "less-detail") == 0)
        scene_less_detail(file, at);
    else if (strcmp(arguments[1], "off-meanwhile") == 0)
        scene_off_meanwhile(file, at);
    else if (strcmp(arguments[1], "repaired") == 0)
        scene_repaired();
    else if (strcmp(arguments[1], "many-held") == 0)
        scene_many_held();
    else if (strcmp(arguments[1], "ended") == 0)
        scene_ended();
    else
        FAIL("no scene %s", arguments[1]);
    return 0;
}
