/* A library to preload whose `dlsym` calls glibc's for its callers, from its own code: tools that capture calls of graphics
 * libraries do that. `RTLD_NEXT` then means the libraries behind this one, whichever library asks. */
#include <dlfcn.h>

typedef void *lookup(void *, const char *);

int wrapped_calls;

void *dlsym(void *handle, const char *name)
{
    static lookup *volatile next;
    if (!next)
        next = (lookup *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    void *found = next(handle, name);
    wrapped_calls++; /* behind the call, so that it is no jump, with which glibc would see the caller */
    return found;
}
