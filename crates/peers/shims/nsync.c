/* nsync_mu and nsync_cv. */
#include <nsync.h>

const unsigned long peer_nsync_mutex_size = sizeof(nsync_mu);
const unsigned long peer_nsync_condvar_size = sizeof(nsync_cv);

void peer_nsync_mutex_init(void *at) { nsync_mu_init(at); }
void peer_nsync_mutex_destroy(void *at) { (void)at; }
void peer_nsync_lock(void *at) { nsync_mu_lock(at); }
void peer_nsync_unlock(void *at) { nsync_mu_unlock(at); }
void peer_nsync_read(void *at) { nsync_mu_rlock(at); }
void peer_nsync_read_unlock(void *at) { nsync_mu_runlock(at); }

void peer_nsync_condvar_init(void *at) { nsync_cv_init(at); }
void peer_nsync_condvar_destroy(void *at) { (void)at; }
void peer_nsync_wait(void *at, void *mutex) { nsync_cv_wait(at, mutex); }
void peer_nsync_signal(void *at) { nsync_cv_signal(at); }
void peer_nsync_broadcast(void *at) { nsync_cv_broadcast(at); }
