/* One thread holds a mutex for long and never waits for it: two others wait for it. */
#include "corpus.h"

enum { ROUNDS = 8, READERS = 2 };

static pthread_mutex_t catalogue_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int taken, served;

static NOINLINE void rebuild_index(int round)
{
    CHECK(pthread_mutex_lock(&catalogue_lock) == 0);
    atomic_store(&taken, round + 1);
    sleep_ms(40);
    CHECK(pthread_mutex_unlock(&catalogue_lock) == 0);
    NOT_LAST();
}

static NOINLINE void look_up_price(void)
{
    CHECK(pthread_mutex_lock(&catalogue_lock) == 0);
    CHECK(pthread_mutex_unlock(&catalogue_lock) == 0);
    NOT_LAST();
}

static void *reader(void *none)
{
    for (int round = 0; round < ROUNDS; round++) {
        await_at_least(&taken, round + 1);
        look_up_price();
        atomic_fetch_add(&served, 1);
    }
    return none;
}

int main(void)
{
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        readers[i] = start(reader, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        rebuild_index(round);
        await_at_least(&served, (round + 1) * READERS); /* So it finds the mutex free. */
    }
    for (int i = 0; i < READERS; i++)
        join(readers[i]);
    return 0;
}
