//! Locks behind one face, so that a workload takes any of them.

use spinpark_classics::condvar_2003::{Condvar as Condvar2003, Signalling};
use spinpark_classics::mutex_2003;
use spinpark_classics::{RawLock, RawRwLock};
use spinpark_locks::{Preference, RawCondvar, RawMutex, RawRwLock as OurRwLock};

use crate::object::Object;
use crate::platform::{Sim, Tuned};

/// A mutex.
pub trait AnyMutex {
    /// Acquires.
    fn lock(&self);
    /// Releases.
    fn unlock(&self);
}

/// A read-write lock.
pub trait AnyRwLock {
    /// Acquires for reading.
    fn read(&self);
    /// Acquires for reading if that is possible at once.
    fn try_read(&self) -> bool;
    /// Releases a read lock.
    fn unlock_read(&self);
    /// Acquires for writing.
    fn write(&self);
    /// Releases the write lock.
    fn unlock_write(&self);
}

/// Two condition variables with their mutex.
pub trait AnyCondvar: AnyMutex {
    /// Releases the mutex, waits for a signal of variable `which` (0 or 1), or for nothing, and acquires the
    /// mutex.
    fn wait(&self, which: usize);
    /// Wakes one that waits for variable `which`.
    fn signal(&self, which: usize);
    /// Wakes all that wait for variable `which`.
    fn broadcast(&self, which: usize);
}

/// A part of an object that has a pair of cache lines of its own.
#[repr(align(128))]
pub(super) struct Apart<L>(pub(super) L);

impl<L: AnyMutex> AnyMutex for Object<L> {
    fn lock(&self) {
        (**self).lock();
    }
    fn unlock(&self) {
        (**self).unlock();
    }
}

impl<L: AnyRwLock> AnyRwLock for Object<L> {
    fn read(&self) {
        (**self).read();
    }
    fn try_read(&self) -> bool {
        (**self).try_read()
    }
    fn unlock_read(&self) {
        (**self).unlock_read();
    }
    fn write(&self) {
        (**self).write();
    }
    fn unlock_write(&self) {
        (**self).unlock_write();
    }
}

impl<L: AnyCondvar> AnyCondvar for Object<L> {
    fn wait(&self, which: usize) {
        (**self).wait(which);
    }
    fn signal(&self, which: usize) {
        (**self).signal(which);
    }
    fn broadcast(&self, which: usize) {
        (**self).broadcast(which);
    }
}

impl<T: Tuned> AnyMutex for RawMutex<Sim<T>> {
    fn lock(&self) {
        self.lock();
    }
    fn unlock(&self) {
        self.unlock();
    }
}

impl<T: Tuned> AnyRwLock for OurRwLock<Sim<T>> {
    fn read(&self) {
        self.read(Preference::default());
    }
    fn try_read(&self) -> bool {
        self.try_read(Preference::default())
    }
    fn unlock_read(&self) {
        self.unlock_read();
    }
    fn write(&self) {
        self.write();
    }
    fn unlock_write(&self) {
        self.unlock_write();
    }
}

/// A classic mutex.
pub(super) struct Classic<L>(pub(super) L);

impl<L: RawLock> AnyMutex for Classic<L> {
    fn lock(&self) {
        self.0.lock();
    }
    fn unlock(&self) {
        self.0.unlock();
    }
}

/// A classic read-write lock. As a mutex, it is taken for writing.
pub(super) struct ClassicRw<L>(pub(super) L);

impl<L: RawRwLock> AnyRwLock for ClassicRw<L> {
    fn read(&self) {
        self.0.read();
    }
    fn try_read(&self) -> bool {
        self.0.try_read()
    }
    fn unlock_read(&self) {
        self.0.unlock_read();
    }
    fn write(&self) {
        self.0.write();
    }
    fn unlock_write(&self) {
        self.0.unlock_write();
    }
}

impl<L: RawRwLock> AnyMutex for ClassicRw<L> {
    fn lock(&self) {
        self.0.write();
    }
    fn unlock(&self) {
        self.0.unlock_write();
    }
}

/// A mutex of three states; the one that is inside the condition variable of 2003, and in glibc.
pub(super) struct Futex<T: Tuned>(pub(super) mutex_2003::Mutex<Sim<T>>);

impl<T: Tuned> AnyMutex for Futex<T> {
    fn lock(&self) {
        self.0.lock();
    }
    fn unlock(&self) {
        self.0.unlock();
    }
}

/// Two of our condition variables and our mutex.
pub(super) struct OurPair<T: Tuned> {
    pub(super) mutex: RawMutex<Sim<T>>,
    pub(super) condvars: [Apart<RawCondvar<Sim<T>>>; 2],
}

impl<T: Tuned> AnyMutex for OurPair<T> {
    fn lock(&self) {
        self.mutex.lock();
    }
    fn unlock(&self) {
        self.mutex.unlock();
    }
}

impl<T: Tuned> AnyCondvar for OurPair<T> {
    fn wait(&self, which: usize) {
        self.condvars[which].0.wait(&self.mutex, None);
    }
    fn signal(&self, which: usize) {
        self.condvars[which].0.signal();
    }
    fn broadcast(&self, which: usize) {
        self.condvars[which].0.broadcast();
    }
}

/// Two condition variables of 2003 and their mutex.
pub(super) struct Pair2003<T: Tuned, S: Signalling> {
    pub(super) mutex: mutex_2003::Mutex<Sim<T>>,
    pub(super) condvars: [Apart<Condvar2003<Sim<T>, S>>; 2],
}

impl<T: Tuned, S: Signalling> AnyMutex for Pair2003<T, S> {
    fn lock(&self) {
        self.mutex.lock();
    }
    fn unlock(&self) {
        self.mutex.unlock();
    }
}

impl<T: Tuned, S: Signalling> AnyCondvar for Pair2003<T, S> {
    fn wait(&self, which: usize) {
        self.condvars[which].0.wait(&self.mutex, None);
    }
    fn signal(&self, which: usize) {
        self.condvars[which].0.signal();
    }
    fn broadcast(&self, which: usize) {
        self.condvars[which].0.broadcast();
    }
}
