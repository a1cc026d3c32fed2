//! Crates whose locks are `lock_api`'s types: they differ in the path only.

/// The adapter of one such crate, as a module.
macro_rules! adapter {
    ($module:ident, $krate:ident) => {
        #[doc = concat!("The locks of the crate `", stringify!($krate), "`.")]
        pub(super) mod $module {
            use crate::locks::primitives::{BenchCondvar, BenchMutex, BenchRwLock, GuardOf};

            /// A mutex.
            #[derive(Debug, Default)]
            pub(crate) struct Mutex($krate::Mutex<()>);

            /// A recursive mutex.
            #[derive(Debug, Default)]
            pub(crate) struct Recursive($krate::ReentrantMutex<()>);

            /// A read-write lock.
            #[derive(Debug, Default)]
            pub(crate) struct RwLock($krate::RwLock<()>);

            /// A condition variable.
            #[derive(Debug, Default)]
            pub(crate) struct Condvar($krate::Condvar);

            // SAFETY: the crate's mutexes exclude.
            unsafe impl BenchMutex for Mutex {
                type Guard<'a> = $krate::MutexGuard<'a, ()>;

                #[inline]
                fn lock(&self) -> Self::Guard<'_> {
                    self.0.lock()
                }
            }

            // SAFETY: the crate's reentrant mutexes exclude other threads.
            unsafe impl BenchMutex for Recursive {
                type Guard<'a> = $krate::ReentrantMutexGuard<'a, ()>;

                #[inline]
                fn lock(&self) -> Self::Guard<'_> {
                    self.0.lock()
                }
            }

            // SAFETY: the crate's read-write locks exclude.
            unsafe impl BenchRwLock for RwLock {
                type Read<'a> = $krate::RwLockReadGuard<'a, ()>;
                type Write<'a> = $krate::RwLockWriteGuard<'a, ()>;

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
        }
    };
}

adapter!(spinpark_locks, spinpark);
adapter!(parking_lot_locks, parking_lot);
adapter!(usync_locks, usync);
