// absl::Mutex and absl::CondVar with a C interface.
#include <new>

#include "absl/synchronization/mutex.h"

extern "C" {

extern const unsigned long peer_abseil_mutex_size = sizeof(absl::Mutex);
extern const unsigned long peer_abseil_condvar_size = sizeof(absl::CondVar);

void peer_abseil_mutex_init(void *at) { new (at) absl::Mutex(); }
void peer_abseil_mutex_destroy(void *at) { static_cast<absl::Mutex *>(at)->~Mutex(); }
void peer_abseil_lock(void *at) { static_cast<absl::Mutex *>(at)->Lock(); }
void peer_abseil_unlock(void *at) { static_cast<absl::Mutex *>(at)->Unlock(); }
void peer_abseil_read(void *at) { static_cast<absl::Mutex *>(at)->ReaderLock(); }
void peer_abseil_read_unlock(void *at) { static_cast<absl::Mutex *>(at)->ReaderUnlock(); }

void peer_abseil_condvar_init(void *at) { new (at) absl::CondVar(); }
void peer_abseil_condvar_destroy(void *at) { static_cast<absl::CondVar *>(at)->~CondVar(); }
void peer_abseil_wait(void *at, void *mutex) {
  static_cast<absl::CondVar *>(at)->Wait(static_cast<absl::Mutex *>(mutex));
}
void peer_abseil_signal(void *at) { static_cast<absl::CondVar *>(at)->Signal(); }
void peer_abseil_broadcast(void *at) { static_cast<absl::CondVar *>(at)->SignalAll(); }
}
