/* A mutex that is taken at 64 call sites, of which one holds it for long. */
#include "corpus.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int taken, served;

#define SITE(number)                                                                                                  \
    static NOINLINE void site_##number(int work_ms, int round)                                                        \
    {                                                                                                                 \
        CHECK(pthread_mutex_lock(&registry_lock) == 0);                                                               \
        if (work_ms) {                                                                                                \
            atomic_store(&taken, round);                                                                              \
            sleep_ms(work_ms);                                                                                        \
        }                                                                                                             \
        CHECK(pthread_mutex_unlock(&registry_lock) == 0);                                                             \
        NOT_LAST();                                                                                                   \
    }
#define EIGHT(of, tens) of(tens##0) of(tens##1) of(tens##2) of(tens##3) of(tens##4) of(tens##5) of(tens##6) of(tens##7)
#define ALL(of) EIGHT(of, 1) EIGHT(of, 2) EIGHT(of, 3) EIGHT(of, 4) EIGHT(of, 5) EIGHT(of, 6) EIGHT(of, 7) EIGHT(of, 8)
ALL(SITE)
#define NAME(number) site_##number,
static void (*const sites[64])(int, int) = {ALL(NAME)};

static NOINLINE void query(void)
{
    CHECK(pthread_mutex_lock(&registry_lock) == 0);
    CHECK(pthread_mutex_unlock(&registry_lock) == 0);
    NOT_LAST();
}

enum { ROUNDS = 8 };

static void *waiter(void *none)
{
    for (int round = 1; round <= ROUNDS; round++) {
        await_at_least(&taken, round);
        query();
        atomic_fetch_add(&served, 1);
    }
    return none;
}

int main(void)
{
    pthread_t thread = start(waiter, NULL);
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < 6400; i++)
            sites[i % 64](0, round);
        site_53(40, round);
        await_at_least(&served, round);
    }
    join(thread);
    return 0;
}
