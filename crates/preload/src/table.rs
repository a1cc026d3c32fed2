//! The export table: every function with the names and versions that glibc has for it.

use core::ffi::{c_int, c_ulong, c_void};

use libc::{
    clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, pthread_mutexattr_t, pthread_rwlock_t,
    pthread_rwlockattr_t, pthread_t, timespec,
};
use spinpark_linux::Observer;
use spinpark_pthread::fork::Handler;
use spinpark_pthread::{c11, cancel, cond, fork, glibcs, leave, mutex, observe, rwlock, sandbox};

use crate::export::export;

// Mutexes.
export! {
    pthread_mutex_init(mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t) -> c_int = mutex::init,
        ["spinpark_pthread_mutex_init_0" as "pthread_mutex_init@@GLIBC_2.2.5", "spinpark_pthread_mutex_init_1" as "__pthread_mutex_init@GLIBC_2.2.5"];
    pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int = mutex::destroy,
        ["spinpark_pthread_mutex_destroy_0" as "pthread_mutex_destroy@@GLIBC_2.2.5", "spinpark_pthread_mutex_destroy_1" as "__pthread_mutex_destroy@GLIBC_2.2.5"];
    pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int = mutex::lock,
        ["spinpark_pthread_mutex_lock_0" as "pthread_mutex_lock@@GLIBC_2.2.5", "spinpark_pthread_mutex_lock_1" as "__pthread_mutex_lock@GLIBC_2.2.5"];
    pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int = mutex::try_lock,
        ["spinpark_pthread_mutex_trylock_0" as "pthread_mutex_trylock@GLIBC_2.2.5", "spinpark_pthread_mutex_trylock_1" as "pthread_mutex_trylock@@GLIBC_2.34", "spinpark_pthread_mutex_trylock_2" as "__pthread_mutex_trylock@GLIBC_2.2.5"];
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = mutex::timed_lock,
        ["spinpark_pthread_mutex_timedlock_0" as "pthread_mutex_timedlock@GLIBC_2.2.5", "spinpark_pthread_mutex_timedlock_1" as "pthread_mutex_timedlock@@GLIBC_2.34"];
    pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec) -> c_int = mutex::clock_lock,
        ["spinpark_pthread_mutex_clocklock_0" as "pthread_mutex_clocklock@GLIBC_2.30", "spinpark_pthread_mutex_clocklock_1" as "pthread_mutex_clocklock@@GLIBC_2.34"];
    pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int = mutex::unlock,
        ["spinpark_pthread_mutex_unlock_0" as "pthread_mutex_unlock@@GLIBC_2.2.5", "spinpark_pthread_mutex_unlock_1" as "__pthread_mutex_unlock@GLIBC_2.2.5"];
    pthread_mutex_consistent(mutex: *mut pthread_mutex_t) -> c_int = glibcs::consistent,
        ["spinpark_pthread_mutex_consistent_0" as "pthread_mutex_consistent@GLIBC_2.12", "spinpark_pthread_mutex_consistent_1" as "pthread_mutex_consistent@@GLIBC_2.34"];
    pthread_mutex_consistent_np(mutex: *mut pthread_mutex_t) -> c_int = glibcs::consistent,
        ["spinpark_pthread_mutex_consistent_np_0" as "pthread_mutex_consistent_np@GLIBC_2.4"];
    pthread_mutex_getprioceiling(mutex: *const pthread_mutex_t, ceiling: *mut c_int) -> c_int = glibcs::get_prioceiling,
        ["spinpark_pthread_mutex_getprioceiling_0" as "pthread_mutex_getprioceiling@GLIBC_2.4", "spinpark_pthread_mutex_getprioceiling_1" as "pthread_mutex_getprioceiling@@GLIBC_2.34"];
    pthread_mutex_setprioceiling(mutex: *mut pthread_mutex_t, ceiling: c_int, old: *mut c_int) -> c_int = glibcs::set_prioceiling,
        ["spinpark_pthread_mutex_setprioceiling_0" as "pthread_mutex_setprioceiling@GLIBC_2.4", "spinpark_pthread_mutex_setprioceiling_1" as "pthread_mutex_setprioceiling@@GLIBC_2.34"];
}

