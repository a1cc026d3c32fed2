/* The header alone, without another one and without a feature macro: as strict as the standard is. */
#include <spinpark.h>

static spinpark_mutex_t mutex = SPINPARK_MUTEX_INIT;
static spinpark_recursive_mutex_t recursive = SPINPARK_RECURSIVE_MUTEX_INIT;
static spinpark_rwlock_t rwlock = SPINPARK_RWLOCK_INIT;
static spinpark_cond_t cond = SPINPARK_COND_INIT;

int main(void) {
    spinpark_mutex_lock(&mutex);
    (void)spinpark_cond_wait_for(&cond, &mutex, 1);
    spinpark_mutex_unlock(&mutex);
    if (spinpark_recursive_mutex_try_lock(&recursive))
        spinpark_recursive_mutex_unlock(&recursive);
    spinpark_rwlock_read_lock(&rwlock);
    spinpark_rwlock_read_unlock(&rwlock);
    return SPINPARK_VERSION_MAJOR;
}
