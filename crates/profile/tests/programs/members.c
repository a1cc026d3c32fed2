/* Prints the addresses of locks inside of variables, and its maps. Also C++. */
#include <pthread.h>
#include <stdio.h>

struct counters {
    long events;
    pthread_mutex_t io;
};
static struct {
    char name[16];
    struct counters counters;
    union {
        long word;
        pthread_mutex_t either;
    };
} audit;
struct row {
    int key;
    struct {
        pthread_mutex_t lock;
        int cells[2];
    } parts[2];
};
struct row table[4];
static pthread_rwlock_t grid[2][3];
static pthread_mutex_t plain;

#ifdef __cplusplus
namespace shop {
class Base {
public:
    long number = 0;
    pthread_mutex_t base_lock;
};
class Spare {
public:
    virtual ~Spare() {}
    long number = 0;
};
class Mutex {
    pthread_mutex_t word_;
};
class Store : public Spare, public Base {
public:
    static int count;
    Mutex mutex_;
    char rest[3];
    pthread_mutex_t last;
};
static Store store;
}
#endif

static void print(void *lock) { printf("lock %lx\n", (unsigned long)lock); }

int main(void)
{
    static struct counters inner;
    print(&audit.counters.io);
    print(&audit.either);
    print(&table[3].parts[1].lock);
    print(&grid[1][2]);
    print(&plain);
    print(&inner.io);
#ifdef __cplusplus
    print(&shop::store.base_lock);
    print(&shop::store.mutex_);
    print(&shop::store.last);
#endif
    FILE *maps = fopen("/proc/self/maps", "r");
    int character;
    while ((character = fgetc(maps)) != EOF) putchar(character);
    fclose(maps);
    return 0;
}
