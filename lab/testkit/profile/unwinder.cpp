// An allocator with a mutex, an exception, and unwind tables that the program has registered: then the unwinder of GCC 12 and
// before allocates with its own mutex held, and the allocator's is another thread's.
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

extern "C" {
void __register_frame(void *);
void *__libc_malloc(size_t);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile bool is_locked, is_held;

// But not for the exception itself, and what belongs to it.
extern "C" void *malloc(size_t bytes)
{
    bool locks = is_locked && (bytes < 130 || bytes > 150);
    if (locks)
        pthread_mutex_lock(&mutex);
    void *memory = __libc_malloc(bytes);
    if (locks)
        pthread_mutex_unlock(&mutex);
    return memory;
}

static void *holds(void *)
{
    pthread_mutex_lock(&mutex);
    is_held = true;
    usleep(100000);
    pthread_mutex_unlock(&mutex);
    return nullptr;
}

static int find_tables(dl_phdr_info *info, size_t, void *found)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            char *header = (char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            *(char **)found = header + 4 + *(int *)(header + 4);
        }
    }
    return 1; // the program itself comes first
}

int main()
{
    char *tables = nullptr;
    dl_iterate_phdr(find_tables, &tables);
    alarm(60);
    pthread_t thread;
    pthread_create(&thread, nullptr, holds, nullptr);
    while (!is_held)
        usleep(1000);
    __register_frame(tables);
    is_locked = true;
    try {
        throw 1;
    } catch (int) {
        puts("caught");
    }
    is_locked = false;
    pthread_join(thread, nullptr);
}
