/* Condition variables by the functions of glibc's oldest version, to which symbols without a version are bound: alone, and mixed with
 * those of today where that is said. */
#include "check.h"

#ifdef __x86_64__
#define OLD(name) __asm__(".symver old_" #name ", pthread_cond_" #name "@GLIBC_2.2.5")
#else
#define OLD(name) __asm__(".symver old_" #name ", pthread_cond_" #name "@GLIBC_2.17")
#endif
int old_init(pthread_cond_t *, const pthread_condattr_t *);
int old_wait(pthread_cond_t *, pthread_mutex_t *);
int old_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int old_signal(pthread_cond_t *);
int old_broadcast(pthread_cond_t *);
int old_destroy(pthread_cond_t *);
OLD(init);
OLD(wait);
OLD(timedwait);
OLD(signal);
OLD(broadcast);
OLD(destroy);

enum { WAITERS = 4, ROUNDS = 200 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, answered;
static int tasks, done;

static void *works(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_mutex_lock(&mutex));
        while (tasks == 0) {
            struct timespec limit = in_ms(CLOCK_REALTIME, LONG_MS);
            OK(i % 2 ? old_wait(&work, &mutex) : old_timedwait(&work, &mutex, &limit));
        }
        tasks--;
        if (++done % WAITERS == 0)
            OK(old_signal(&answered));
        OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

int main(void)
{
    struct thread threads[WAITERS];
    OK(old_init(&answered, NULL));
    for (int i = 0; i < WAITERS; i++)
        start(&threads[i], works, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_mutex_lock(&mutex));
        tasks += WAITERS;
        if (i % 2)
            OK(old_broadcast(&work));
        for (int n = 0; i % 2 == 0 && n < WAITERS; n++)
            OK(old_signal(&work));
        sleep_us(10); /* a signalled waiter wants the mutex */
        while (done < WAITERS * (i + 1))
            OK(old_wait(&answered, &mutex));
        OK(pthread_mutex_unlock(&mutex));
    }
    for (int i = 0; i < WAITERS; i++)
        join(&threads[i]);
    OK(pthread_mutex_lock(&mutex));
    struct timespec past = in_ms(CLOCK_REALTIME, -1);
    CALL(old_timedwait(&work, &mutex, &past), ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
    OK(old_destroy(&work));
    OK(old_destroy(&answered));
    return 0;
}
