//! Whose locks: for each adapter, the functions that run a load on them.
//!
//! The peers of other languages are in a worker of their own, `lab/peers`.

use ::std::sync::LazyLock;

use super::load::Primitive;
use super::primitives::{BenchCondvar, BenchMutex, BenchRwLock, MakeMutex, any_mutex};
use super::workloads::{self, Job, Mismatch, RunResult};

/// The origins, in the order in which they are listed.
macro_rules! origins {
    (files: $($origin:ty),*; lock_api: $($krate:ident: $($kind:ident)*),*;) => {
        $(mod $krate { lock_api_adapter!($krate: $($kind)*); })*

        const CURRENT: &[Adapter] = &[$(<$origin>::ADAPTER,)* $($krate::Locks::ADAPTER),*];

        /// Does it with the condition variables of `adapter`; none if it has none, or none in this process.
        pub fn with_condvar<U: UseCondvar>(adapter: &str, user: U) -> Option<U::Output> {
            match adapter {
                $(name if name == <$origin>::ADAPTER.name => <$origin>::with_condvar(user),)*
                $(stringify!($krate) => $krate::Locks::with_condvar(user),)*
                _ => None,
            }
        }
    };
}

/// A mutex: its type, how it is made, its guard, and how that is had.
macro_rules! mutex {
    ($name:ident($mutex:ty), $guard:ty, |$it:ident| $lock:expr) => {
        mutex!($name($mutex) = Default::default(), $guard, |$it| $lock);
    };
    ($name:ident($mutex:ty) = $new:expr, $guard:ty, |$it:ident| $lock:expr) => {
        pub(super) struct $name($mutex);

        impl Default for $name {
            fn default() -> Self {
                Self($new)
            }
        }

        // SAFETY: every mutex that stands here excludes other threads.
        unsafe impl $crate::locks::primitives::BenchMutex for $name {
            type Guard<'a> = $guard;

            #[inline]
            fn lock(&self) -> Self::Guard<'_> {
                let $it = &self.0;
                $lock
            }
        }
    };
}

/// A read-write lock: its type, and its guards.
macro_rules! rwlock {
    ($name:ident($lock:ty), $($guards:tt)*) => {
        rwlock!($name($lock) = Default::default(), $($guards)*);
    };
    (
        $name:ident($lock:ty) = $new:expr, $r:ty: |$reading:ident| $read:expr, $w:ty: |$writing:ident| $write:expr
    ) => {
        pub(super) struct $name($lock);

        impl Default for $name {
            fn default() -> Self {
                Self($new)
            }
        }

        // SAFETY: every read-write lock that stands here excludes.
        unsafe impl $crate::locks::primitives::BenchRwLock for $name {
            type Read<'a> = $r;
            type Write<'a> = $w;

            #[inline]
            fn read(&self) -> Self::Read<'_> {
                let $reading = &self.0;
                $read
            }

            #[inline]
            fn write(&self) -> Self::Write<'_> {
                let $writing = &self.0;
                $write
            }
        }
    };
}

/// A condition variable: its type, its mutex, and what it does.
macro_rules! condvar {
    (
        $name:ident($condvar:ty) of $mutex:ident, |$waiting:ident, $guard:ident| $wait:expr,
        signal: |$one:ident| $signal:expr, broadcast: |$all:ident| $broadcast:expr
    ) => {
        #[derive(Default)]
        pub(super) struct $name($condvar);

        impl $crate::locks::primitives::BenchCondvar for $name {
            type Mutex = $mutex;

            #[inline]
            fn wait<'a>(
                &self,
                #[allow(unused_mut)] mut $guard: $crate::locks::primitives::GuardOf<'a, Self>,
            ) -> $crate::locks::primitives::GuardOf<'a, Self> {
                let $waiting = &self.0;
                $wait
            }

            #[inline]
            fn signal(&self) {
                let $one = &self.0;
                $signal;
            }

            #[inline]
            fn broadcast(&self) {
                let $all = &self.0;
                $broadcast;
            }
        }
    };
}

/// The adapter of a crate whose locks are `lock_api`'s types, of some kinds.
macro_rules! lock_api_adapter {
    ($krate:ident: $($kind:ident)*) => {
        pub(super) struct Locks;

        impl super::Origin for Locks {
            const ADAPTER: super::Adapter = {
                let adapter = super::Adapter::new(stringify!($krate));
                $(let adapter = lock_api_kind!($kind in adapter);)*
                adapter
            };

            $(lock_api_kind!($kind for with_condvar);)*
        }

        $(lock_api_kind!($kind of $krate);)*
    };
}

