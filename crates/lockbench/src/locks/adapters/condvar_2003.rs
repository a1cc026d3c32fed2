//! glibc's condition variable of 2003 in the variants of document 003.

use spinpark_classics::{condvar_2003, condvar_2003::Signalling, mutex_2003};
use spinpark_platform::Platform;

use crate::locks::primitives::{BenchCondvar, BenchMutex, GuardOf};

/// glibc's mutex of 2003.
pub struct Mutex2003<P: Platform>(mutex_2003::Mutex<P>);

impl<P: Platform> Default for Mutex2003<P> {
    fn default() -> Self {
        Self(mutex_2003::Mutex::new())
    }
}

/// Unlocks when it is dropped.
pub struct MutexGuard<'a, P: Platform>(&'a mutex_2003::Mutex<P>);

impl<P: Platform> Drop for MutexGuard<'_, P> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

// SAFETY: the mutex excludes, as its models show.
unsafe impl<P: Platform> BenchMutex for Mutex2003<P> {
    type Guard<'a> = MutexGuard<'a, P>;

    #[inline]
    fn lock(&self) -> MutexGuard<'_, P> {
        self.0.lock();
        MutexGuard(&self.0)
    }
}

/// glibc's condition variable of 2003, with signals of the kind `S`.
pub struct Condvar2003<P: Platform, S: Signalling>(condvar_2003::Condvar<P, S>);

impl<P: Platform, S: Signalling> Default for Condvar2003<P, S> {
    fn default() -> Self {
        Self(condvar_2003::Condvar::new())
    }
}

impl<P: Platform, S: Signalling> BenchCondvar for Condvar2003<P, S> {
    type Mutex = Mutex2003<P>;

    #[inline]
    fn wait<'a>(&self, guard: GuardOf<'a, Self>) -> GuardOf<'a, Self> {
        self.0.wait(guard.0, None);
        guard
    }

    #[inline]
    fn signal(&self) {
        self.0.signal();
    }

    #[inline]
    fn broadcast(&self) {
        self.0.broadcast();
    }
}
