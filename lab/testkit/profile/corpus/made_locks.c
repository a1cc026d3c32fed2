/* What programs make of a mutex and condition variables: locks, and what is none. The argument says which:
 *
 * lock     one function takes it, another one releases it
 * inside   the function that waits signals, too
 * fifo     each waiter has a condition variable of its own
 * readers  readers and writers wait at different condition variables
 * queue    two producers and two consumers of a queue of two items
 * meet     a barrier of two threads
 * tasks    workers take tasks that workers add
 */
#include "corpus.h"

enum { ROUNDS = 25 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed, writers;
    int owner, readers, count, turn;
} catalogue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0};

static NOINLINE void gate_enter(void)
{
    pthread_mutex_lock(&catalogue.mutex);
    while (catalogue.owner)
        pthread_cond_wait(&catalogue.changed, &catalogue.mutex);
    catalogue.owner = 1;
    pthread_mutex_unlock(&catalogue.mutex);
    NOT_LAST();
}

static NOINLINE void gate_leave(void)
{
    pthread_mutex_lock(&catalogue.mutex);
    catalogue.owner = 0;
    pthread_cond_signal(&catalogue.changed);
    pthread_mutex_unlock(&catalogue.mutex);
    NOT_LAST();
}

/* A thread that waits is the next owner. */
static struct waiter { pthread_cond_t turn; int is_owner; struct waiter *next; } *first;

static NOINLINE void place_order(int ms)
{
    struct waiter self = {PTHREAD_COND_INITIALIZER, 0, NULL};
    pthread_mutex_lock(&catalogue.mutex);
    struct waiter **last = &first;
    while (*last)
        last = &(*last)->next;
    *last = &self;
    while (first != &self)
        pthread_cond_wait(&self.turn, &catalogue.mutex);
    pthread_mutex_unlock(&catalogue.mutex);
    sleep_ms(ms);
    pthread_mutex_lock(&catalogue.mutex);
    first = self.next;
    if (first)
        pthread_cond_signal(&first->turn);
    pthread_mutex_unlock(&catalogue.mutex);
    NOT_LAST();
}

static NOINLINE void rebuild(const char *how)
{
    if (strcmp(how, "lock") == 0) {
        gate_enter();
        sleep_ms(8);
        gate_leave();
    } else if (strcmp(how, "inside") == 0) {
        pthread_mutex_lock(&catalogue.mutex);
        while (catalogue.owner)
            pthread_cond_wait(&catalogue.changed, &catalogue.mutex);
        catalogue.owner = 1;
        pthread_mutex_unlock(&catalogue.mutex);
        sleep_ms(8);
        pthread_mutex_lock(&catalogue.mutex);
        catalogue.owner = 0;
        pthread_cond_signal(&catalogue.changed);
        pthread_mutex_unlock(&catalogue.mutex);
    } else if (strcmp(how, "readers") == 0) {
        pthread_mutex_lock(&catalogue.mutex);
        while (catalogue.owner || catalogue.readers)
            pthread_cond_wait(&catalogue.writers, &catalogue.mutex);
        catalogue.owner = 1;
        pthread_mutex_unlock(&catalogue.mutex);
        sleep_ms(8);
        pthread_mutex_lock(&catalogue.mutex);
        catalogue.owner = 0;
        pthread_cond_broadcast(&catalogue.changed);
        pthread_cond_signal(&catalogue.writers);
        pthread_mutex_unlock(&catalogue.mutex);
    } else {
        place_order(8);
    }
    NOT_LAST();
}

static NOINLINE void look_up(const char *how)
{
    if (strcmp(how, "lock") == 0) {
        gate_enter();
        gate_leave();
    } else if (strcmp(how, "inside") == 0) {
        pthread_mutex_lock(&catalogue.mutex);
        while (catalogue.owner)
            pthread_cond_wait(&catalogue.changed, &catalogue.mutex);
        pthread_cond_signal(&catalogue.changed);
        pthread_mutex_unlock(&catalogue.mutex);
    } else if (strcmp(how, "readers") == 0) {
        pthread_mutex_lock(&catalogue.mutex);
        while (catalogue.owner)
            pthread_cond_wait(&catalogue.changed, &catalogue.mutex);
        catalogue.readers++;
        pthread_mutex_unlock(&catalogue.mutex);
        sleep_ms(1);
        pthread_mutex_lock(&catalogue.mutex);
        if (--catalogue.readers == 0)
            pthread_cond_signal(&catalogue.writers);
        pthread_mutex_unlock(&catalogue.mutex);
    } else {
        place_order(0);
    }
    NOT_LAST();
}

