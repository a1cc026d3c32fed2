/* Four threads hand a mutex on in a round: each holds it while all others wait. */
#include "corpus.h"

enum { STAGES = 4, ROUNDS = 12 };

static pthread_mutex_t baton = PTHREAD_MUTEX_INITIALIZER;
static int turns[STAGES];

static NOINLINE void run_stage(int number)
{
    CHECK(pthread_mutex_lock(&baton) == 0);
    sleep_ms(6);
    turns[number]++;
    CHECK(pthread_mutex_unlock(&baton) == 0);
    NOT_LAST();
}

static void *stage(void *number)
{
    for (int round = 0; round < ROUNDS; round++) {
        run_stage((int)(long)number);
        sleep_ms(1); /* The next one gets it. */
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[STAGES];
    for (long i = 0; i < STAGES; i++)
        threads[i] = start(stage, (void *)i);
    for (int i = 0; i < STAGES; i++)
        join(threads[i]);
    return 0;
}
