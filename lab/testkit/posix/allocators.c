/* Threads that allocate and free each other's memory, and fork while they do: children allocate, lock, start threads and
 * wait. Allocators call lock functions before anything else in a process, and in fork handlers.
 *
 * With the argument `no-threads-in-children`, children start no thread: heaptrack does not hold its own lock over fork, so
 * that a second thread of a child waits for ever for a lock whose owner the child does not have. It does so on glibc too. */
#include "check.h"

enum { THREADS = 4, ROUNDS = 400, SLOTS = 16, FORK_EVERY = 40 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned char *slots[SLOTS];
static int filled;
static int children_start_threads = 1;

static size_t size_of(int n) { return 1 + (size_t)n * 7919 % (n % 50 ? 3000 : 300000); }

static unsigned char *fill(int n)
{
    unsigned char *block = malloc(size_of(n));
    CHECK(block);
    memset(block, n & 0xff, size_of(n));
    return block;
}

/* Puts a block in, and takes the oldest out to free it once there are enough. */
static void exchange(int n)
{
    unsigned char *old = NULL;
    unsigned char *block = fill(n);
    OK(pthread_mutex_lock(&mutex));
    if (filled == SLOTS) {
        old = slots[0];
        memmove(slots, slots + 1, sizeof slots - sizeof slots[0]);
        filled--;
    }
    slots[filled++] = block;
    OK(pthread_cond_signal(&changed));
    OK(pthread_mutex_unlock(&mutex));
    free(old);
}

static void *in_child(void *argument)
{
    pthread_mutex_t *own = argument;
    for (int n = 0; n < 30; n++) {
        unsigned char *block = fill(n * 31);
        OK(pthread_mutex_lock(own));
        OK(pthread_mutex_unlock(own));
        free(block);
    }
    return NULL;
}

static void child(void)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    if (children_start_threads)
        CHECK(pthread_create(&thread, NULL, in_child, &own) == 0); /* an allocator may set errno */
    in_child(&own);
    if (children_start_threads)
        OK(pthread_join(thread, NULL));
    _exit(0);
}

static void *work(void *argument)
{
    int me = (int)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        exchange(me * ROUNDS + round);
        OK(pthread_rwlock_rdlock(&rwlock));
        free(fill(round));
        OK(pthread_rwlock_unlock(&rwlock));
        if (round % FORK_EVERY == me) {
            pid_t pid = fork();
            CHECK(pid >= 0);
            if (pid == 0)
                child();
            int status;
            CHECK(waitpid(pid, &status, 0) == pid);
            CHECK(status == 0);
        }
    }
    return NULL;
}

int main(int arguments, char **argument)
{
    pthread_t threads[THREADS];
    if (arguments > 1) {
        CHECK(strcmp(argument[1], "no-threads-in-children") == 0);
        children_start_threads = 0;
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    OK(pthread_mutex_lock(&mutex));
    while (filled == 0)
        OK(pthread_cond_wait(&changed, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < THREADS; i++)
        OK(pthread_join(threads[i], NULL));
    while (filled)
        free(slots[--filled]);
    puts("done");
    return 0;
}
