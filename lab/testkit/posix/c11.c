/* C11 threads.h: mtx_ of every type and cnd_, with their own result codes; TIME_UTC deadlines; and call_once
 * and thrd_create. */
#include "check.h"
#include <threads.h>

static mtx_t mtx;
static cnd_t cnd;
static int counter, tickets, waiting;

struct other {
    int how, result;
};
static int other_main11(void *arg)
{
    struct other *call = arg;
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    call->result = call->how == 0 ? mtx_trylock(&mtx) : mtx_timedlock(&mtx, &soon);
    if (call->result == thrd_success)
        CALL(mtx_unlock(&mtx), thrd_success);
    else if (call->how == 1)
        CHECK(has_come(CLOCK_REALTIME, soon));
    return 0;
}
static int other11(int how)
{
    struct other call = {how, -1};
    thrd_t thread;
    CHECK(thrd_create(&thread, other_main11, &call) == thrd_success);
    CHECK(thrd_join(thread, NULL) == thrd_success);
    return call.result;
}

static int count(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10000; i++) {
        CALL(mtx_lock(&mtx), thrd_success);
        counter++;
        CALL(mtx_unlock(&mtx), thrd_success);
    }
    return 7;
}

static int take(void *arg)
{
    (void)arg;
    CALL(mtx_lock(&mtx), thrd_success);
    waiting++;
    while (tickets == 0)
        CALL(cnd_wait(&cnd, &mtx), thrd_success);
    tickets--;
    CALL(mtx_unlock(&mtx), thrd_success);
    return 0;
}

static void conditions(void)
{
    thrd_t threads[4];
    CALL(cnd_init(&cnd), thrd_success);
    CALL(cnd_signal(&cnd), thrd_success);
    CALL(cnd_broadcast(&cnd), thrd_success);
    for (int all = 0; all < 2; all++) {
        tickets = waiting = 0;
        for (int i = 0; i < 4; i++)
            CHECK(thrd_create(&threads[i], take, NULL) == thrd_success);
        for (int now = 0; now < 4; thrd_yield()) {
            CALL(mtx_lock(&mtx), thrd_success);
            now = waiting;
            CALL(mtx_unlock(&mtx), thrd_success);
        }
        for (int i = 0; i < (all ? 1 : 4); i++) {
            CALL(mtx_lock(&mtx), thrd_success);
            tickets += all ? 4 : 1;
            CALL(all ? cnd_broadcast(&cnd) : cnd_signal(&cnd), thrd_success);
            CALL(mtx_unlock(&mtx), thrd_success);
        }
        for (int i = 0; i < 4; i++)
            CHECK(thrd_join(threads[i], NULL) == thrd_success);
        CHECK(tickets == 0);
    }
    CALL(mtx_lock(&mtx), thrd_success);
    const struct timespec past[] = {{0, 0}, {-1, 0}, in_ms(CLOCK_REALTIME, -5)};
    for (size_t i = 0; i < COUNT(past); i++)
        CALL(cnd_timedwait(&cnd, &mtx, &past[i]), thrd_timedout);
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    int result;
    while ((result = cnd_timedwait(&cnd, &mtx, &soon)) == thrd_success)
        ;
    CHECK(result == thrd_timedout && has_come(CLOCK_REALTIME, soon));
    CALL(cnd_timedwait(&cnd, &mtx, &((struct timespec){0, -1})), thrd_error);
    CALL(other11(0), thrd_busy);
    CALL(mtx_unlock(&mtx), thrd_success);
    errno = ERRNO_MARK;
    cnd_destroy(&cnd);
    CHECK(errno == ERRNO_MARK);
}

int main(void)
{
    const int types[] = {mtx_plain, mtx_timed, mtx_plain | mtx_recursive, mtx_timed | mtx_recursive};
    for (size_t i = 0; i < COUNT(types); i++) {
        check_context = (const char *[]){"plain", "timed", "recursive", "timed recursive"}[i];
        memset(&mtx, 0xa5, sizeof mtx);
        CALL(mtx_init(&mtx, types[i]), thrd_success);
        CALL(mtx_lock(&mtx), thrd_success);
        CALL(other11(0), thrd_busy);
        CALL(other11(1), thrd_timedout);
        if (types[i] & mtx_recursive) {
            CALL(mtx_lock(&mtx), thrd_success);
            CALL(mtx_trylock(&mtx), thrd_success);
            CALL(mtx_timedlock(&mtx, &((struct timespec){0, 0})), thrd_success);
            for (int n = 0; n < 3; n++)
                CALL(mtx_unlock(&mtx), thrd_success);
        } else {
            CALL(mtx_trylock(&mtx), thrd_busy);
            CALL(mtx_timedlock(&mtx, &((struct timespec){0, 0})), thrd_timedout);
            CALL(mtx_timedlock(&mtx, &((struct timespec){0, -1})), thrd_error);
        }
        CALL(other11(0), thrd_busy);
        CALL(mtx_unlock(&mtx), thrd_success);
        CALL(other11(0), thrd_success);
        CALL(other11(1), thrd_success);
        if (types[i] & mtx_recursive)
            CALL(mtx_unlock(&mtx), thrd_error);

        counter = 0;
        thrd_t threads[3];
        for (int t = 0; t < 3; t++)
            CHECK(thrd_create(&threads[t], count, NULL) == thrd_success);
        for (int t = 0; t < 3; t++) {
            int seven;
            CHECK(thrd_join(threads[t], &seven) == thrd_success && seven == 7);
        }
        CHECK(counter == 30000);
        conditions();
        errno = ERRNO_MARK;
        mtx_destroy(&mtx);
        CHECK(errno == ERRNO_MARK);
    }
    return 0;
}
