// Goroutines that call C functions with pthread locks, while the runtime preempts threads by signals and collects garbage.
package main

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long count, items, taken, written;
static void add(void) { pthread_mutex_lock(&mutex); count++; items++; pthread_cond_signal(&cond); pthread_mutex_unlock(&mutex); }
static void take(void) {
    pthread_mutex_lock(&mutex);
    while (!items) pthread_cond_wait(&cond, &mutex);
    items--; taken++;
    pthread_mutex_unlock(&mutex);
}
static long look(int write) {
    if (write) { pthread_rwlock_wrlock(&rwlock); written++; } else pthread_rwlock_rdlock(&rwlock);
    long now = written;
    pthread_rwlock_unlock(&rwlock);
    return now;
}
static long counted(void) { return count * 1000000 + taken * 1000 + written; }
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
)

func main() {
	var wait sync.WaitGroup
	for g := 0; g < 16; g++ {
		wait.Add(1)
		go func(g int) {
			defer wait.Done()
			kept := [][]byte{}
			for i := 0; i < 3000; i++ {
				kept = append(kept, make([]byte, i%500))
				if g%2 == 0 {
					C.add()
				} else {
					C.take()
				}
				C.look(C.int(b2i(i%100 == 0)))
				if i%1000 == 0 {
					runtime.GC()
				}
			}
		}(g)
	}
	wait.Wait()
	fmt.Println(int64(C.counted()))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
