//! The locks that can be chosen by name: the same names as in `spinpark bench locks`.

mod any;
mod catalogue;

pub use any::{AnyCondvar, AnyMutex, AnyRwLock};
pub(crate) use catalogue::{CONDVAR, MUTEX, RWLOCK};
pub use catalogue::{LockInfo, condvar, locks, mutex, rwlock};
