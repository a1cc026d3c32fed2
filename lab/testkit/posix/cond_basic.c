/* Condition variables with every kind of mutex, private and process-shared in every combination:
 *  - a wait releases the mutex and holds it again when it returns; signal wakes one, broadcast all;
 *  - a signal without waiters is forgotten;
 *  - EPERM, and no wait, if an errorcheck mutex is not owned (glibc: recursive and robust ones as well);
 *  - static initialiser, zeroed memory, destroy and initialise again. */
#include "check.h"

enum { ROUNDS = 300, WAITERS = 4 };
static pthread_mutex_t mutex;
static pthread_cond_t cond, answer;
static int ball, tickets, waiting, released;
static bool signal_unlocked;

static void *player(void *arg)
{
    int me = arg != NULL;
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_mutex_lock(&mutex));
        while (ball != me)
            OK(pthread_cond_wait(me ? &answer : &cond, &mutex));
        ball = !me;
        if (signal_unlocked)
            OK(pthread_mutex_unlock(&mutex));
        OK(pthread_cond_signal(me ? &cond : &answer));
        if (!signal_unlocked)
            OK(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

static void *ticket_waiter(void *arg)
{
    (void)arg;
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    while (tickets == 0)
        OK(pthread_cond_wait(&cond, &mutex));
    tickets--;
    released++;
    CALL(other_trylock(&mutex), EBUSY); /* held again */
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void until_waiting(int count)
{
    for (;;) {
        OK(pthread_mutex_lock(&mutex));
        int now = waiting;
        OK(pthread_mutex_unlock(&mutex)); /* a waiter has released the mutex only by waiting */
        if (now == count)
            return;
        sched_yield();
    }
}

static void tickets_for_all(bool broadcast)
{
    struct thread threads[WAITERS];
    tickets = waiting = released = 0;
    for (int i = 0; i < WAITERS; i++)
        start(&threads[i], ticket_waiter, NULL);
    until_waiting(WAITERS);
    for (int i = 0; i < (broadcast ? 1 : WAITERS); i++) {
        OK(pthread_mutex_lock(&mutex));
        tickets += broadcast ? WAITERS : 1;
        if (signal_unlocked)
            OK(pthread_mutex_unlock(&mutex));
        OK(broadcast ? pthread_cond_broadcast(&cond) : pthread_cond_signal(&cond));
        if (!signal_unlocked)
            OK(pthread_mutex_unlock(&mutex));
    }
    for (int i = 0; i < WAITERS; i++)
        join_soon(&threads[i], broadcast ? "a waiter after a broadcast" : "a waiter after as many signals");
    CHECK(released == WAITERS && tickets == 0);
}

static void forgotten_signals(void)
{
    OK(pthread_cond_signal(&cond));
    OK(pthread_cond_broadcast(&cond));
    /* Spurious wake-ups are allowed, always having one is not. */
    int timeouts = 0;
    for (int i = 0; i < 20 && !timeouts; i++) {
        OK(pthread_cond_signal(&cond));
        OK(pthread_mutex_lock(&mutex));
        struct timespec deadline = in_ms(CLOCK_REALTIME, 2);
        int error = pthread_cond_timedwait(&cond, &mutex, &deadline);
        CHECK(error == 0 || error == ETIMEDOUT);
        timeouts += error == ETIMEDOUT;
        OK(pthread_mutex_unlock(&mutex));
    }
    CHECK(timeouts);
}

static void not_owned(void)
{
    struct timespec deadline = in_ms(CLOCK_REALTIME, LONG_MS), mono = in_ms(CLOCK_MONOTONIC, LONG_MS);
    CALL(pthread_cond_wait(&cond, &mutex), EPERM);
    CALL(pthread_cond_timedwait(&cond, &mutex, &deadline), EPERM);
    CALL(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &mono), EPERM);
    OK(other_trylock(&mutex));
}

static void everything(bool checks_owner)
{
    struct thread threads[2];
    forgotten_signals();
    if (checks_owner)
        not_owned();
    for (int unlocked = 0; unlocked < 2; unlocked++) {
        signal_unlocked = unlocked;
        ball = 0;
        start(&threads[0], player, NULL);
        start(&threads[1], player, &mutex);
        join_soon(&threads[0], "a ping-pong player");
        join_soon(&threads[1], "the other ping-pong player");
        tickets_for_all(false);
        tickets_for_all(true);
    }
    forgotten_signals();
}

int main(void)
{
    FOR_EACH_KIND(kind) {
        for (int pshared = 0; pshared < 2; pshared++) {
            pthread_condattr_t attr;
            CHECK(pthread_condattr_init(&attr) == 0);
            CHECK(pthread_condattr_setpshared(&attr, pshared) == 0);
            memset(&cond, 0xa5, sizeof cond);
            memset(&answer, 0xa5, sizeof answer);
            OK(pthread_cond_init(&cond, &attr));
            OK(pthread_cond_init(&answer, &attr));
            mutex_make(&mutex, kind);
            everything(kind->type == PTHREAD_MUTEX_ERRORCHECK || kind->type == PTHREAD_MUTEX_RECURSIVE);
            OK(pthread_cond_destroy(&cond));
            OK(pthread_cond_destroy(&answer));
            OK(pthread_mutex_destroy(&mutex));
        }
    }
    check_context = "static initialisers";
    cond = answer = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    everything(false);
    OK(pthread_cond_destroy(&cond));
    OK(pthread_cond_destroy(&answer));

    check_context = "zeroed memory, default attributes";
    memset(&mutex, 0, sizeof mutex);
    memset(&cond, 0, sizeof cond);
    OK(pthread_cond_init(&answer, NULL));
    everything(false);
    return 0;
}
