/* A plugin, or a library without symbols but its exported ones: its inner functions hold a lock and wait for it. */
#include "corpus.h"

static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int taken, served;

static NOINLINE void inner_hold(int round)
{
    CHECK(pthread_mutex_lock(&context_lock) == 0);
    atomic_store(&taken, round);
    sleep_ms(40);
    CHECK(pthread_mutex_unlock(&context_lock) == 0);
    NOT_LAST();
}

static NOINLINE void inner_wait(void)
{
    CHECK(pthread_mutex_lock(&context_lock) == 0);
    CHECK(pthread_mutex_unlock(&context_lock) == 0);
    NOT_LAST();
}

void vendor_launch(int round);
NOINLINE void vendor_launch(int round)
{
    inner_hold(round);
    await_at_least(&served, round);
}

void vendor_copy(int round);
NOINLINE void vendor_copy(int round)
{
    await_at_least(&taken, round);
    inner_wait();
    atomic_store(&served, round);
}
