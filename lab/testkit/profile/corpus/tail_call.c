/* Functions that end with the call that locks or releases: compiled to jumps, so that they are on no stack then. */
#include "corpus.h"

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int taken, readers;

static NOINLINE void open_ledger(void)
{
    pthread_mutex_lock(&ledger_lock);
}

static NOINLINE void close_ledger(void)
{
    atomic_store(&taken, 1);
    sleep_ms(400);
    pthread_mutex_unlock(&ledger_lock);
}

static NOINLINE void read_ledger(void)
{
    atomic_fetch_add(&readers, 1); /* equal functions become one */
    pthread_mutex_lock(&ledger_lock);
}

static void *clerk(void *none)
{
    await_at_least(&taken, 1);
    read_ledger();
    CHECK(pthread_mutex_unlock(&ledger_lock) == 0);
    return none;
}

int main(void)
{
    pthread_t thread = start(clerk, NULL);
    open_ledger();
    close_ledger();
    join(thread);
    return 0;
}
