/* The objects are as large as the headers say, work at any alignment that the types promise (here: 8 modulo 16, and
 * across a cache line), and no call writes outside of them. */
#include "check.h"
#include <stddef.h>
#include <threads.h>

enum { GUARD = 64 };
static unsigned char *arena;

static void *contend_mutex(void *m)
{
    for (int i = 0; i < 200; i++) {
        OK(pthread_mutex_lock(m));
        if (i % 16 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(m));
    }
    return NULL;
}

static void *contend_rwlock(void *l)
{
    for (int i = 0; i < 200; i++) {
        OK(i % 4 ? pthread_rwlock_rdlock(l) : pthread_rwlock_wrlock(l));
        if (i % 16 == 0)
            sched_yield();
        OK(pthread_rwlock_unlock(l));
    }
    return NULL;
}

static pthread_mutex_t beside = PTHREAD_MUTEX_INITIALIZER;
static int turn;
static void *contend_cond(void *c)
{
    OK(pthread_mutex_lock(&beside));
    int me = turn++;
    for (int i = 0; i < 50; i++) {
        struct timespec soon = in_us(CLOCK_REALTIME, 50);
        int error = i % 4 ? pthread_cond_timedwait(c, &beside, &soon) : 0;
        CHECK(error == 0 || error == ETIMEDOUT);
        OK((i + me) % 2 ? pthread_cond_signal(c) : pthread_cond_broadcast(c));
    }
    OK(pthread_mutex_unlock(&beside));
    return NULL;
}

static void run(void *(*body)(void *), void *object)
{
    struct thread threads[3];
    for (int i = 0; i < 3; i++)
        start(&threads[i], body, object);
    for (int i = 0; i < 3; i++)
        join_soon(&threads[i], "a thread");
}

static void guards_intact(const unsigned char *object, size_t size)
{
    for (size_t i = 1; i <= GUARD; i++)
        if (object[-(ptrdiff_t)i] != 0xee || object[size + i - 1] != 0xee)
            FAIL("a byte %zu beside the object was written", i);
}

int main(void)
{
#if defined __x86_64__
    _Static_assert(sizeof(pthread_mutex_t) == 40 && sizeof(pthread_rwlock_t) == 56 && sizeof(pthread_cond_t) == 48, "");
#endif
    _Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t), "");
    arena = map(8192, MAP_PRIVATE);
    for (size_t offset = 0; offset < 64; offset += _Alignof(pthread_mutex_t)) {
        unsigned char *object = arena + 128 + offset;
        memset(arena, 0xee, 1024);
        for (size_t k = 0; k < 4; k++) {
            mutex_make((pthread_mutex_t *)object, &MUTEX_KINDS[k]);
            run(contend_mutex, object);
            OK(pthread_mutex_destroy((pthread_mutex_t *)object));
            guards_intact(object, sizeof(pthread_mutex_t));
        }
        memset(arena, 0xee, 1024);
        OK(pthread_rwlock_init((pthread_rwlock_t *)object, NULL));
        run(contend_rwlock, object);
        OK(pthread_rwlock_destroy((pthread_rwlock_t *)object));
        guards_intact(object, sizeof(pthread_rwlock_t));

        memset(arena, 0xee, 1024);
        OK(pthread_cond_init((pthread_cond_t *)object, NULL));
        turn = 0;
        run(contend_cond, object);
        OK(pthread_cond_destroy((pthread_cond_t *)object));
        guards_intact(object, sizeof(pthread_cond_t));
    }
    return 0;
}
