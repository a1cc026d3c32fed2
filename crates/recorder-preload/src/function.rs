//! The exported functions, as the numbers by which all tables of them are in order.

use core::ffi::CStr;

/// Declares the functions, in order.
macro_rules! functions {
    ($($name:ident)*) => {
        /// Numbers of the functions.
        #[derive(Clone, Copy)]
        #[repr(usize)]
        #[allow(non_camel_case_types, reason = "named as the functions")]
        pub(crate) enum Function {
            $($name,)*
        }

        /// How many functions there are.
        pub(crate) const COUNT: usize = [$(Function::$name,)*].len();

        /// Their names, as in the C library; those of the oldest version of condition variables begin with
        /// `old_`.
        pub(crate) const NAMES: &[&CStr] = &[$(
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name has no zero byte"),
            },
        )*];
    };
}

functions! {
    pthread_mutex_init
    pthread_mutex_destroy
    pthread_mutex_lock
    pthread_mutex_trylock
    pthread_mutex_timedlock
    pthread_mutex_clocklock
    pthread_mutex_unlock
    pthread_rwlock_init
    pthread_rwlock_destroy
    pthread_rwlock_rdlock
    pthread_rwlock_tryrdlock
    pthread_rwlock_wrlock
    pthread_rwlock_trywrlock
    pthread_rwlock_unlock
    pthread_rwlock_timedrdlock
    pthread_rwlock_timedwrlock
    pthread_rwlock_clockrdlock
    pthread_rwlock_clockwrlock
    pthread_cond_init
    pthread_cond_destroy
    pthread_cond_wait
    pthread_cond_timedwait
    pthread_cond_clockwait
    pthread_cond_signal
    pthread_cond_broadcast
    mtx_init
    mtx_destroy
    mtx_lock
    mtx_trylock
    mtx_timedlock
    mtx_unlock
    cnd_init
    cnd_destroy
    cnd_wait
    cnd_timedwait
    cnd_signal
    cnd_broadcast
    dlclose
    old_pthread_cond_init
    old_pthread_cond_destroy
    old_pthread_cond_wait
    old_pthread_cond_timedwait
    old_pthread_cond_signal
    old_pthread_cond_broadcast
    sem_wait
    sem_timedwait
    sem_clockwait
    sem_post
    sem_init
    sem_trywait
    pthread_barrier_wait
    pthread_join
    pthread_timedjoin_np
    pthread_clockjoin_np
    thrd_join
    pthread_once
    call_once
    pthread_spin_lock
    pthread_spin_trylock
    pthread_spin_unlock
    sched_yield
    syscall
    read
    __read_chk
    pread
    pread64
    __pread64_chk
    readv
    preadv
    write
    pwrite
    pwrite64
    writev
    pwritev
    fsync
    fdatasync
    sync_file_range
    msync
    ftruncate
    ftruncate64
    fallocate
    fallocate64
    open
    open64
    openat
    openat64
    poll
    __poll_chk
    ppoll
    select
    pselect
    epoll_wait
    epoll_pwait
    connect
    accept
    accept4
    recv
    __recv_chk
    recvfrom
    __recvfrom_chk
    recvmsg
    recvmmsg
    send
    sendto
    sendmsg
    sendmmsg
    sendfile
    sendfile64
    nanosleep
    clock_nanosleep
    usleep
    sleep
    flock
    lockf
    wait
    waitpid
    wait4
    waitid
    getaddrinfo
    fflush
    fclose
    rename
    unlink
}