static void *rebuilds(void *how)
{
    for (int i = 0; i < ROUNDS; i++) {
        rebuild(how);
        sleep_ms(2);
    }
    return NULL;
}

static void *looks_up(void *how)
{
    for (int i = 0; i < ROUNDS; i++) {
        look_up(how);
        sleep_ms(1);
    }
    return NULL;
}

static NOINLINE void add_item(void)
{
    pthread_mutex_lock(&catalogue.mutex);
    while (catalogue.count == 2)
        pthread_cond_wait(&catalogue.writers, &catalogue.mutex);
    catalogue.count++;
    pthread_cond_signal(&catalogue.changed);
    pthread_mutex_unlock(&catalogue.mutex);
    NOT_LAST();
}

static NOINLINE void next_item(void)
{
    pthread_mutex_lock(&catalogue.mutex);
    while (catalogue.count == 0)
        pthread_cond_wait(&catalogue.changed, &catalogue.mutex);
    catalogue.count--;
    pthread_cond_signal(&catalogue.writers);
    pthread_mutex_unlock(&catalogue.mutex);
    NOT_LAST();
}

static void *produce(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        add_item();
        sleep_ms(i % 2 ? 0 : 6);
    }
    return unused;
}

static void *consume(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        next_item();
        sleep_ms(i % 2 ? 8 : 0);
    }
    return unused;
}

static NOINLINE void meet(void)
{
    pthread_mutex_lock(&catalogue.mutex);
    int turn = catalogue.turn;
    if (++catalogue.count == 2) {
        catalogue.count = 0;
        catalogue.turn++;
        pthread_cond_broadcast(&catalogue.changed);
    }
    while (turn == catalogue.turn)
        pthread_cond_wait(&catalogue.changed, &catalogue.mutex);
    pthread_mutex_unlock(&catalogue.mutex);
    NOT_LAST();
}

static void *meets(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        sleep_ms((i + (int)(long)number) % 2 ? 6 : 1);
        meet();
    }
    return NULL;
}

static int added;

static NOINLINE void add_work(void)
{
    pthread_mutex_lock(&catalogue.mutex);
    if (added < 4 * ROUNDS) {
        added++;
        catalogue.count++;
        pthread_cond_signal(&catalogue.changed);
    }
    pthread_mutex_unlock(&catalogue.mutex);
    NOT_LAST();
}

static NOINLINE void compute(void)
{
    sleep_ms(3);
    add_work();
    NOT_LAST();
}

static NOINLINE int next(void)
{
    pthread_mutex_lock(&catalogue.mutex);
    while (catalogue.count == 0 && added < 4 * ROUNDS)
        pthread_cond_wait(&catalogue.changed, &catalogue.mutex);
    int is_there = catalogue.count > 0;
    catalogue.count -= is_there;
    if (added == 4 * ROUNDS)
        pthread_cond_broadcast(&catalogue.changed);
    pthread_mutex_unlock(&catalogue.mutex);
    NOT_LAST();
    return is_there;
}

static void *works(void *unused)
{
    while (next())
        compute();
    return unused;
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    char *how = arguments[1];
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) {
        if (strcmp(how, "queue") == 0)
            threads[i] = start(i < 2 ? produce : consume, NULL);
        else if (strcmp(how, "meet") == 0)
            threads[i] = start(meets, (void *)i);
        else if (strcmp(how, "tasks") == 0) {
            if (i < 2)
                add_work();
            threads[i] = start(works, NULL);
        } else
            threads[i] = start(i < 2 ? rebuilds : looks_up, how);
        if (strcmp(how, "meet") == 0 && i == 1)
            break;
    }
    for (int i = 0; i < (strcmp(how, "meet") == 0 ? 2 : 4); i++)
        join(threads[i]);
    return 0;
}
