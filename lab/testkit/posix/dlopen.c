/* A library that is loaded and unloaded again and again uses locks in its constructor, its functions and its
 * destructor, and shares a lock with the program. argv[1] is the library. */
#include "check.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const int modes[] = {RTLD_NOW, RTLD_LAZY, RTLD_NOW | RTLD_GLOBAL};
    for (int i = 0; i < 60; i++) {
        void *plugin = dlopen(argv[1], modes[i % 3]);
        if (!plugin)
            FAIL("%s", dlerror());
        int (*run)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))dlsym(plugin, "plugin_run");
        CHECK(run);
        OK(pthread_mutex_lock(&mutex));
        CHECK(run(&mutex) == 1);
        OK(other_trylock(&mutex));
        CHECK(dlclose(plugin) == 0);
    }
    return 0;
}
