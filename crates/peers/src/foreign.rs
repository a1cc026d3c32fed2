//! The shims' functions as locks. A C++ program would have some of them inline; here, each call costs one more jump.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::NonNull;

use spinpark_lockbench::locks::adapters::Adapter;
use spinpark_lockbench::locks::any_mutex::any_mutex;
#[cfg(any(abseil, nsync))]
use spinpark_lockbench::locks::primitives::{BenchCondvar, GuardOf};
use spinpark_lockbench::locks::primitives::{BenchMutex, BenchRwLock};
#[cfg(any(abseil, nsync))]
use spinpark_lockbench::locks::workloads::condvar;
use spinpark_lockbench::locks::workloads::{mutex, rwlock};

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

macro_rules! mutex {
    ($lock:ident) => {
        guard!(Held, Mutex, unlock);

        // SAFETY: the library's mutex excludes.
        unsafe impl BenchMutex for Mutex {
            type Guard<'a> = Held<'a>;

            #[inline]
            fn lock(&self) -> Held<'_> {
                // SAFETY: a live mutex.
                unsafe { $lock(self.0.at.as_ptr()) };
                Held(self)
            }
        }
    };
}

macro_rules! rwlock {
    ($type:ident, $read:ident, $read_unlock:ident, $write:ident, $write_unlock:ident) => {
        guard!(Reading, $type, $read_unlock);
        guard!(Writing, $type, $write_unlock);

        // SAFETY: the library's lock excludes readers from writers, and writers from all.
        unsafe impl BenchRwLock for $type {
            type Read<'a> = Reading<'a>;
            type Write<'a> = Writing<'a>;

            #[inline]
            fn read(&self) -> Reading<'_> {
                // SAFETY: a live lock.
                unsafe { $read(self.0.at.as_ptr()) };
                Reading(self)
            }

            #[inline]
            fn write(&self) -> Writing<'_> {
                // SAFETY: a live lock.
                unsafe { $write(self.0.at.as_ptr()) };
                Writing(self)
            }
        }
    };
}

#[cfg(any(abseil, nsync))]
macro_rules! condvar {
    () => {
        impl BenchCondvar for Condvar {
            type Mutex = Mutex;

            #[inline]
            fn wait<'a>(&self, guard: GuardOf<'a, Self>) -> GuardOf<'a, Self> {
                // SAFETY: both live, and the guard holds the mutex.
                unsafe { wait(self.0.at.as_ptr(), guard.0.0.at.as_ptr()) };
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
    };
}

/// The functions of a shim whose mutex is a read-write lock as well, and which has condition variables.
#[cfg(any(abseil, nsync))]
macro_rules! complete {
    ($name:literal, $prefix:literal) => {
        use super::*;

        unsafe extern "C" {
            #[link_name = concat!($prefix, "_mutex_size")]
            static MUTEX_SIZE: std::ffi::c_ulong;
            #[link_name = concat!($prefix, "_condvar_size")]
            static CONDVAR_SIZE: std::ffi::c_ulong;
            #[link_name = concat!($prefix, "_mutex_init")]
            fn mutex_init(at: *mut c_void);
            #[link_name = concat!($prefix, "_mutex_destroy")]
            fn mutex_destroy(at: *mut c_void);
            #[link_name = concat!($prefix, "_lock")]
            fn lock(at: *mut c_void);
            #[link_name = concat!($prefix, "_unlock")]
            fn unlock(at: *mut c_void);
            #[link_name = concat!($prefix, "_read")]
            fn read(at: *mut c_void);
            #[link_name = concat!($prefix, "_read_unlock")]
            fn read_unlock(at: *mut c_void);
            #[link_name = concat!($prefix, "_condvar_init")]
            fn condvar_init(at: *mut c_void);
            #[link_name = concat!($prefix, "_condvar_destroy")]
            fn condvar_destroy(at: *mut c_void);
            #[link_name = concat!($prefix, "_wait")]
            fn wait(at: *mut c_void, mutex: *mut c_void);
            #[link_name = concat!($prefix, "_signal")]
            fn signal(at: *mut c_void);
            #[link_name = concat!($prefix, "_broadcast")]
            fn broadcast(at: *mut c_void);
        }

        object!(Mutex, MUTEX_SIZE, mutex_init, mutex_destroy);
        object!(Condvar, CONDVAR_SIZE, condvar_init, condvar_destroy);
        mutex!(lock);
        rwlock!(Mutex, read, read_unlock, lock, unlock);
        condvar!();

        /// This adapter.
        pub(crate) const ADAPTER: Adapter = Adapter {
            name: $name,
            mutex: Some(mutex::<Mutex>),
            any_mutex: Some(any_mutex::<Mutex>),
            recursive: None,
            error_check: None,
            rwlock: Some(rwlock::<Mutex>),
            condvar: Some(condvar::<Condvar>),
        };
    };
}

/// `absl::Mutex` and `absl::CondVar`.
#[cfg(abseil)]
pub(crate) mod abseil {
    complete!("abseil", "peer_abseil");
}

/// `nsync_mu` and `nsync_cv`.
#[cfg(nsync)]
pub(crate) mod nsync {
    complete!("nsync", "peer_nsync");
}

/// `tbb::mutex` and `tbb::rw_mutex`.
#[cfg(onetbb)]
pub(crate) mod onetbb {
    use super::*;

    unsafe extern "C" {
        #[link_name = "peer_onetbb_mutex_size"]
        static MUTEX_SIZE: std::ffi::c_ulong;
        #[link_name = "peer_onetbb_rwlock_size"]
        static RWLOCK_SIZE: std::ffi::c_ulong;
        #[link_name = "peer_onetbb_mutex_init"]
        fn mutex_init(at: *mut c_void);
        #[link_name = "peer_onetbb_mutex_destroy"]
        fn mutex_destroy(at: *mut c_void);
        #[link_name = "peer_onetbb_lock"]
        fn lock(at: *mut c_void);
        #[link_name = "peer_onetbb_unlock"]
        fn unlock(at: *mut c_void);
        #[link_name = "peer_onetbb_rwlock_init"]
        fn rwlock_init(at: *mut c_void);
        #[link_name = "peer_onetbb_rwlock_destroy"]
        fn rwlock_destroy(at: *mut c_void);
        #[link_name = "peer_onetbb_read"]
        fn read(at: *mut c_void);
        #[link_name = "peer_onetbb_read_unlock"]
        fn read_unlock(at: *mut c_void);
        #[link_name = "peer_onetbb_write"]
        fn write(at: *mut c_void);
        #[link_name = "peer_onetbb_write_unlock"]
        fn write_unlock(at: *mut c_void);
    }

    object!(Mutex, MUTEX_SIZE, mutex_init, mutex_destroy);
    object!(RwLock, RWLOCK_SIZE, rwlock_init, rwlock_destroy);
    mutex!(lock);
    rwlock!(RwLock, read, read_unlock, write, write_unlock);

    /// This adapter.
    pub(crate) const ADAPTER: Adapter = Adapter {
        name: "onetbb",
        mutex: Some(mutex::<Mutex>),
        any_mutex: Some(any_mutex::<Mutex>),
        recursive: None,
        error_check: None,
        rwlock: Some(rwlock::<RwLock>),
        condvar: None,
    };
}
