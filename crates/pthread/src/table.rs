//! The export table: the symbols and versions that glibc has for each function. ([`loader`](crate::loader)
//! exports its own.)

use crate::{c11, cancel, cond, leave, mutex, process, rwlock};

/// Exports functions under names and versions. `@@` marks the version that new programs are linked to, as in
/// glibc.
///
/// The assembler's `.symver` wants a symbol of its own for each version, so each gets an alias of the
/// function; those aliases and the functions' own names are not exported.
///
/// The versions are those of x86-64; `build.rs` knows what they are on other architectures.
macro_rules! export {
    ($($function:path => $($name:literal @ $(@ $default:literal)? $($other:literal)?),+;)*) => {$(
        core::arch::global_asm!(
            $(
                concat!(".globl spinpark_", $name, "_" $(, $default)? $(, $other)?),
                concat!(".type spinpark_", $name, "_" $(, $default)? $(, $other)?, ", @function"),
                concat!(".set spinpark_", $name, "_" $(, $default)? $(, $other)?, ", {function}"),
                concat!(
                    ".symver spinpark_", $name, "_" $(, $default)? $(, $other)?, ", ",
                    $name, "@" $(, "@", version!($default))? $(, version!($other))?
                ),
            )+
            function = sym $function,
        );
    )*};
}

/// A version of x86-64, as it is called on this architecture.
macro_rules! version {
    ($version:literal) => {
        env!(concat!("SPINPARK_VERSION_", $version))
    };
}
pub(crate) use version;

// Mutexes.
export! {
    mutex::init => "pthread_mutex_init" @@ "GLIBC_2.2.5", "__pthread_mutex_init" @ "GLIBC_2.2.5";
    mutex::destroy => "pthread_mutex_destroy" @@ "GLIBC_2.2.5", "__pthread_mutex_destroy" @ "GLIBC_2.2.5";
    mutex::lock => "pthread_mutex_lock" @@ "GLIBC_2.2.5", "__pthread_mutex_lock" @ "GLIBC_2.2.5";
    mutex::try_lock =>
        "pthread_mutex_trylock" @ "GLIBC_2.2.5", "pthread_mutex_trylock" @@ "GLIBC_2.34",
        "__pthread_mutex_trylock" @ "GLIBC_2.2.5";
    mutex::timed_lock => "pthread_mutex_timedlock" @ "GLIBC_2.2.5", "pthread_mutex_timedlock" @@ "GLIBC_2.34";
    mutex::clock_lock => "pthread_mutex_clocklock" @ "GLIBC_2.30", "pthread_mutex_clocklock" @@ "GLIBC_2.34";
    mutex::unlock => "pthread_mutex_unlock" @@ "GLIBC_2.2.5", "__pthread_mutex_unlock" @ "GLIBC_2.2.5";
    mutex::consistent => "pthread_mutex_consistent" @ "GLIBC_2.12", "pthread_mutex_consistent" @@ "GLIBC_2.34";
    mutex::consistent => "pthread_mutex_consistent_np" @ "GLIBC_2.4";
    mutex::get_prioceiling =>
        "pthread_mutex_getprioceiling" @ "GLIBC_2.4", "pthread_mutex_getprioceiling" @@ "GLIBC_2.34";
    mutex::set_prioceiling =>
        "pthread_mutex_setprioceiling" @ "GLIBC_2.4", "pthread_mutex_setprioceiling" @@ "GLIBC_2.34";
}

// Read-write locks.
export! {
    rwlock::init =>
        "pthread_rwlock_init" @ "GLIBC_2.2.5", "pthread_rwlock_init" @@ "GLIBC_2.34",
        "__pthread_rwlock_init" @ "GLIBC_2.2.5";
    rwlock::destroy =>
        "pthread_rwlock_destroy" @ "GLIBC_2.2.5", "pthread_rwlock_destroy" @@ "GLIBC_2.34",
        "__pthread_rwlock_destroy" @ "GLIBC_2.2.5";
    rwlock::read =>
        "pthread_rwlock_rdlock" @ "GLIBC_2.2.5", "pthread_rwlock_rdlock" @@ "GLIBC_2.34",
        "__pthread_rwlock_rdlock" @ "GLIBC_2.2.5";
    rwlock::try_read =>
        "pthread_rwlock_tryrdlock" @ "GLIBC_2.2.5", "pthread_rwlock_tryrdlock" @@ "GLIBC_2.34",
        "__pthread_rwlock_tryrdlock" @ "GLIBC_2.2.5";
    rwlock::write =>
        "pthread_rwlock_wrlock" @ "GLIBC_2.2.5", "pthread_rwlock_wrlock" @@ "GLIBC_2.34",
        "__pthread_rwlock_wrlock" @ "GLIBC_2.2.5";
    rwlock::try_write =>
        "pthread_rwlock_trywrlock" @ "GLIBC_2.2.5", "pthread_rwlock_trywrlock" @@ "GLIBC_2.34",
        "__pthread_rwlock_trywrlock" @ "GLIBC_2.2.5";
    rwlock::unlock =>
        "pthread_rwlock_unlock" @ "GLIBC_2.2.5", "pthread_rwlock_unlock" @@ "GLIBC_2.34",
        "__pthread_rwlock_unlock" @ "GLIBC_2.2.5";
    rwlock::timed_read => "pthread_rwlock_timedrdlock" @ "GLIBC_2.2.5", "pthread_rwlock_timedrdlock" @@ "GLIBC_2.34";
    rwlock::timed_write => "pthread_rwlock_timedwrlock" @ "GLIBC_2.2.5", "pthread_rwlock_timedwrlock" @@ "GLIBC_2.34";
    rwlock::clock_read => "pthread_rwlock_clockrdlock" @ "GLIBC_2.30", "pthread_rwlock_clockrdlock" @@ "GLIBC_2.34";
    rwlock::clock_write => "pthread_rwlock_clockwrlock" @ "GLIBC_2.30", "pthread_rwlock_clockwrlock" @@ "GLIBC_2.34";
}