// Read-write locks.
export! {
    pthread_rwlock_init(rwlock: *mut pthread_rwlock_t, attributes: *const pthread_rwlockattr_t) -> c_int = rwlock::init,
        ["spinpark_pthread_rwlock_init_0" as "pthread_rwlock_init@GLIBC_2.2.5", "spinpark_pthread_rwlock_init_1" as "pthread_rwlock_init@@GLIBC_2.34", "spinpark_pthread_rwlock_init_2" as "__pthread_rwlock_init@GLIBC_2.2.5"];
    pthread_rwlock_destroy(rwlock: *mut pthread_rwlock_t) -> c_int = rwlock::destroy,
        ["spinpark_pthread_rwlock_destroy_0" as "pthread_rwlock_destroy@GLIBC_2.2.5", "spinpark_pthread_rwlock_destroy_1" as "pthread_rwlock_destroy@@GLIBC_2.34", "spinpark_pthread_rwlock_destroy_2" as "__pthread_rwlock_destroy@GLIBC_2.2.5"];
    pthread_rwlock_rdlock(rwlock: *mut pthread_rwlock_t) -> c_int = rwlock::read,
        ["spinpark_pthread_rwlock_rdlock_0" as "pthread_rwlock_rdlock@GLIBC_2.2.5", "spinpark_pthread_rwlock_rdlock_1" as "pthread_rwlock_rdlock@@GLIBC_2.34", "spinpark_pthread_rwlock_rdlock_2" as "__pthread_rwlock_rdlock@GLIBC_2.2.5"];
    pthread_rwlock_tryrdlock(rwlock: *mut pthread_rwlock_t) -> c_int = rwlock::try_read,
        ["spinpark_pthread_rwlock_tryrdlock_0" as "pthread_rwlock_tryrdlock@GLIBC_2.2.5", "spinpark_pthread_rwlock_tryrdlock_1" as "pthread_rwlock_tryrdlock@@GLIBC_2.34", "spinpark_pthread_rwlock_tryrdlock_2" as "__pthread_rwlock_tryrdlock@GLIBC_2.2.5"];
    pthread_rwlock_wrlock(rwlock: *mut pthread_rwlock_t) -> c_int = rwlock::write,
        ["spinpark_pthread_rwlock_wrlock_0" as "pthread_rwlock_wrlock@GLIBC_2.2.5", "spinpark_pthread_rwlock_wrlock_1" as "pthread_rwlock_wrlock@@GLIBC_2.34", "spinpark_pthread_rwlock_wrlock_2" as "__pthread_rwlock_wrlock@GLIBC_2.2.5"];
    pthread_rwlock_trywrlock(rwlock: *mut pthread_rwlock_t) -> c_int = rwlock::try_write,
        ["spinpark_pthread_rwlock_trywrlock_0" as "pthread_rwlock_trywrlock@GLIBC_2.2.5", "spinpark_pthread_rwlock_trywrlock_1" as "pthread_rwlock_trywrlock@@GLIBC_2.34", "spinpark_pthread_rwlock_trywrlock_2" as "__pthread_rwlock_trywrlock@GLIBC_2.2.5"];
    pthread_rwlock_unlock(rwlock: *mut pthread_rwlock_t) -> c_int = rwlock::unlock,
        ["spinpark_pthread_rwlock_unlock_0" as "pthread_rwlock_unlock@GLIBC_2.2.5", "spinpark_pthread_rwlock_unlock_1" as "pthread_rwlock_unlock@@GLIBC_2.34", "spinpark_pthread_rwlock_unlock_2" as "__pthread_rwlock_unlock@GLIBC_2.2.5"];
    pthread_rwlock_timedrdlock(rwlock: *mut pthread_rwlock_t, time: *const timespec) -> c_int = rwlock::timed_read,
        ["spinpark_pthread_rwlock_timedrdlock_0" as "pthread_rwlock_timedrdlock@GLIBC_2.2.5", "spinpark_pthread_rwlock_timedrdlock_1" as "pthread_rwlock_timedrdlock@@GLIBC_2.34"];
    pthread_rwlock_timedwrlock(rwlock: *mut pthread_rwlock_t, time: *const timespec) -> c_int = rwlock::timed_write,
        ["spinpark_pthread_rwlock_timedwrlock_0" as "pthread_rwlock_timedwrlock@GLIBC_2.2.5", "spinpark_pthread_rwlock_timedwrlock_1" as "pthread_rwlock_timedwrlock@@GLIBC_2.34"];
    pthread_rwlock_clockrdlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec) -> c_int = rwlock::clock_read,
        ["spinpark_pthread_rwlock_clockrdlock_0" as "pthread_rwlock_clockrdlock@GLIBC_2.30", "spinpark_pthread_rwlock_clockrdlock_1" as "pthread_rwlock_clockrdlock@@GLIBC_2.34"];
    pthread_rwlock_clockwrlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec) -> c_int = rwlock::clock_write,
        ["spinpark_pthread_rwlock_clockwrlock_0" as "pthread_rwlock_clockwrlock@GLIBC_2.30", "spinpark_pthread_rwlock_clockwrlock_1" as "pthread_rwlock_clockwrlock@@GLIBC_2.34"];
}

