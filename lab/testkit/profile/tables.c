/* Registers unwind tables, as just-in-time compilers do, and unwinds in many threads: then the unwinder of GCC 12 and before
   takes a mutex each time, and a watcher of that must not unwind meanwhile. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

extern void __register_frame(void *);

/* One common entry, one for a function at an address where nothing is, and the end. */
static _Alignas(8) unsigned char tables[64];

static void make_tables(void) {
    static const unsigned char common[16] = {12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8};
    memcpy(tables, common, sizeof common);
    uint32_t length = 20, back = 20;
    uint64_t start = 0x1000, size = 16;
    memcpy(tables + 16, &length, 4);
    memcpy(tables + 20, &back, 4);
    memcpy(tables + 24, &start, 8);
    memcpy(tables + 32, &size, 8);
}

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *frames) {
    (void)context;
    ++*(long *)frames;
    return _URC_NO_REASON;
}

static void *unwind(void *argument) {
    long frames = 0;
    for (int i = 0; i < 3000; i++) _Unwind_Backtrace(count, &frames);
    *(long *)argument = frames;
    return NULL;
}

int main(void) {
    make_tables();
    __register_frame(tables);
    pthread_t threads[8];
    long frames[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, unwind, &frames[i]);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    puts(frames[0] > 3000 ? "ok" : "too few frames");
    return 0;
}