// Condition variables.
export! {
    cond::init => "pthread_cond_init" @@ "GLIBC_2.3.2";
    cond::destroy => "pthread_cond_destroy" @@ "GLIBC_2.3.2";
    cond::wait => "pthread_cond_wait" @@ "GLIBC_2.3.2";
    cond::timed_wait => "pthread_cond_timedwait" @@ "GLIBC_2.3.2";
    cond::clock_wait => "pthread_cond_clockwait" @ "GLIBC_2.30", "pthread_cond_clockwait" @@ "GLIBC_2.34";
    cond::signal => "pthread_cond_signal" @@ "GLIBC_2.3.2";
    cond::broadcast => "pthread_cond_broadcast" @@ "GLIBC_2.3.2";
}

// Those that only x86-64 has. glibc's 2.2.5 forms of condition variables keep a pointer in the object, and release a mutex past the
// drop-in. The oldest version is also what symbols without one are bound to (of plugins linked with musl, for
// example), so ours take the object, which has 48 bytes there, as it is; with `SPINPARK_DISABLE=1`, too. (In
// programs linked before glibc 2.3 it has 24.)
#[cfg(target_arch = "x86_64")]
export! {
    cond::init => "pthread_cond_init" @ "GLIBC_2.2.5";
    cond::destroy => "pthread_cond_destroy" @ "GLIBC_2.2.5";
    cond::wait => "pthread_cond_wait" @ "GLIBC_2.2.5";
    cond::timed_wait => "pthread_cond_timedwait" @ "GLIBC_2.2.5";
    cond::signal => "pthread_cond_signal" @ "GLIBC_2.2.5";
    cond::broadcast => "pthread_cond_broadcast" @ "GLIBC_2.2.5";
}

// Threads that are cancelled, or end.
export! {
    cancel::cancel => "pthread_cancel" @ "GLIBC_2.2.5", "pthread_cancel" @@ "GLIBC_2.34";
    leave::pthread_exit => "pthread_exit" @@ "GLIBC_2.2.5";
    leave::thrd_exit => "thrd_exit" @ "GLIBC_2.28", "thrd_exit" @@ "GLIBC_2.34";
}

// Fork, and sandboxes.
export! {
    process::register_atfork => "__register_atfork" @@ "GLIBC_2.3.2";
    process::prctl => "prctl" @@ "GLIBC_2.2.5";
}

// C11.
export! {
    c11::mtx_init => "mtx_init" @ "GLIBC_2.28", "mtx_init" @@ "GLIBC_2.34";
    c11::mtx_destroy => "mtx_destroy" @ "GLIBC_2.28", "mtx_destroy" @@ "GLIBC_2.34";
    c11::mtx_lock => "mtx_lock" @ "GLIBC_2.28", "mtx_lock" @@ "GLIBC_2.34";
    c11::mtx_trylock => "mtx_trylock" @ "GLIBC_2.28", "mtx_trylock" @@ "GLIBC_2.34";
    c11::mtx_timedlock => "mtx_timedlock" @ "GLIBC_2.28", "mtx_timedlock" @@ "GLIBC_2.34";
    c11::mtx_unlock => "mtx_unlock" @ "GLIBC_2.28", "mtx_unlock" @@ "GLIBC_2.34";
    c11::cnd_init => "cnd_init" @ "GLIBC_2.28", "cnd_init" @@ "GLIBC_2.34";
    c11::cnd_destroy => "cnd_destroy" @ "GLIBC_2.28", "cnd_destroy" @@ "GLIBC_2.34";
    c11::cnd_wait => "cnd_wait" @ "GLIBC_2.28", "cnd_wait" @@ "GLIBC_2.34";
    c11::cnd_timedwait => "cnd_timedwait" @ "GLIBC_2.28", "cnd_timedwait" @@ "GLIBC_2.34";
    c11::cnd_signal => "cnd_signal" @ "GLIBC_2.28", "cnd_signal" @@ "GLIBC_2.34";
    c11::cnd_broadcast => "cnd_broadcast" @ "GLIBC_2.28", "cnd_broadcast" @@ "GLIBC_2.34";
}

// Not glibc's: for the profiler.
export! {
    process::observe => "spinpark_observe" @@ "SPINPARK_1";
}
