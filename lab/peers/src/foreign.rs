//! The shims' functions as locks. A C++ program would have some of them inline; here, each call costs one
//! more jump.
//!
//! A shim defines, for each kind of lock that it has, the size of the object as `const unsigned long`, and
//! functions that return nothing. The build script finds by their names which kinds there are:
//!
//! | kind    | constant       | functions of `(void *at)`                                                       |
//! |---------|----------------|---------------------------------------------------------------------------------|
//! | mutex   | `mutex_size`   | `mutex_init`, `mutex_destroy`, `lock`, `unlock`                                 |
//! | rwlock  | `rwlock_size`  | `rwlock_init`, `rwlock_destroy`, `read`, `read_unlock`, `write`, `write_unlock` |
//! | condvar | `condvar_size` | `condvar_init`, `condvar_destroy`, `signal`, `broadcast`; and `wait`            |
//!
//! `at` is memory of that size, zeroed, aligned to 128 bytes, and not moved until `_destroy`. In C++ all of
//! it is in `extern "C"`, and the constants are `extern`:
//!
//! ```c
//! extern const unsigned long PEER(mutex_size) = sizeof(Mutex);
//! void PEER(mutex_init)(void *at) { new (at) Mutex(); }
//! void PEER(lock)(void *at) { static_cast<Mutex *>(at)->lock(); }
//! void PEER(wait)(void *at, void *mutex); // with the mutex locked; may return without a signal
//! ```
#![allow(dead_code, unused_imports, unused_macros)] // What is used depends on which libraries are installed.

use std::alloc::Layout;
use std::ffi::{c_ulong, c_void};
use std::ptr::NonNull;

use spinpark_lockbench::locks::adapters::Adapter;
use spinpark_lockbench::locks::primitives::{BenchCondvar, BenchMutex, BenchRwLock, GuardOf};

/// A peer's adapter and version, or why it is missing.
pub(crate) type Found = Result<(Adapter, &'static str), Missing>;

/// Why the build script left a peer out.
pub(crate) enum Missing {
    /// This header is not found: it is not installed.
    Header(&'static str),
    /// Anything else, in words.
    Other(&'static str),
}

/// Memory for an object of another language: zeroed, not moved, on cache lines of its own.
#[derive(Debug)]
struct Place {
    at: NonNull<c_void>,
    layout: Layout,
}

impl Place {
    fn new(size: usize) -> Self {
        /// Two cache lines.
        const ALIGN: usize = 128;
        let Ok(layout) = Layout::from_size_align(size.max(1), ALIGN) else { std::process::abort() };
        // SAFETY: the size is not zero.
        let at = unsafe { std::alloc::alloc_zeroed(layout) };
        let Some(at) = NonNull::new(at.cast()) else { std::alloc::handle_alloc_error(layout) };
        Self { at, layout }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and nothing else has it.
        unsafe { std::alloc::dealloc(self.at.as_ptr().cast(), self.layout) };
    }
}

/// An object of another language: memory, constructor, destructor.
macro_rules! object {
    ($name:ident, $size:ident, $init:ident, $destroy:ident) => {
        /// An object that lives in a place of its own.
        #[derive(Debug)]
        pub(crate) struct $name(Place);

        // SAFETY: locks are made to be used from several threads.
        unsafe impl Sync for $name {}
        // SAFETY: the object does not move, and may be destroyed by any thread.
        unsafe impl Send for $name {}

        impl Default for $name {
            fn default() -> Self {
                // SAFETY: a constant of the shim.
                let place = Place::new(unsafe { $size } as usize);
                // SAFETY: the place is as large as the shim says.
                unsafe { $init(place.at.as_ptr()) };
                Self(place)
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: initialised in `default`, and it is not used any more.
                unsafe { $destroy(self.0.at.as_ptr()) };
            }
        }
    };
}

/// A guard that calls a function when it is dropped.
macro_rules! guard {
    ($name:ident, $lock:ident, $unlock:ident) => {
        /// Unlocks when it is dropped.
        pub(crate) struct $name<'a>(&'a $lock);

        impl Drop for $name<'_> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: a live lock, held by this guard.
                unsafe { $unlock(self.0.0.at.as_ptr()) };
            }
        }
    };
}

