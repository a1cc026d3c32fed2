/* GLib's locks and what else its threads wait for. */
#include "rounds.h"
#include <glib.h>

static GMutex mutex;

OF_ITS_OWN static void mutex_waits(int round)
{
    (void)round;
    g_mutex_lock(&mutex);
    g_mutex_unlock(&mutex);
    STAYS;
}

OF_ITS_OWN static void mutex_lets_go(int round)
{
    (void)round;
    g_mutex_lock(&mutex);
    let_come();
    g_mutex_unlock(&mutex);
    STAYS;
}

static gint bits;

OF_ITS_OWN static void bit_lock_waits(int round)
{
    (void)round;
    g_bit_lock(&bits, 3);
    g_bit_unlock(&bits, 3);
    STAYS;
}

OF_ITS_OWN static void bit_lock_lets_go(int round)
{
    (void)round;
    g_bit_lock(&bits, 3);
    let_come();
    g_bit_unlock(&bits, 3);
    STAYS;
}

static GCond changed;
static int seen;

OF_ITS_OWN static void cond_waits(int round)
{
    g_mutex_lock(&mutex);
    while (seen == round)
        g_cond_wait(&changed, &mutex);
    g_mutex_unlock(&mutex);
    STAYS;
}

OF_ITS_OWN static void cond_lets_go(int round)
{
    let_come();
    g_mutex_lock(&mutex);
    seen = round + 1;
    g_mutex_unlock(&mutex);
    g_cond_signal(&changed);
    STAYS;
}

OF_ITS_OWN static void timed_cond_waits(int round)
{
    g_mutex_lock(&mutex);
    gint64 end = g_get_monotonic_time() + 60 * G_TIME_SPAN_SECOND;
    while (seen == round)
        if (!g_cond_wait_until(&changed, &mutex, end))
            abort();
    g_mutex_unlock(&mutex);
    STAYS;
}

OF_ITS_OWN static void timed_cond_lets_go(int round)
{
    let_come();
    g_mutex_lock(&mutex);
    seen = round + 1;
    g_mutex_unlock(&mutex);
    g_cond_broadcast(&changed);
    STAYS;
}

static GAsyncQueue *queue;

OF_ITS_OWN static void queue_waits(int round)
{
    (void)round;
    g_async_queue_pop(queue);
    STAYS;
}

OF_ITS_OWN static void queue_lets_go(int round)
{
    (void)round;
    let_come();
    g_async_queue_push(queue, &queue);
    STAYS;
}

static GThread *thread;
static int may_end;

static void *ends(void *round)
{
    until(&may_end, GPOINTER_TO_INT(round) + 1);
    return NULL;
}

OF_ITS_OWN static void join_waits(int round)
{
    (void)round;
    g_thread_join(thread);
    STAYS;
}

OF_ITS_OWN static void join_lets_go(int round)
{
    thread = g_thread_new("ends", ends, GINT_TO_POINTER(round));
    let_come();
    SET(may_end, round + 1);
}

int main(int argc, char **argv)
{
    static const struct scene scenes[] = {
        SCENE(mutex), SCENE(bit_lock), SCENE(cond), SCENE(timed_cond), SCENE(queue), SCENE(join),
    };
    queue = g_async_queue_new();
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof scenes[0]);
}
