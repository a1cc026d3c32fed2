/* Locks whose holders a waiting thread cannot see, and threads that wait without blocking. The first argument
 * says which; LENGTH is in s.
 *
 * mutex, rwlock  a lock that two processes share; the child has it for 20 of 21 ms
 * unrecorded     a thread takes the lock by glibc's own functions, which are not recorded
 * parent         a child is forked while another thread has the lock, and waits for it
 * ended          a thread ends with the lock, and three others wait for it
 * itself         a thread locks a mutex twice
 * poll, spin     two threads try for a lock that a third one has most of the time, and sleep or yield between
 * yields         two threads wait for work in a loop of sched_yield
 * stuck          two threads wait for semaphores that are never posted
 * leaver         main ends by pthread_exit before the other threads
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LENGTH 0.9

struct both { pthread_mutex_t mutex; pthread_rwlock_t rwlock; };
static struct both *shared;
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t slots;
static int (*lock)(pthread_mutex_t *) = pthread_mutex_lock;
static int (*unlock)(pthread_mutex_t *) = pthread_mutex_unlock;
static const char *how;
static double end;
static atomic_int is_held, work;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int is(const char *name) { return !strcmp(how, name); }

/* No functions: their callers are what reports name. */
#define OWN (shared ? &shared->mutex : &device_lock)
#define TAKE() (void)(is("rwlock") ? pthread_rwlock_wrlock(&shared->rwlock) : lock(OWN))
#define GIVE() (void)(is("rwlock") ? pthread_rwlock_unlock(&shared->rwlock) : unlock(OWN))

static __attribute__((noinline)) void *import_corpus(void *argument) {
    while (now() < end) {
        TAKE();
        usleep(20000);
        GIVE();
        usleep(1000);
    }
    return argument;
}

static __attribute__((noinline)) void *serve_update(void *argument) {
    while (now() < end) {
        if (is("rwlock")) pthread_rwlock_rdlock(&shared->rwlock), pthread_rwlock_unlock(&shared->rwlock);
        else {
            pthread_mutex_lock(OWN);
            pthread_mutex_unlock(OWN);
        }
        usleep(2000);
    }
    return argument;
}

static void share(void) {
    pthread_mutexattr_t of_mutex;
    pthread_rwlockattr_t of_rwlock;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) abort();
    pthread_mutexattr_init(&of_mutex);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &of_mutex);
    pthread_rwlockattr_init(&of_rwlock);
    pthread_rwlockattr_setpshared(&of_rwlock, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(&shared->rwlock, &of_rwlock);
    if (!fork()) {
        import_corpus(NULL);
        _exit(0);
    }
    usleep(5000);
    serve_update(NULL);
    wait(NULL);
}

static __attribute__((noinline)) void *read_frame(void *argument) {
    pthread_mutex_lock(&device_lock);
    is_held = 1;
    if (!is("ended")) usleep(300000);
    if (is("ended")) return argument;
    pthread_mutex_unlock(&device_lock);
    return argument;
}

static __attribute__((noinline)) void *console_write(void *argument) {
    pthread_mutex_lock(&device_lock);
    pthread_mutex_unlock(&device_lock);
    return argument;
}

static __attribute__((noinline)) void deliver_frame(void) {
    while (pthread_mutex_trylock(&device_lock)) {
        if (is("poll")) usleep(200);
        else sched_yield();
    }
    pthread_mutex_unlock(&device_lock);
}

static void *sender(void *argument) {
    while (now() < end) {
        deliver_frame();
        usleep(300);
    }
    return argument;
}

static __attribute__((noinline)) void *blas_server(void *argument) {
    while (!work) sched_yield();
    return argument;
}

static __attribute__((noinline)) void *await_slot(void *argument) {
    while (sem_wait(&slots)) {}
    return argument;
}

static __attribute__((noinline)) void *post_entry(void *argument) {
    while (now() < end) {
        double until = now() + 500e-6;
        pthread_mutex_lock(&device_lock);
        while (now() < until) {}
        pthread_mutex_unlock(&device_lock);
    }
    return argument;
}

static void threads(pthread_t *all, int number, void *(*body)(void *)) {
    for (int i = 0; i < number; i++)
        if (pthread_create(&all[i], NULL, body, NULL)) abort();
}

static void join(pthread_t *all, int number) {
    for (int i = 0; i < number; i++) pthread_join(all[i], NULL);
}

int main(int count, char **arguments) {
    pthread_t one, all[3];
    how = count > 1 ? arguments[1] : "";
    end = now() + LENGTH;
    if (is("mutex") || is("rwlock")) share();
    if (is("unrecorded")) {
        void *library = dlopen("libc.so.6", RTLD_NOW);
        lock = (int (*)(pthread_mutex_t *))dlsym(library, "pthread_mutex_lock");
        unlock = (int (*)(pthread_mutex_t *))dlsym(library, "pthread_mutex_unlock");
        if (!lock || !unlock) abort();
        threads(&one, 1, import_corpus);
        threads(all, 1, serve_update);
        join(&one, 1);
        join(all, 1);
    }
    if (is("parent")) {
        threads(&one, 1, read_frame);
        while (!is_held) usleep(1000);
        pid_t child = fork();
        if (!child) {
            /* It would wait for ever, and hold the pipes of its reader open. */
            alarm(3);
            console_write(NULL);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    if (is("ended")) {
        threads(&one, 1, read_frame);
        join(&one, 1);
        threads(all, 3, console_write);
        join(all, 3);
    }
    if (is("itself")) {
        pthread_mutex_lock(&device_lock);
        console_write(NULL);
    }
    if (is("poll") || is("spin")) {
        threads(&one, 1, import_corpus);
        threads(all, 2, sender);
        join(&one, 1);
        join(all, 2);
    }
    if (is("yields")) {
        threads(all, 2, blas_server);
        usleep(1000000 * LENGTH);
        work = 1;
        join(all, 2);
    }
    if (is("stuck")) {
        sem_init(&slots, 0, 0);
        threads(all, 2, await_slot);
        join(all, 2);
    }
    if (is("leaver")) {
        threads(all, 3, post_entry);
        pthread_exit(NULL);
    }
    return 0;
}
