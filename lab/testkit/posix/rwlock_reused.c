/* A read-write lock that is initialised anew, or whose memory is mapped anew, while a thread has it locked for reading; that
 * thread may have ended. POSIX leaves that undefined, glibc lets it pass: the next lock there knows nothing of that reader. */
#include "check.h"

enum { READS = 20000, ENDED = 40, EACH = 8 };
static pthread_rwlock_t *lock;
static pthread_rwlock_t others[ENDED][EACH];
static atomic_int held, ends;

static void reads(pthread_rwlock_t *one, int times)
{
    for (int i = 0; i < times; i++) {
        OK(pthread_rwlock_rdlock(one));
        OK(pthread_rwlock_unlock(one));
    }
}

static void *holds(void *arg)
{
    reads(lock, READS);
    OK(pthread_rwlock_rdlock(lock));
    atomic_store(&held, 1);
    await_flag(&ends, 1);
    return arg;
}

static void *writes(void *arg)
{
    OK(pthread_rwlock_wrlock(arg));
    OK(pthread_rwlock_unlock(arg));
    return NULL;
}

static void is_written(pthread_rwlock_t *one)
{
    struct thread writer;
    start(&writer, writes, one);
    join_soon(&writer, "a writer of a lock without readers");
}

enum { INITIALISED, ZEROED, DESTROYED, MAPPED, WAYS };

static void make_anew(int how)
{
    switch (how) {
    case INITIALISED: OK(pthread_rwlock_init(lock, NULL)); break;
    case ZEROED: memset(lock, 0, sizeof *lock); break;
    case DESTROYED:
        OK(pthread_rwlock_destroy(lock));
        OK(pthread_rwlock_init(lock, NULL));
        break;
    default:
        CHECK(munmap(lock, 4096) == 0);
        CHECK(mmap(lock, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == lock);
        OK(pthread_rwlock_init(lock, NULL));
    }
}

/* Another thread has it locked, and stays. */
static void of_another(int how)
{
    struct thread holder;
    atomic_store(&held, 0), atomic_store(&ends, 0);
    start(&holder, holds, NULL);
    await_flag(&held, 1);
    make_anew(how);
    for (int i = 0; i < 3; i++) {
        reads(lock, READS);
        is_written(lock);
    }
    atomic_store(&ends, 1);
    join(&holder);
}

/* This thread has it locked, and reads the next one, before that is read-mostly and afterwards. */
static void of_this(int how)
{
    for (int n = 1; n <= READS; n *= 50) {
        reads(lock, READS);
        OK(pthread_rwlock_rdlock(lock));
        make_anew(how);
        reads(lock, n);
        is_written(lock);
        reads(lock, n);
        is_written(lock);
    }
}

static void *ends_inside(void *arg)
{
    pthread_rwlock_t *mine = arg;
    bind_to((int)(mine - &others[0][0]) / EACH % 2);
    for (int i = 0; i < EACH; i++) {
        reads(&mine[i], 3000);
        OK(pthread_rwlock_rdlock(&mine[i]));
    }
    return NULL;
}

/* More such holds than there is room for where readers of a CPU note their locks. */
static void of_ended_threads(void)
{
    struct thread thread;
    for (int i = 0; i < ENDED; i++) {
        start(&thread, ends_inside, others[i]);
        join(&thread);
    }
    for (int i = 0; i < ENDED; i++) {
        for (int j = 0; j < EACH; j++) {
            CALL(pthread_rwlock_trywrlock(&others[i][j]), EBUSY); /* it is held for good */
            OK(pthread_rwlock_init(&others[i][j], NULL));
            reads(&others[i][j], 3000);
            is_written(&others[i][j]);
        }
    }
}

static void *stays(void *arg)
{
    await_flag(&ends, 2);
    return arg;
}

int main(void)
{
    struct thread other; /* so that there is more than one thread all the time */
    start(&other, stays, NULL);
    lock = map(4096, MAP_PRIVATE);
    OK(pthread_rwlock_init(lock, NULL));
    for (int how = 0; how < WAYS; how++) {
        check_context = "another thread's";
        of_another(how);
        check_context = "this thread's";
        of_this(how);
    }
    check_context = "ended threads'";
    of_ended_threads();
    of_ended_threads();
    atomic_store(&ends, 2);
    join(&other);
    return 0;
}
