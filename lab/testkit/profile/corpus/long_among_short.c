/* One thread holds a mutex for 5 ms at a time; between, others take it for a moment, thousands of times. They wait for it alone,
 * though it is never the latest to have released the mutex. */
#include "corpus.h"

enum { ROUNDS = 80, READERS = 4 };

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_over;
static long hits;

static NOINLINE void rebuild_index(void)
{
    CHECK(pthread_mutex_lock(&index_lock) == 0);
    sleep_ms(5);
    CHECK(pthread_mutex_unlock(&index_lock) == 0);
    NOT_LAST();
}

static NOINLINE void look_up(void)
{
    CHECK(pthread_mutex_lock(&index_lock) == 0);
    hits++;
    CHECK(pthread_mutex_unlock(&index_lock) == 0);
    NOT_LAST();
}

static void *reader(void *none)
{
    while (!atomic_load(&is_over)) {
        look_up();
        for (volatile int i = 0; i < 10000; i++)
            ;
    }
    return none;
}

int main(void)
{
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        readers[i] = start(reader, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        rebuild_index();
        sleep_ms(4);
    }
    atomic_store(&is_over, 1);
    for (int i = 0; i < READERS; i++)
        join(readers[i]);
    return 0;
}
