//! pthread locks as they are, for our own workloads.
//!
//! std's locks are futexes of their own and never call pthread functions, so a workload that uses them would
//! measure nothing. These wrappers add an allocation (the objects must not move) and a check of each return
//! value, nothing else.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

/// The kinds of pthread mutexes that a program meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `PTHREAD_MUTEX_NORMAL`, the default.
    Normal,
    /// `PTHREAD_MUTEX_RECURSIVE`.
    Recursive,
    /// `PTHREAD_MUTEX_ERRORCHECK`.
    ErrorCheck,
    /// `PTHREAD_MUTEX_ADAPTIVE_NP`: glibc spins a little before it sleeps.
    Adaptive,
}

/// A pthread call of a workload failed: the result would mean nothing, so the process ends.
#[cold]
#[inline(never)]
fn fail(call: &str, error: i32) -> ! {
    eprintln!("{call}: {}", std::io::Error::from_raw_os_error(error));
    std::process::abort();
}

#[inline]
fn check(call: &str, error: i32) {
    if error != 0 {
        fail(call, error);
    }
}

/// A pthread object that does not move, on cache lines of its own: where `malloc` happens to put it must not
/// matter.
#[derive(Debug)]
#[repr(align(128))]
struct Place<T>(UnsafeCell<T>);

impl<T> Place<T> {
    fn new(object: T) -> Box<Self> {
        Box::new(Self(UnsafeCell::new(object)))
    }
}

/// A `pthread_mutex_t`.
#[derive(Debug)]
pub struct Mutex(Box<Place<libc::pthread_mutex_t>>);

// SAFETY: pthread mutexes are made to be used from several threads.
unsafe impl Sync for Mutex {}
// SAFETY: the object is on the heap and does not move; it may be destroyed by any thread.
unsafe impl Send for Mutex {}

impl Mutex {
    /// A mutex of `kind`, unlocked.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        let mutex = Place::new(libc::PTHREAD_MUTEX_INITIALIZER);
        let kind = match kind {
            Kind::Normal => return Self(mutex),
            Kind::Recursive => libc::PTHREAD_MUTEX_RECURSIVE,
            Kind::ErrorCheck => libc::PTHREAD_MUTEX_ERRORCHECK,
            Kind::Adaptive => libc::PTHREAD_MUTEX_ADAPTIVE_NP,
        };
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        // SAFETY: a live local of the right size.
        check("pthread_mutexattr_init", unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) });
        // SAFETY: initialised by the line above.
        check("pthread_mutexattr_settype", unsafe {
            libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), kind)
        });
        // SAFETY: the object lives in the box, is not shared yet, and the attributes are initialised.
        check("pthread_mutex_init", unsafe { libc::pthread_mutex_init(mutex.0.get(), attributes.as_ptr()) });
        Self(mutex)
    }

    /// `pthread_mutex_lock`.
    #[inline]
    pub fn lock(&self) {
        // SAFETY: an initialised mutex that lives in the box of `self`.
        check("pthread_mutex_lock", unsafe { libc::pthread_mutex_lock(self.0.0.get()) });
    }

    /// `pthread_mutex_unlock`.
    #[inline]
    pub fn unlock(&self) {
        // SAFETY: as for `lock`. A call by a thread that does not hold it is an error of the workload, not of
        // memory.
        check("pthread_mutex_unlock", unsafe { libc::pthread_mutex_unlock(self.0.0.get()) });
    }
}

/// A `pthread_rwlock_t`.
#[derive(Debug)]
pub struct RwLock(Box<Place<libc::pthread_rwlock_t>>);

// SAFETY: pthread rwlocks are made to be used from several threads.
unsafe impl Sync for RwLock {}
// SAFETY: the object is on the heap and does not move; it may be destroyed by any thread.
unsafe impl Send for RwLock {}

impl Default for RwLock {
    fn default() -> Self {
        Self(Place::new(libc::PTHREAD_RWLOCK_INITIALIZER))
    }
}

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
const PREFER_WRITER_NONRECURSIVE: libc::c_int = 2;