/// Declares functions of a shim.
macro_rules! functions {
    ($peer:ident: $size:ident; $($function:ident($($argument:ident),*);)*) => {
        unsafe extern "C" {
            #[link_name = concat!("peer_", stringify!($peer), "_", stringify!($size))]
            static SIZE: c_ulong;
            $(
                #[link_name = concat!("peer_", stringify!($peer), "_", stringify!($function))]
                fn $function($($argument: *mut c_void),*);
            )*
        }
    };
}

/// The module of a kind of lock, and its place in an adapter.
macro_rules! kind {
    (mutex of $peer:ident) => {
        pub(super) mod a_mutex {
            use super::super::*;

            functions! { $peer: mutex_size; mutex_init(at); mutex_destroy(at); lock(at); unlock(at); }
            object!(Mutex, SIZE, mutex_init, mutex_destroy);
            guard!(Held, Mutex, unlock);

            // SAFETY: the library's mutex excludes.
            unsafe impl BenchMutex for Mutex {
                type Guard<'a> = Held<'a>;

                #[inline]
                fn lock(&self) -> Held<'_> {
                    // SAFETY: a live mutex.
                    unsafe { lock(self.0.at.as_ptr()) };
                    Held(self)
                }
            }

            impl Held<'_> {
                pub(in super::super) fn mutex(&self) -> *mut c_void {
                    self.0.0.at.as_ptr()
                }
            }
        }
    };
    (rwlock of $peer:ident) => {
        pub(super) mod a_rwlock {
            use super::super::*;

            functions! {
                $peer: rwlock_size;
                rwlock_init(at); rwlock_destroy(at); read(at); read_unlock(at); write(at); write_unlock(at);
            }
            object!(RwLock, SIZE, rwlock_init, rwlock_destroy);
            guard!(Reading, RwLock, read_unlock);
            guard!(Writing, RwLock, write_unlock);

            // SAFETY: the library's lock excludes readers from writers, and writers from all.
            unsafe impl BenchRwLock for RwLock {
                type Read<'a> = Reading<'a>;
                type Write<'a> = Writing<'a>;

                #[inline]
                fn read(&self) -> Reading<'_> {
                    // SAFETY: a live lock.
                    unsafe { read(self.0.at.as_ptr()) };
                    Reading(self)
                }

                #[inline]
                fn write(&self) -> Writing<'_> {
                    // SAFETY: a live lock.
                    unsafe { write(self.0.at.as_ptr()) };
                    Writing(self)
                }
            }
        }
    };
    (condvar of $peer:ident) => {
        pub(super) mod a_condvar {
            use super::super::*;
            use super::a_mutex::Mutex;

            functions! {
                $peer: condvar_size;
                condvar_init(at); condvar_destroy(at); wait(at, mutex); signal(at); broadcast(at);
            }
            object!(Condvar, SIZE, condvar_init, condvar_destroy);

            impl BenchCondvar for Condvar {
                type Mutex = Mutex;

                #[inline]
                fn wait<'a>(&self, guard: GuardOf<'a, Self>) -> GuardOf<'a, Self> {
                    // SAFETY: both live, and the guard holds the mutex.
                    unsafe { wait(self.0.at.as_ptr(), guard.mutex()) };
                    guard
                }

                #[inline]
                fn signal(&self) {
                    // SAFETY: a live condition variable.
                    unsafe { signal(self.0.at.as_ptr()) };
                }

                #[inline]
                fn broadcast(&self) {
                    // SAFETY: a live condition variable.
                    unsafe { broadcast(self.0.at.as_ptr()) };
                }
            }
        }
    };
    (mutex in $adapter:ident) => {
        $adapter.mutex::<a_mutex::Mutex>()
    };
    (rwlock in $adapter:ident) => {
        $adapter.rwlock::<a_rwlock::RwLock>()
    };
    (condvar in $adapter:ident) => {
        $adapter.condvar::<a_condvar::Condvar>()
    };
}

/// The locks of a shim, as a module.
macro_rules! peer {
    ($peer:ident: $($kind:ident)*) => {
        mod $peer {
            use super::*;

            $(kind!($kind of $peer);)*

            pub(super) fn adapter() -> Adapter {
                let adapter = Adapter::new(stringify!($peer));
                $(let adapter = kind!($kind in adapter);)*
                adapter
            }
        }
    };
}

// `peer!` for each shim that was compiled, and `peers`.
include!(concat!(env!("OUT_DIR"), "/peers.rs"));
