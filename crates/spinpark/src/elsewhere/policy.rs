//! Locks with a policy of their own: on Linux only. Here they are the usual ones, whatever their policy.

use std::time::{Duration, Instant};

/// A mutex whose policy counts on Linux only.
pub type MutexWith<P, T> = lock_api::Mutex<<P as Policy>::RawMutex, T>;

/// A read-write lock whose policy counts on Linux only.
pub type RwLockWith<P, T> = lock_api::RwLock<<P as Policy>::RawRwLock, T>;

mod sealed {
    pub trait Sealed {}
}

/// How threads share a lock: one of the types of this module.
pub trait Policy: sealed::Sealed + Sized + Send + Sync + 'static {
    /// The mutex.
    type RawMutex: lock_api::RawMutexFair + lock_api::RawMutexTimed<Duration = Duration, Instant = Instant>;
    /// The read-write lock.
    type RawRwLock: lock_api::RawRwLockTimed<Duration = Duration, Instant = Instant>;
}

macro_rules! policies {
    ($($name:ident)*) => {$(
        /// Counts on Linux only.
        #[derive(Debug, Clone, Copy)]
        pub enum $name {}

        impl sealed::Sealed for $name {}

        impl Policy for $name {
            type RawMutex = super::RawMutex;
            type RawRwLock = super::RawRwLock;
        }
    )*};
}

policies! { Learned Eager BackOff ParkAtOnce InOrder CountedReaders }
