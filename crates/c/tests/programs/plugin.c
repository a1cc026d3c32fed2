/* Opens the library at run time, locks a mutex there in two threads, and closes it: it stays. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

typedef void call(void *);
static call *lock, *unlock;
static uint64_t mutex[2];
static long count;

static void *counts(void *argument) {
    for (int i = 0; i < 100000; i++) {
        lock(mutex);
        count++;
        unlock(mutex);
    }
    return argument;
}

int main(int argc, char **argv) {
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&lock = dlsym(library, "spinpark_mutex_lock");
    *(void **)&unlock = dlsym(library, "spinpark_mutex_unlock");
    for (int round = 0; round < 2; round++) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            if (pthread_create(&threads[i], NULL, counts, NULL) != 0)
                return 1;
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        if (round == 0)
            dlclose(library);
    }
    return count == 400000 ? 0 : 1;
}
