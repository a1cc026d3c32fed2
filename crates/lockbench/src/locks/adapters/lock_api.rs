//! Crates whose locks are `lock_api`'s types: they differ in the path only.

/// What an adapter of such a crate consists of.
macro_rules! lock_api_adapter {
    ($krate:ident) => {
        use super::{Adapter, Origin, UseCondvar};
        use crate::locks::any_mutex::any_mutex;
        use crate::locks::primitives::{BenchCondvar, BenchMutex, BenchRwLock, GuardOf};
        use crate::locks::workloads::{condvar, mutex, rwlock};

        /// Its locks.
        pub(super) struct Locks;

        impl Origin for Locks {
            const ADAPTER: Adapter = Adapter {
                name: stringify!($krate),
                mutex: Some(mutex::<Mutex>),
                any_mutex: Some(any_mutex::<Mutex>),
                recursive: Some(mutex::<Recursive>),
                error_check: None,
                rwlock: Some(rwlock::<RwLock>),
                condvar: Some(condvar::<Condvar>),
            };

            fn with_condvar<U: UseCondvar>(user: U) -> Option<U::Output> {
                Some(user.with::<Condvar>())
            }
        }

        /// A mutex.
        #[derive(Debug, Default)]
        pub(super) struct Mutex(::$krate::Mutex<()>);

        /// A recursive mutex.
        #[derive(Debug, Default)]
        pub(super) struct Recursive(::$krate::ReentrantMutex<()>);

        /// A read-write lock.
        #[derive(Debug, Default)]
        pub(super) struct RwLock(::$krate::RwLock<()>);

        /// A condition variable.
        #[derive(Debug, Default)]
        pub(super) struct Condvar(::$krate::Condvar);

        // SAFETY: the crate's mutexes exclude.
        unsafe impl BenchMutex for Mutex {
            type Guard<'a> = ::$krate::MutexGuard<'a, ()>;

            #[inline]
            fn lock(&self) -> Self::Guard<'_> {
                self.0.lock()
            }
        }

        // SAFETY: the crate's reentrant mutexes exclude other threads.
        unsafe impl BenchMutex for Recursive {
            type Guard<'a> = ::$krate::ReentrantMutexGuard<'a, ()>;

            #[inline]
            fn lock(&self) -> Self::Guard<'_> {
                self.0.lock()
            }
        }

        // SAFETY: the crate's read-write locks exclude.
        unsafe impl BenchRwLock for RwLock {
            type Read<'a> = ::$krate::RwLockReadGuard<'a, ()>;
            type Write<'a> = ::$krate::RwLockWriteGuard<'a, ()>;

            #[inline]
            fn read(&self) -> Self::Read<'_> {
                self.0.read()
            }

            #[inline]
            fn write(&self) -> Self::Write<'_> {
                self.0.write()
            }
        }

        impl BenchCondvar for Condvar {
            type Mutex = Mutex;

            #[inline]
            fn wait<'a>(&self, mut guard: GuardOf<'a, Self>) -> GuardOf<'a, Self> {
                self.0.wait(&mut guard);
                guard
            }

            #[inline]
            fn signal(&self) {
                self.0.notify_one();
            }

            #[inline]
            fn broadcast(&self) {
                self.0.notify_all();
            }
        }
    };
}
pub(super) use lock_api_adapter;
