/* The plug-in of foreign.c: opened with RTLD_DEEPBIND, its calls are glibc's whatever is preloaded. */
#include <pthread.h>

int plugin_lock(pthread_mutex_t *mutex) { return pthread_mutex_lock(mutex); }
int plugin_unlock(pthread_mutex_t *mutex) { return pthread_mutex_unlock(mutex); }
int plugin_rdlock(pthread_rwlock_t *rwlock) { return pthread_rwlock_rdlock(rwlock); }
int plugin_wrlock(pthread_rwlock_t *rwlock) { return pthread_rwlock_wrlock(rwlock); }
int plugin_rwunlock(pthread_rwlock_t *rwlock) { return pthread_rwlock_unlock(rwlock); }
int plugin_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) { return pthread_cond_wait(cond, mutex); }