// Condition variables. glibc's 2.2.5 forms keep a pointer in the object, and release a mutex past the drop-in. The oldest version is also
// what symbols without one are bound to (of plugins linked with musl, for example), so ours take the object, which has 48 bytes there,
// as it is; with `SPINPARK_DISABLE=1`, too. (In programs linked before glibc 2.3 it has 24.)
export! {
    pthread_cond_init(cond: *mut pthread_cond_t, attributes: *const pthread_condattr_t) -> c_int = cond::init,
        ["spinpark_pthread_cond_init_0" as "pthread_cond_init@@GLIBC_2.3.2", "spinpark_pthread_cond_init_1" as "pthread_cond_init@GLIBC_2.2.5"];
    pthread_cond_destroy(cond: *mut pthread_cond_t) -> c_int = cond::destroy,
        ["spinpark_pthread_cond_destroy_0" as "pthread_cond_destroy@@GLIBC_2.3.2", "spinpark_pthread_cond_destroy_1" as "pthread_cond_destroy@GLIBC_2.2.5"];
    pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int = cond::wait,
        ["spinpark_pthread_cond_wait_0" as "pthread_cond_wait@@GLIBC_2.3.2", "spinpark_pthread_cond_wait_1" as "pthread_cond_wait@GLIBC_2.2.5"];
    pthread_cond_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = cond::timed_wait,
        ["spinpark_pthread_cond_timedwait_0" as "pthread_cond_timedwait@@GLIBC_2.3.2", "spinpark_pthread_cond_timedwait_1" as "pthread_cond_timedwait@GLIBC_2.2.5"];
    pthread_cond_clockwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec) -> c_int = cond::clock_wait,
        ["spinpark_pthread_cond_clockwait_0" as "pthread_cond_clockwait@GLIBC_2.30", "spinpark_pthread_cond_clockwait_1" as "pthread_cond_clockwait@@GLIBC_2.34"];
    pthread_cond_signal(cond: *mut pthread_cond_t) -> c_int = cond::signal,
        ["spinpark_pthread_cond_signal_0" as "pthread_cond_signal@@GLIBC_2.3.2", "spinpark_pthread_cond_signal_1" as "pthread_cond_signal@GLIBC_2.2.5"];
    pthread_cond_broadcast(cond: *mut pthread_cond_t) -> c_int = cond::broadcast,
        ["spinpark_pthread_cond_broadcast_0" as "pthread_cond_broadcast@@GLIBC_2.3.2", "spinpark_pthread_cond_broadcast_1" as "pthread_cond_broadcast@GLIBC_2.2.5"];
}

// Cancellation.
export! {
    pthread_cancel(thread: pthread_t) -> c_int = cancel::cancel,
        ["spinpark_pthread_cancel_0" as "pthread_cancel@GLIBC_2.2.5", "spinpark_pthread_cancel_1" as "pthread_cancel@@GLIBC_2.34"];
}

