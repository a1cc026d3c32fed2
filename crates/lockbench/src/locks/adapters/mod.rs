//! Whose locks: for each adapter, the functions that run a load on them.

mod classics;
pub mod condvar_2003;
pub mod condvar_by_name;
mod lock_api;
mod mtx;
mod pthread;
mod std;

use ::std::sync::LazyLock;

use super::any_mutex::{MakeMutex, any_mutex};
use super::load::Primitive;
use super::workloads::{Job, Mismatch, Outcome, condvar, mutex, rwlock};
use lock_api::{parking_lot_locks, spinpark_locks, usync_locks};

/// Runs a load on one kind of lock.
pub type Run = fn(&Job) -> Result<Outcome, Mismatch>;

/// Locks of one origin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Adapter {
    /// Its name in definitions.
    pub name: &'static str,
    /// The mutex, if there is one.
    pub mutex: Option<Run>,
    /// The recursive mutex.
    pub recursive: Option<Run>,
    /// The error-checking mutex.
    pub error_check: Option<Run>,
    /// The read-write lock.
    pub rwlock: Option<Run>,
    /// The condition variable, with its mutex.
    pub condvar: Option<Run>,
    /// Makes a mutex for workloads.
    pub any_mutex: Option<MakeMutex>,
}

impl Adapter {
    /// The function for loads that need `primitive`.
    #[must_use]
    pub fn run(&self, primitive: Primitive) -> Option<Run> {
        match primitive {
            Primitive::Mutex => self.mutex,
            Primitive::Recursive => self.recursive,
            Primitive::ErrorCheck => self.error_check,
            Primitive::RwLock => self.rwlock,
            Primitive::Condvar => self.condvar,
        }
    }
}

/// The adapters in this crate: those that need nothing but Rust and libc.
pub static ADAPTERS: LazyLock<Vec<Adapter>> =
    LazyLock::new(|| CURRENT.into_iter().chain(classics::adapters()).collect());

/// Ours, and those that we are compared with.
const CURRENT: [Adapter; 6] = [
    Adapter {
        name: "pthread",
        mutex: Some(mutex::<pthread::Mutex>),
        any_mutex: Some(any_mutex::<pthread::Mutex>),
        recursive: Some(mutex::<pthread::Recursive>),
        error_check: Some(mutex::<pthread::ErrorCheck>),
        rwlock: Some(rwlock::<pthread::RwLock>),
        condvar: Some(condvar::<pthread::Condvar>),
    },
    Adapter {
        name: "pthread-adaptive",
        mutex: Some(mutex::<pthread::Adaptive>),
        any_mutex: Some(any_mutex::<pthread::Adaptive>),
        recursive: None,
        error_check: None,
        rwlock: None,
        condvar: Some(condvar::<pthread::AdaptiveCondvar>),
    },
    Adapter {
        name: "std",
        mutex: Some(mutex::<std::Mutex>),
        any_mutex: Some(any_mutex::<std::Mutex>),
        recursive: None,
        error_check: None,
        rwlock: Some(rwlock::<std::RwLock>),
        condvar: Some(condvar::<std::Condvar>),
    },
    Adapter {
        name: "parking_lot",
        mutex: Some(mutex::<parking_lot_locks::Mutex>),
        any_mutex: Some(any_mutex::<parking_lot_locks::Mutex>),
        recursive: Some(mutex::<parking_lot_locks::Recursive>),
        error_check: None,
        rwlock: Some(rwlock::<parking_lot_locks::RwLock>),
        condvar: Some(condvar::<parking_lot_locks::Condvar>),
    },
    Adapter {
        name: "usync",
        mutex: Some(mutex::<usync_locks::Mutex>),
        any_mutex: Some(any_mutex::<usync_locks::Mutex>),
        recursive: Some(mutex::<usync_locks::Recursive>),
        error_check: None,
        rwlock: Some(rwlock::<usync_locks::RwLock>),
        condvar: Some(condvar::<usync_locks::Condvar>),
    },
    Adapter {
        name: "spinpark",
        mutex: Some(mutex::<spinpark_locks::Mutex>),
        any_mutex: Some(any_mutex::<spinpark_locks::Mutex>),
        recursive: Some(mutex::<spinpark_locks::Recursive>),
        error_check: None,
        rwlock: Some(rwlock::<spinpark_locks::RwLock>),
        condvar: Some(condvar::<spinpark_locks::Condvar>),
    },
];

/// The adapter of that name among `adapters`.
#[must_use]
pub fn by_name<'a>(adapters: &'a [Adapter], name: &str) -> Option<&'a Adapter> {
    adapters.iter().find(|adapter| adapter.name == name)
}
