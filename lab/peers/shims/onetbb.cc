// tbb::mutex and tbb::rw_mutex. oneTBB has no condition variable.
// pkg-config: tbb
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/rw_mutex.h>

#include <new>

extern "C" {

extern const unsigned long PEER(mutex_size) = sizeof(tbb::mutex);
void PEER(mutex_init)(void *at) { new (at) tbb::mutex(); }
void PEER(mutex_destroy)(void *at) { static_cast<tbb::mutex *>(at)->~mutex(); }
void PEER(lock)(void *at) { static_cast<tbb::mutex *>(at)->lock(); }
void PEER(unlock)(void *at) { static_cast<tbb::mutex *>(at)->unlock(); }

extern const unsigned long PEER(rwlock_size) = sizeof(tbb::rw_mutex);
void PEER(rwlock_init)(void *at) { new (at) tbb::rw_mutex(); }
void PEER(rwlock_destroy)(void *at) { static_cast<tbb::rw_mutex *>(at)->~rw_mutex(); }
void PEER(read)(void *at) { static_cast<tbb::rw_mutex *>(at)->lock_shared(); }
void PEER(read_unlock)(void *at) { static_cast<tbb::rw_mutex *>(at)->unlock_shared(); }
void PEER(write)(void *at) { static_cast<tbb::rw_mutex *>(at)->lock(); }
void PEER(write_unlock)(void *at) { static_cast<tbb::rw_mutex *>(at)->unlock(); }
}
