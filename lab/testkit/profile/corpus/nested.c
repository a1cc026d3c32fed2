/* A thread waits for a mutex with another one held, for which a third thread waits: the inner one is the cause. */
#include "corpus.h"

enum { ROUNDS = 8 };

static pthread_mutex_t accounts_lock = PTHREAD_MUTEX_INITIALIZER, log_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int log_taken, accounts_taken, transferred, paid;

static NOINLINE void flush_log(int round)
{
    CHECK(pthread_mutex_lock(&log_lock) == 0);
    atomic_store(&log_taken, round);
    await_at_least(&accounts_taken, round);
    sleep_ms(40);
    CHECK(pthread_mutex_unlock(&log_lock) == 0);
    NOT_LAST();
}

static NOINLINE void append_log(void)
{
    CHECK(pthread_mutex_lock(&log_lock) == 0);
    CHECK(pthread_mutex_unlock(&log_lock) == 0);
    NOT_LAST();
}

static NOINLINE void transfer(int round)
{
    CHECK(pthread_mutex_lock(&accounts_lock) == 0);
    atomic_store(&accounts_taken, round);
    append_log();
    CHECK(pthread_mutex_unlock(&accounts_lock) == 0);
    NOT_LAST();
}

static NOINLINE void pay(void)
{
    CHECK(pthread_mutex_lock(&accounts_lock) == 0);
    CHECK(pthread_mutex_unlock(&accounts_lock) == 0);
    NOT_LAST();
}

static void *transfers(void *none)
{
    for (int round = 1; round <= ROUNDS; round++) {
        await_at_least(&log_taken, round);
        transfer(round);
        atomic_store(&transferred, round);
    }
    return none;
}

static void *payments(void *none)
{
    for (int round = 1; round <= ROUNDS; round++) {
        await_at_least(&accounts_taken, round);
        sleep_ms(10); /* So that the inner one is waited for longer, on any machine. */
        pay();
        atomic_store(&paid, round);
    }
    return none;
}

int main(void)
{
    pthread_t threads[] = {start(transfers, NULL), start(payments, NULL)};
    for (int round = 1; round <= ROUNDS; round++) {
        flush_log(round);
        await_at_least(&transferred, round);
        await_at_least(&paid, round);
    }
    join(threads[0]);
    join(threads[1]);
    return 0;
}
