/* pthread_cancel itself, while others wait on condition variables:
 *  - a fork while some thread is inside pthread_cancel leaves the child with working condition variables;
 *  - a thread that is cancelled, asynchronously, inside its own pthread_cancel (POSIX lists it as
 *    async-cancel-safe) leaves the process with working condition variables.
 */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool flag;

static void *sleeper(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

static void *waiter(void *unused)
{
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    while (!flag)
        OK(pthread_cond_wait(&cond, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

/* One thread signals another. Hangs if condition variables do not work. */
static void exchange(void)
{
    pthread_t thread;
    flag = false;
    CHECK(pthread_create(&thread, NULL, waiter, NULL) == 0);
    usleep(200);
    OK(pthread_mutex_lock(&mutex));
    flag = true;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutex));
    CHECK(pthread_join(thread, NULL) == 0);
}

static atomic_bool over;

static void *cancel_and_join(void *unused)
{
    (void)unused;
    while (!atomic_load(&over)) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, sleeper, NULL) == 0);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return NULL;
}

static void fork_inside_cancel(void)
{
    check_context = "fork";
    pthread_t cancellers[2];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&cancellers[i], NULL, cancel_and_join, NULL) == 0);
    for (int i = 0; i < 300; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(60);
            exchange();
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(cancellers[i], NULL) == 0);
}

static pthread_t victim;

static void *uncancellable(void *unused)
{
    (void)unused;
    int old;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0);
    while (!atomic_load(&over))
        usleep(1000);
    return NULL;
}

static void *cancel_for_ever(void *unused)
{
    (void)unused;
    int old;
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old) == 0);
    for (;;)
        pthread_cancel(victim);
    return NULL;
}

static void canceller_cancelled(void)
{
    check_context = "asynchronous";
    atomic_store(&over, false);
    CHECK(pthread_create(&victim, NULL, uncancellable, NULL) == 0);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, cancel_for_ever, NULL) == 0);
        usleep(100 + i * 7);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        exchange();
    }
    atomic_store(&over, true);
    CHECK(pthread_join(victim, NULL) == 0);
}

int main(void)
{
    fork_inside_cancel();
    canceller_cancelled();
    return 0;
}
