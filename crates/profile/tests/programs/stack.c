/* Prints a stack of its own, addresses of variables, and its maps. Also C++. */
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>

pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t shards[4];

#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))

NOINLINE void dump(void)
{
    void *frames[8];
    int depth = backtrace(frames, 8);
    for (int i = 0; i < depth; i++)
        printf("frame %lx\n", (unsigned long)frames[i]);
    printf("lock %lx\nlock %lx\n", (unsigned long)&cache_lock, (unsigned long)&shards[1]);
    FILE *maps = fopen("/proc/self/maps", "r");
    int character;
    while ((character = fgetc(maps)) != EOF)
        putchar(character);
    fclose(maps);
}

#ifdef __cplusplus
#define ARGUMENT int
namespace store {
template <class T> struct Cache {
    NOINLINE void update(T number);
};
#define STORE_UPDATE template <class T> NOINLINE void Cache<T>::update(T number)
#else
#define ARGUMENT void
#define STORE_UPDATE NOINLINE void store_update(int number)
#endif

INLINE void locked(void) { dump(); /* line of locked */ }

STORE_UPDATE
{
    locked(); /* line of store_update */
    __asm__ volatile("" ::"r"(number));
}

#ifdef __cplusplus
}
NOINLINE void call(void) { store::Cache<int>().update(1); __asm__ volatile(""); }
#else
NOINLINE void call(void) { store_update(1); __asm__ volatile(""); }
#endif

int main(void)
{
    call();
    __asm__ volatile("");
    return 0;
}