/// A kind of lock of such a crate: its type, its place in an adapter, and what is done with it.
macro_rules! lock_api_kind {
    (mutex of $krate:ident) => {
        mutex!(Mutex(::$krate::Mutex<()>), ::$krate::MutexGuard<'a, ()>, |it| it.lock());
    };
    (mutex in $adapter:ident) => {
        $adapter.mutex::<Mutex>()
    };
    (recursive of $krate:ident) => {
        mutex!(Recursive(::$krate::ReentrantMutex<()>), ::$krate::ReentrantMutexGuard<'a, ()>, |it| it.lock());
    };
    (recursive in $adapter:ident) => {
        super::Adapter { recursive: Some($crate::locks::workloads::mutex::<Recursive>), ..$adapter }
    };
    (rwlock of $krate:ident) => {
        rwlock!(
            RwLock(::$krate::RwLock<()>),
            ::$krate::RwLockReadGuard<'a, ()>: |it| it.read(),
            ::$krate::RwLockWriteGuard<'a, ()>: |it| it.write()
        );
    };
    (rwlock in $adapter:ident) => {
        $adapter.rwlock::<RwLock>()
    };
    (condvar of $krate:ident) => {
        condvar!(
            Condvar(::$krate::Condvar) of Mutex,
            |it, guard| {
                it.wait(&mut guard);
                guard
            },
            signal: |it| it.notify_one(),
            broadcast: |it| it.notify_all()
        );
    };
    (condvar in $adapter:ident) => {
        $adapter.condvar::<Condvar>()
    };
    (condvar for with_condvar) => {
        fn with_condvar<U: super::UseCondvar>(user: U) -> Option<U::Output> {
            Some(user.with::<Condvar>())
        }
    };
    ($kind:ident for with_condvar) => {};
}

pub mod classics;
mod pthread;
mod std;

// A crate that has types like `parking_lot`'s at its root is a word among `lock_api`, with the kinds that it
// has; any other is a file as `std.rs`, with its `mod` line, and `NAME::Locks` among `files`.
origins! {
    files: pthread::Locks, pthread::AdaptiveLocks, std::Locks;
    lock_api:
        parking_lot: mutex recursive rwlock condvar,
        usync: mutex recursive rwlock condvar,
        spinpark: mutex recursive rwlock condvar;
}

/// Runs a load on one kind of lock.
pub type Run = fn(&Job) -> Result<RunResult, Mismatch>;

/// Locks of one origin.
#[derive(Debug, Clone, Copy)]
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
    /// The read-write lock that prefers writers.
    pub writers_first: Option<Run>,
    /// The condition variable, with its mutex.
    pub condvar: Option<Run>,
    /// Makes a mutex for workloads.
    pub any_mutex: Option<MakeMutex>,
}

impl Adapter {
    /// One without locks.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        let [mutex, recursive, error_check, rwlock, writers_first, condvar] = [None; 6];
        Self { name, mutex, recursive, error_check, rwlock, writers_first, condvar, any_mutex: None }
    }

    /// With this mutex.
    #[must_use]
    pub const fn mutex<M: BenchMutex + 'static>(self) -> Self {
        Self { mutex: Some(workloads::mutex::<M>), any_mutex: Some(any_mutex::<M>), ..self }
    }

    /// With this read-write lock.
    #[must_use]
    pub const fn rwlock<R: BenchRwLock + 'static>(self) -> Self {
        Self { rwlock: Some(workloads::rwlock::<R>), ..self }
    }

    /// With this condition variable.
    #[must_use]
    pub const fn condvar<C: BenchCondvar + 'static>(self) -> Self {
        Self { condvar: Some(workloads::condvar::<C>), ..self }
    }

    /// The function for loads that need `primitive`.
    #[must_use]
    pub fn run(&self, primitive: Primitive) -> Option<Run> {
        match primitive {
            Primitive::Mutex => self.mutex,
            Primitive::Recursive => self.recursive,
            Primitive::ErrorCheck => self.error_check,
            Primitive::RwLock => self.rwlock,
            Primitive::WritersFirst => self.writers_first,
            Primitive::Condvar => self.condvar,
        }
    }
}

/// Locks of one origin, in a file of their own.
trait Origin {
    /// Their adapter.
    const ADAPTER: Adapter;

    /// Does something with their condition variables, if they have some.
    fn with_condvar<U: UseCondvar>(_: U) -> Option<U::Output> {
        None
    }
}

/// What is done with the condition variables of an adapter.
pub trait UseCondvar {
    /// What comes of it.
    type Output;

    /// Does it with the type `C`.
    fn with<C: BenchCondvar>(self) -> Self::Output;
}

/// The adapters in this crate: those that need nothing but Rust and libc.
pub static ADAPTERS: LazyLock<Vec<Adapter>> =
    LazyLock::new(|| CURRENT.iter().copied().chain(classics::adapters()).collect());

/// The adapter of that name among `adapters`.
#[must_use]
pub fn by_name<'a>(adapters: &'a [Adapter], name: &str) -> Option<&'a Adapter> {
    adapters.iter().find(|adapter| adapter.name == name)
}