// The end of a thread.
export! {
    pthread_exit(value: *mut c_void) -> ! = leave::pthread_exit,
        ["spinpark_pthread_exit_0" as "pthread_exit@@GLIBC_2.2.5"];
    thrd_exit(result: c_int) -> ! = leave::thrd_exit,
        ["spinpark_thrd_exit_0" as "thrd_exit@GLIBC_2.28", "spinpark_thrd_exit_1" as "thrd_exit@@GLIBC_2.34"];
}

// Fork.
export! {
    __register_atfork(prepare: Handler, parent: Handler, child: Handler, library: *mut c_void) -> c_int = fork::register,
        ["spinpark___register_atfork_0" as "__register_atfork@@GLIBC_2.3.2"];
}

// Sandboxes.
export! {
    prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int = sandbox::prctl,
        ["spinpark_prctl_0" as "prctl@@GLIBC_2.2.5"];
}

// C11.
export! {
    mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int = c11::mtx_init,
        ["spinpark_mtx_init_0" as "mtx_init@GLIBC_2.28", "spinpark_mtx_init_1" as "mtx_init@@GLIBC_2.34"];
    mtx_destroy(mutex: *mut pthread_mutex_t) = c11::mtx_destroy,
        ["spinpark_mtx_destroy_0" as "mtx_destroy@GLIBC_2.28", "spinpark_mtx_destroy_1" as "mtx_destroy@@GLIBC_2.34"];
    mtx_lock(mutex: *mut pthread_mutex_t) -> c_int = c11::mtx_lock,
        ["spinpark_mtx_lock_0" as "mtx_lock@GLIBC_2.28", "spinpark_mtx_lock_1" as "mtx_lock@@GLIBC_2.34"];
    mtx_trylock(mutex: *mut pthread_mutex_t) -> c_int = c11::mtx_trylock,
        ["spinpark_mtx_trylock_0" as "mtx_trylock@GLIBC_2.28", "spinpark_mtx_trylock_1" as "mtx_trylock@@GLIBC_2.34"];
    mtx_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = c11::mtx_timedlock,
        ["spinpark_mtx_timedlock_0" as "mtx_timedlock@GLIBC_2.28", "spinpark_mtx_timedlock_1" as "mtx_timedlock@@GLIBC_2.34"];
    mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int = c11::mtx_unlock,
        ["spinpark_mtx_unlock_0" as "mtx_unlock@GLIBC_2.28", "spinpark_mtx_unlock_1" as "mtx_unlock@@GLIBC_2.34"];
    cnd_init(cond: *mut pthread_cond_t) -> c_int = c11::cnd_init,
        ["spinpark_cnd_init_0" as "cnd_init@GLIBC_2.28", "spinpark_cnd_init_1" as "cnd_init@@GLIBC_2.34"];
    cnd_destroy(cond: *mut pthread_cond_t) = c11::cnd_destroy,
        ["spinpark_cnd_destroy_0" as "cnd_destroy@GLIBC_2.28", "spinpark_cnd_destroy_1" as "cnd_destroy@@GLIBC_2.34"];
    cnd_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int = c11::cnd_wait,
        ["spinpark_cnd_wait_0" as "cnd_wait@GLIBC_2.28", "spinpark_cnd_wait_1" as "cnd_wait@@GLIBC_2.34"];
    cnd_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = c11::cnd_timedwait,
        ["spinpark_cnd_timedwait_0" as "cnd_timedwait@GLIBC_2.28", "spinpark_cnd_timedwait_1" as "cnd_timedwait@@GLIBC_2.34"];
    cnd_signal(cond: *mut pthread_cond_t) -> c_int = c11::cnd_signal,
        ["spinpark_cnd_signal_0" as "cnd_signal@GLIBC_2.28", "spinpark_cnd_signal_1" as "cnd_signal@@GLIBC_2.34"];
    cnd_broadcast(cond: *mut pthread_cond_t) -> c_int = c11::cnd_broadcast,
        ["spinpark_cnd_broadcast_0" as "cnd_broadcast@GLIBC_2.28", "spinpark_cnd_broadcast_1" as "cnd_broadcast@@GLIBC_2.34"];
}

// Not glibc's: for the profiler.
export! {
    spinpark_recorder(observer: Option<Observer>) -> c_int = observe::observe,
        ["spinpark_spinpark_recorder_0" as "spinpark_recorder@@SPINPARK_1"];
}
