/* Uses library.c: linked with it, or, given its path, as a plugin. */
#include "corpus.h"
#include <dlfcn.h>

enum { ROUNDS = 8 };

typedef void (*function)(int);

static function launch, copy;

static NOINLINE void *copier(void *none)
{
    for (int round = 1; round <= ROUNDS; round++)
        copy(round);
    return none;
}

static NOINLINE void launcher(void)
{
    for (int round = 1; round <= ROUNDS; round++)
        launch(round);
}

int main(int count, char **arguments)
{
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : RTLD_DEFAULT;
    CHECK(library != NULL || count <= 1);
    launch = (function)dlsym(library, "vendor_launch");
    copy = (function)dlsym(library, "vendor_copy");
    CHECK(launch && copy);
    pthread_t thread = start(copier, NULL);
    launcher();
    join(thread);
    return 0;
}
