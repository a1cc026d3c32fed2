/* nsync_mu (a read-write lock as well) and nsync_cv. */
#include <nsync.h>

const unsigned long PEER(mutex_size) = sizeof(nsync_mu);
void PEER(mutex_init)(void *at) { nsync_mu_init(at); }
void PEER(mutex_destroy)(void *at) { (void)at; }
void PEER(lock)(void *at) { nsync_mu_lock(at); }
void PEER(unlock)(void *at) { nsync_mu_unlock(at); }

const unsigned long PEER(rwlock_size) = sizeof(nsync_mu);
void PEER(rwlock_init)(void *at) { nsync_mu_init(at); }
void PEER(rwlock_destroy)(void *at) { (void)at; }
void PEER(read)(void *at) { nsync_mu_rlock(at); }
void PEER(read_unlock)(void *at) { nsync_mu_runlock(at); }
void PEER(write)(void *at) { nsync_mu_lock(at); }
void PEER(write_unlock)(void *at) { nsync_mu_unlock(at); }

const unsigned long PEER(condvar_size) = sizeof(nsync_cv);
void PEER(condvar_init)(void *at) { nsync_cv_init(at); }
void PEER(condvar_destroy)(void *at) { (void)at; }
void PEER(wait)(void *at, void *mutex) { nsync_cv_wait(at, mutex); }
void PEER(signal)(void *at) { nsync_cv_signal(at); }
void PEER(broadcast)(void *at) { nsync_cv_broadcast(at); }
