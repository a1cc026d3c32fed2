// absl::Mutex (a read-write lock as well) and absl::CondVar.
// pkg-config: absl_synchronization
#include "absl/synchronization/mutex.h"

#include <new>

extern "C" {

extern const unsigned long PEER(mutex_size) = sizeof(absl::Mutex);
void PEER(mutex_init)(void *at) { new (at) absl::Mutex(); }
void PEER(mutex_destroy)(void *at) { static_cast<absl::Mutex *>(at)->~Mutex(); }
void PEER(lock)(void *at) { static_cast<absl::Mutex *>(at)->Lock(); }
void PEER(unlock)(void *at) { static_cast<absl::Mutex *>(at)->Unlock(); }

extern const unsigned long PEER(rwlock_size) = sizeof(absl::Mutex);
void PEER(rwlock_init)(void *at) { new (at) absl::Mutex(); }
void PEER(rwlock_destroy)(void *at) { static_cast<absl::Mutex *>(at)->~Mutex(); }
void PEER(read)(void *at) { static_cast<absl::Mutex *>(at)->ReaderLock(); }
void PEER(read_unlock)(void *at) { static_cast<absl::Mutex *>(at)->ReaderUnlock(); }
void PEER(write)(void *at) { static_cast<absl::Mutex *>(at)->Lock(); }
void PEER(write_unlock)(void *at) { static_cast<absl::Mutex *>(at)->Unlock(); }

extern const unsigned long PEER(condvar_size) = sizeof(absl::CondVar);
void PEER(condvar_init)(void *at) { new (at) absl::CondVar(); }
void PEER(condvar_destroy)(void *at) { static_cast<absl::CondVar *>(at)->~CondVar(); }
void PEER(wait)(void *at, void *mutex) { static_cast<absl::CondVar *>(at)->Wait(static_cast<absl::Mutex *>(mutex)); }
void PEER(signal)(void *at) { static_cast<absl::CondVar *>(at)->Signal(); }
void PEER(broadcast)(void *at) { static_cast<absl::CondVar *>(at)->SignalAll(); }
}
