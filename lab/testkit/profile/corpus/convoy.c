/* Eight threads do all their work in short sections under one mutex: each waits for all others, in one function. */
#include "corpus.h"

enum { THREADS = 8, SECTIONS = 25 };

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static long length;

static NOINLINE void push(void)
{
    CHECK(pthread_mutex_lock(&queue_lock) == 0);
    sleep_ms(2);
    length++;
    CHECK(pthread_mutex_unlock(&queue_lock) == 0);
    NOT_LAST();
}

static void *producer(void *none)
{
    for (int i = 0; i < SECTIONS; i++)
        push();
    return none;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(producer, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    CHECK(length == THREADS * SECTIONS);
    return 0;
}