unsafe extern "C" {
    fn pthread_rwlockattr_setkind_np(
        attributes: *mut libc::pthread_rwlockattr_t,
        kind: libc::c_int,
    ) -> libc::c_int;
}

impl RwLock {
    /// One of the kind that prefers writers, unlocked.
    #[must_use]
    pub fn preferring_writers() -> Self {
        let lock = Self::default();
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: memory for attributes.
        check("pthread_rwlockattr_init", unsafe { libc::pthread_rwlockattr_init(attributes) });
        // SAFETY: initialised above.
        let kind = unsafe { pthread_rwlockattr_setkind_np(attributes, PREFER_WRITER_NONRECURSIVE) };
        check("pthread_rwlockattr_setkind_np", kind);
        // SAFETY: a rwlock that no thread uses yet, in its place; the attributes from above.
        check("pthread_rwlock_init", unsafe { libc::pthread_rwlock_init(lock.0.0.get(), attributes) });
        // SAFETY: initialised above.
        check("pthread_rwlockattr_destroy", unsafe { libc::pthread_rwlockattr_destroy(attributes) });
        lock
    }

    /// `pthread_rwlock_rdlock`.
    #[inline]
    pub fn read(&self) {
        // SAFETY: an initialised rwlock that lives in the box of `self`.
        check("pthread_rwlock_rdlock", unsafe { libc::pthread_rwlock_rdlock(self.0.0.get()) });
    }

    /// `pthread_rwlock_wrlock`.
    #[inline]
    pub fn write(&self) {
        // SAFETY: as for `read`.
        check("pthread_rwlock_wrlock", unsafe { libc::pthread_rwlock_wrlock(self.0.0.get()) });
    }

    /// `pthread_rwlock_unlock`.
    #[inline]
    pub fn unlock(&self) {
        // SAFETY: as for `read`.
        check("pthread_rwlock_unlock", unsafe { libc::pthread_rwlock_unlock(self.0.0.get()) });
    }
}

/// A `pthread_cond_t`.
#[derive(Debug)]
pub struct Condvar(Box<Place<libc::pthread_cond_t>>);

// SAFETY: pthread condition variables are made to be used from several threads.
unsafe impl Sync for Condvar {}
// SAFETY: the object is on the heap and does not move; it may be destroyed by any thread.
unsafe impl Send for Condvar {}

impl Default for Condvar {
    fn default() -> Self {
        Self(Place::new(libc::PTHREAD_COND_INITIALIZER))
    }
}

impl Condvar {
    /// `pthread_cond_wait`; the caller holds `mutex`.
    #[inline]
    pub fn wait(&self, mutex: &Mutex) {
        // SAFETY: both are initialised and live in their boxes.
        check("pthread_cond_wait", unsafe { libc::pthread_cond_wait(self.0.0.get(), mutex.0.0.get()) });
    }

    /// `pthread_cond_signal`.
    #[inline]
    pub fn signal(&self) {
        // SAFETY: an initialised condition variable that lives in the box of `self`.
        check("pthread_cond_signal", unsafe { libc::pthread_cond_signal(self.0.0.get()) });
    }

    /// `pthread_cond_broadcast`.
    #[inline]
    pub fn broadcast(&self) {
        // SAFETY: as for `signal`.
        check("pthread_cond_broadcast", unsafe { libc::pthread_cond_broadcast(self.0.0.get()) });
    }
}

/// Data that a lock of this module protects.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Protected<T>(UnsafeCell<T>);

// SAFETY: `with` hands out access only under its callers' promise to hold the lock.
unsafe impl<T: Send> Sync for Protected<T> {}

impl<T> Protected<T> {
    /// Data before the first lock.
    pub fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// A pointer to the data.
    ///
    /// Its user holds the lock that protects this data: for writing exclusively, for reading at least shared.
    #[inline]
    pub fn get(&self) -> *mut T {
        self.0.get()
    }

    /// The data, when all threads are done.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}
