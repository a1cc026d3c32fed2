/* Loads the plugins that it is given one after the other, and unloads each before the next: all get the same addresses. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

int main(int count, char **plugins)
{
    for (int plugin = 1; plugin < count; plugin++) {
        void *library = dlopen(plugins[plugin], RTLD_NOW);
        if (!library) {
            puts(dlerror());
            return 1;
        }
        void *(*run)(void *) = (void *(*)(void *))dlsym(library, "plugin_run");
        printf("%p\n", (void *)run);
        pthread_t threads[2];
        for (int thread = 0; thread < 2; thread++)
            pthread_create(&threads[thread], NULL, run, NULL);
        for (int thread = 0; thread < 2; thread++)
            pthread_join(threads[thread], NULL);
        dlclose(library);
    }
    return 0;
}
