// tbb::mutex and tbb::rw_mutex with a C interface. oneTBB has no condition variable.
#include <new>

#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/rw_mutex.h>

extern "C" {

extern const unsigned long peer_onetbb_mutex_size = sizeof(tbb::mutex);
extern const unsigned long peer_onetbb_rwlock_size = sizeof(tbb::rw_mutex);

void peer_onetbb_mutex_init(void *at) { new (at) tbb::mutex(); }
void peer_onetbb_mutex_destroy(void *at) { static_cast<tbb::mutex *>(at)->~mutex(); }
void peer_onetbb_lock(void *at) { static_cast<tbb::mutex *>(at)->lock(); }
void peer_onetbb_unlock(void *at) { static_cast<tbb::mutex *>(at)->unlock(); }

void peer_onetbb_rwlock_init(void *at) { new (at) tbb::rw_mutex(); }
void peer_onetbb_rwlock_destroy(void *at) { static_cast<tbb::rw_mutex *>(at)->~rw_mutex(); }
void peer_onetbb_read(void *at) { static_cast<tbb::rw_mutex *>(at)->lock_shared(); }
void peer_onetbb_read_unlock(void *at) { static_cast<tbb::rw_mutex *>(at)->unlock_shared(); }
void peer_onetbb_write(void *at) { static_cast<tbb::rw_mutex *>(at)->lock(); }
void peer_onetbb_write_unlock(void *at) { static_cast<tbb::rw_mutex *>(at)->unlock(); }
}
