//! glibc's own functions, for the objects and the processes that are not ours.
//!
//! Found with `dlsym(RTLD_NEXT)` when the process starts. Those that are not there then are looked up again
//! when they are needed: before glibc 2.34 a program may load libpthread later, and only for one of its
//! libraries (`RTLD_LOCAL`).

use core::ffi::{CStr, c_int, c_ulong, c_void};
use core::hint::black_box;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{
    clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, pthread_mutexattr_t, pthread_rwlock_t,
    pthread_rwlockattr_t, pthread_t, timespec,
};
use spinpark_linux::{Library, Scope, lookup, lookup_next};

/// A fork handler.
pub(crate) type Handler = Option<unsafe extern "C" fn()>;

/// Looks `name` up in the libraries after this one, and in a libpthread that they do not see; null if there
/// is none.
#[inline(never)] // for the drop-in's size
fn next(name: &CStr) -> *mut c_void {
    let found = lookup_next(name);
    if !found.is_null() {
        return found;
    }
    Library::loaded(c"libpthread.so.0").map_or(ptr::null_mut(), |library| library.lookup(name))
}

/// Looks `name` up in all libraries.
pub(crate) fn any(name: &CStr) -> *mut c_void {
    lookup(Scope::All, name)
}

/// Looks up the functions that have not been found yet, or one of them.
#[cold]
#[inline(never)]
fn find(only: Option<Name>) {
    let mut rest = NAMES.as_bytes();
    for (number, found) in FOUND.iter().enumerate() {
        // SAFETY: `NAMES` has a name with its zero for each element of `FOUND`.
        let name = unsafe { CStr::from_ptr(rest.as_ptr().cast()) };
        rest = rest.get(name.count_bytes() + 1..).unwrap_or_default();
        if only.is_none_or(|only| only as usize == number) && found.load(Relaxed).is_null() {
            found.store(next(name), Relaxed);
        }
    }
}

/// Finds every function, at the start of the process: later a thread may need one while another holds the
/// loader's lock and waits for it (a library's constructor that joins threads).
pub(crate) fn find_all() {
    find(None);
}

/// The address of the function, or null.
#[inline(never)]
pub(crate) fn address(name: Name) -> *mut c_void {
    let found = || FOUND.get(name as usize).map_or(ptr::null_mut(), |found| found.load(Relaxed));
    if found().is_null() {
        find(Some(name));
    }
    found()
}

/// Whether `function` is one of those that were found.
pub(crate) fn is_one(function: *mut c_void) -> bool {
    // As a slice whose length is not known, so that the loop is not unrolled.
    black_box(&FOUND[..]).iter().any(|found| found.load(Relaxed) == function)
}

/// Declares functions that call glibc's function of the same name, and names of other functions.
macro_rules! real {
    ($($name:ident($($argument:ident: $type:ty),*);)* + $($other:ident)*) => {
        #[allow(non_camel_case_types, reason = "named after what it stands for")]
        #[derive(Clone, Copy)]
        pub(crate) enum Name {
            $($name,)*
            $($other,)*
        }

        const NAMES: &str = concat!($(stringify!($name), "\0",)* $(stringify!($other), "\0",)*);
        const COUNT: usize = [$(Name::$name,)* $(Name::$other,)*].len();
        static FOUND: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; COUNT];

        $(
            #[cold]
            #[inline(never)]
            pub(crate) unsafe fn $name($($argument: $type),*) -> c_int {
                type Function = unsafe extern "C" fn($($type),*) -> c_int;
                // SAFETY: null or the address of glibc's function, whose type this is.
                match unsafe { mem::transmute::<*mut c_void, Option<Function>>(address(Name::$name)) } {
                    // SAFETY: the caller's arguments, which are what it would have called glibc's function
                    // with.
                    Some(function) => unsafe { function($($argument),*) },
                    None => libc::ENOSYS,
                }
            }
        )*
    };
}

real! {
    pthread_mutex_init(mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t);
    pthread_mutex_destroy(mutex: *mut pthread_mutex_t);
    pthread_mutex_lock(mutex: *mut pthread_mutex_t);
    pthread_mutex_trylock(mutex: *mut pthread_mutex_t);
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, deadline: *const timespec);
    pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, deadline: *const timespec);
    pthread_mutex_unlock(mutex: *mut pthread_mutex_t);
    pthread_mutex_consistent(mutex: *mut pthread_mutex_t);
    pthread_mutex_getprioceiling(mutex: *const pthread_mutex_t, ceiling: *mut c_int);
    pthread_mutex_setprioceiling(mutex: *mut pthread_mutex_t, ceiling: c_int, old: *mut c_int);
    pthread_rwlock_init(rwlock: *mut pthread_rwlock_t, attributes: *const pthread_rwlockattr_t);
    pthread_rwlock_destroy(rwlock: *mut pthread_rwlock_t);
    pthread_rwlock_rdlock(rwlock: *mut pthread_rwlock_t);
    pthread_rwlock_tryrdlock(rwlock: *mut pthread_rwlock_t);
    pthread_rwlock_timedrdlock(rwlock: *mut pthread_rwlock_t, deadline: *const timespec);
    pthread_rwlock_clockrdlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, deadline: *const timespec);
    pthread_rwlock_wrlock(rwlock: *mut pthread_rwlock_t);
    pthread_rwlock_trywrlock(rwlock: *mut pthread_rwlock_t);
    pthread_rwlock_timedwrlock(rwlock: *mut pthread_rwlock_t, deadline: *const timespec);
    pthread_rwlock_clockwrlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, deadline: *const timespec);
    pthread_rwlock_unlock(rwlock: *mut pthread_rwlock_t);
    pthread_condattr_setpshared(attributes: *mut pthread_condattr_t, shared: c_int);
    pthread_condattr_setclock(attributes: *mut pthread_condattr_t, clock: clockid_t);
    pthread_cond_init(cond: *mut pthread_cond_t, attributes: *const pthread_condattr_t);
    pthread_cond_destroy(cond: *mut pthread_cond_t);
    pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t);
    pthread_cond_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, deadline: *const timespec);
    pthread_cond_clockwait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        deadline: *const timespec
    );
    pthread_cond_signal(cond: *mut pthread_cond_t);
    pthread_cond_broadcast(cond: *mut pthread_cond_t);
    pthread_cancel(thread: pthread_t);
    prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong);
    __register_atfork(prepare: Handler, parent: Handler, child: Handler, library: *mut c_void);
    + _pthread_cleanup_push _pthread_cleanup_pop __pthread_register_cancel __pthread_unregister_cancel pthread_testcancel
        pthread_exit dlopen dlmopen
}
