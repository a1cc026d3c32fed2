//! Locks with a policy of their own: how threads share one lock, as its type says.
//!
//! Threads learn while a program runs whether to spin for a lock, to back off or to sleep, and that is right for nearly
//! all locks: [`Mutex`](crate::Mutex) and [`RwLock`](crate::RwLock) have no other. A lock that is better off otherwise, by
//! a measurement, has its policy in its type; it is as large, and its uncontended calls have the same code.
//!
//! | policy | what threads do |
//! |---|---|
//! | [`Learned`] | as they learn: that of all other locks |
//! | [`Eager`] | spin for the lock, up to 50 µs, whether it has paid lately or not; not on one CPU |
//! | [`BackOff`] | leave the lock to its owner for a while: asleep on two CPUs, by polling seldom on more |
//! | [`ParkAtOnce`] | sleep at once |
//! | [`InOrder`] | sleep at once; while a woken waiter is on its way, the next release keeps the lock for it, so that running threads pass it once at most: for a waiter that must be prompt |
//! | [`CountedReaders`] | as `Learned`, but readers of a read-write lock are always counted in it: no write has to revoke a bias, and readers share a cache line |
//!
//! A policy changes which thread waits for how long, never what a lock guarantees. A [`Condvar`](crate::Condvar) waits
//! with a [`Mutex`](crate::Mutex) only. On other systems, where the locks are `parking_lot`'s, these types are the usual ones.
//!
//! For programs that cannot be changed, `spinpark tune` measures which locks are better off, and `spinpark run --policy`
//! gives them the policy.
//!
//! ```
//! use spinpark::policy::{CountedReaders, InOrder, MutexWith, RwLockWith};
//!
//! static LOG: MutexWith<InOrder, Vec<String>> = MutexWith::<InOrder, _>::new(Vec::new());
//! static TABLE: RwLockWith<CountedReaders, [u32; 4]> = RwLockWith::<CountedReaders, _>::new([0; 4]);
//!
//! TABLE.write()[1] = 7;
//! LOG.lock().push(format!("set to {}", TABLE.read()[1]));
//! assert_eq!(*LOG.lock(), ["set to 7"]);
//! ```

use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_locks::{self as locks, Chosen, Only, ReaderBias, Usual};

pub use crate::linux::raw_mutex::RawMutexWith;
pub use crate::linux::raw_rwlock::RawRwLockWith;

/// A [`Mutex`](crate::Mutex) with the policy `P`.
pub type MutexWith<P, T> = lock_api::Mutex<<P as Policy>::RawMutex, T>;

/// A [`RwLock`](crate::RwLock) with the policy `P`.
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
    #[doc(hidden)]
    type Locks: locks::Policy<Linux>;
    /// What the bias of a read-write lock begins with.
    #[doc(hidden)]
    const BIAS: u32;
}

macro_rules! policies {
    ($($(#[$documentation:meta])* $name:ident = $locks:ty, $bias:expr;)*) => {$(
        $(#[$documentation])*
        #[derive(Debug, Clone, Copy)]
        pub enum $name {}

        impl sealed::Sealed for $name {}

        impl Policy for $name {
            type RawMutex = RawMutexWith<Self>;
            type RawRwLock = RawRwLockWith<Self>;
            type Locks = $locks;
            const BIAS: u32 = $bias;
        }
    )*};
}

// The numbers are those of `locks::Choice::ALL`.
policies! {
    /// As threads learn.
    Learned = Usual, 0;
    /// Threads spin for the lock, whether it has paid lately or not.
    Eager = Chosen<Only<1>>, 0;
    /// Waiters leave the lock to its owner for a while.
    BackOff = Chosen<Only<2>>, 0;
    /// No thread spins.
    ParkAtOnce = Chosen<Only<3>>, 0;
    /// Running threads pass a waiter that was woken once at most.
    InOrder = Chosen<Only<4>>, 0;
    /// Readers are always counted in the lock.
    CountedReaders = Usual, ReaderBias::<Linux>::NEVER;
}

const _: () = {
    assert!(matches!(locks::Choice::ALL[1], locks::Choice::Eager));
    assert!(matches!(locks::Choice::ALL[2], locks::Choice::BackOff));
    assert!(matches!(locks::Choice::ALL[3], locks::Choice::Park));
    assert!(matches!(locks::Choice::ALL[4], locks::Choice::InOrder));
};
