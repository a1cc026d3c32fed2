//! What a workload needs from a lock: small traits, so that a Rust lock is inlined into a workload as into a
//! user's program.
//!
//! A lock and the data that it protects stand on cache lines of their own, whatever the lock's size: what is
//! compared is the algorithm. (A small lock on a line with its data saves a cache line: [`MutexInData`] has
//! that, for loads that ask for it.)

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::ops::{Deref, DerefMut};

/// A mutex.
///
/// # Safety
///
/// While a guard exists, no other thread can get one.
pub unsafe trait BenchMutex: Default + Send + Sync {
    /// Unlocks when it is dropped.
    type Guard<'a>
    where
        Self: 'a;

    /// Waits until there is no other guard.
    fn lock(&self) -> Self::Guard<'_>;
}

/// A read-write lock.
///
/// # Safety
///
/// While a guard for writing exists, there is no other guard.
pub unsafe trait BenchRwLock: Default + Send + Sync {
    /// Unlocks when it is dropped.
    type Read<'a>
    where
        Self: 'a;
    /// Unlocks when it is dropped.
    type Write<'a>
    where
        Self: 'a;

    /// Waits until there is no writer.
    fn read(&self) -> Self::Read<'_>;

    /// Waits until there are neither readers nor writers.
    fn write(&self) -> Self::Write<'_>;
}

/// A condition variable.
pub trait BenchCondvar: Default + Send + Sync {
    /// The mutex that it works with.
    type Mutex: BenchMutex;

    /// Gives up the mutex, waits for a signal (or for nothing), and takes the mutex again.
    fn wait<'a>(&self, guard: GuardOf<'a, Self>) -> GuardOf<'a, Self>;

    /// Wakes one waiter.
    fn signal(&self);

    /// Wakes all waiters.
    fn broadcast(&self);
}

/// The guard of a condition variable's mutex.
pub type GuardOf<'a, C> = <<C as BenchCondvar>::Mutex as BenchMutex>::Guard<'a>;

/// Something on cache lines of its own. Two, since CPUs fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

/// Data behind a mutex.
#[derive(Debug, Default)]
pub struct Guarded<M, T> {
    lock: Apart<M>,
    data: Apart<UnsafeCell<T>>,
}

// SAFETY: the data is reached through `Held` only, of which there is one at a time, as `BenchMutex` promises.
unsafe impl<M: BenchMutex, T: Send> Sync for Guarded<M, T> {}

impl<M: BenchMutex, T> Guarded<M, T> {
    /// `data` behind a mutex that no thread holds.
    pub fn new(data: T) -> Self {
        Self { lock: Apart(M::default()), data: Apart(UnsafeCell::new(data)) }
    }

    /// Locks the mutex.
    #[inline]
    pub fn lock(&self) -> Held<'_, M, T> {
        Held { guard: self.lock.0.lock(), data: &self.data.0 }
    }

    /// The data, when all threads are done.
    pub fn into_inner(self) -> T {
        self.data.0.into_inner()
    }
}

/// Access to the data of a [`Guarded`], until it is dropped.
pub struct Held<'a, M: BenchMutex + 'a, T> {
    guard: M::Guard<'a>,
    data: &'a UnsafeCell<T>,
}

impl<M: BenchMutex, T> Held<'_, M, T> {
    /// Waits for a signal of `condvar`.
    #[inline]
    pub fn wait<C: BenchCondvar<Mutex = M>>(self, condvar: &C) -> Self {
        Self { guard: condvar.wait(self.guard), data: self.data }
    }
}

impl<M: BenchMutex, T> Deref for Held<'_, M, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard excludes others; our own references follow the borrows of `self`.
        unsafe { &*self.data.get() }
    }
}

impl<M: BenchMutex, T> DerefMut for Held<'_, M, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { &mut *self.data.get() }
    }
}

/// Data behind a read-write lock.
#[derive(Debug, Default)]
pub(super) struct Shared<R, T> {
    lock: Apart<R>,
    data: Apart<UnsafeCell<T>>,
}

// SAFETY: the data is reached under a guard only: shared under one for reading, alone under one for writing.
unsafe impl<R: BenchRwLock, T: Send + Sync> Sync for Shared<R, T> {}

impl<R: BenchRwLock, T> Shared<R, T> {
    pub(super) fn new(data: T) -> Self {
        Self { lock: Apart(R::default()), data: Apart(UnsafeCell::new(data)) }
    }

    /// Calls `section` while reading. `acquired` is called first, once the lock is held.
    #[inline]
    pub(super) fn read<X>(&self, acquired: impl FnOnce(), section: impl FnOnce(&T) -> X) -> X {
        let _guard = self.lock.0.read();
        acquired();
        // SAFETY: the guard keeps writers away until the end of this function.
        section(unsafe { &*self.data.0.get() })
    }

    /// Calls `section` while writing. `acquired` is called first, once the lock is held.
    #[inline]
    pub(super) fn write<X>(&self, acquired: impl FnOnce(), section: impl FnOnce(&mut T) -> X) -> X {
        let _guard = self.lock.0.write();
        acquired();
        // SAFETY: the guard excludes all other threads until the end of this function.
        section(unsafe { &mut *self.data.0.get() })
    }

    /// The data, when all threads are done.
    pub(super) fn into_inner(self) -> T {
        self.data.0.into_inner()
    }
}

/// A mutex of any adapter, behind a pointer: for workloads whose sections are system calls, where an indirect
/// call of two nanoseconds does not matter.
pub trait AnyMutex: Send + Sync {
    /// Runs `section` while no other thread runs one.
    fn with(&self, section: &mut dyn FnMut());
}

impl<M: BenchMutex> AnyMutex for Apart<M> {
    fn with(&self, section: &mut dyn FnMut()) {
        let _guard = self.0.lock();
        section();
    }
}

/// Makes a mutex.
pub type MakeMutex = fn() -> Box<dyn AnyMutex>;

/// A new mutex of the type `M`, on cache lines of its own.
#[must_use]
pub fn any_mutex<M: BenchMutex + 'static>() -> Box<dyn AnyMutex> {
    Box::new(Apart(M::default()))
}

/// A counter, a mutex and a counter in that order, each right behind the one before, from the start of a
/// cache line (of two, since CPUs fetch lines in pairs). So the mutex' own size and alignment say what is on
/// the line of its word.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct MutexInData<M> {
    before: UnsafeCell<u64>,
    lock: M,
    behind: UnsafeCell<u64>,
}

// SAFETY: the counters are touched in `with` and through ownership only, in `with` under a guard, of which
// there is one at a time, as `BenchMutex` promises.
unsafe impl<M: BenchMutex> Sync for MutexInData<M> {}

impl<M: BenchMutex> MutexInData<M> {
    /// Counts on one side, calls `inside`, and counts on the other, while the lock is held. `acquired` is
    /// called first.
    #[inline]
    pub(crate) fn with(&self, acquired: impl FnOnce(), inside: impl FnOnce()) {
        let _guard = self.lock.lock();
        acquired();
        // SAFETY: the guard excludes others; there is no other reference.
        *black_box(unsafe { &mut *self.before.get() }) += 1;
        inside();
        // SAFETY: the guard excludes others; there is no other reference.
        *black_box(unsafe { &mut *self.behind.get() }) += 1;
    }

    /// The counters, when all threads are done.
    pub(crate) fn into_inner(self) -> [u64; 2] {
        [self.before, self.behind].map(UnsafeCell::into_inner)
    }
}

/// How a [`MutexInData`] lies in memory.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Size and alignment of the mutex, bytes.
    pub(crate) mutex: (usize, usize),
    /// The cache lines of the counter before it, of its first byte, of the counter behind it.
    pub(crate) lines: [usize; 3],
}

#[cfg(test)]
impl<M> MutexInData<M> {
    pub(crate) const LAYOUT: Layout = {
        const LINE: usize = 64;
        let line = [
            std::mem::offset_of!(Self, before),
            std::mem::offset_of!(Self, lock),
            std::mem::offset_of!(Self, behind),
        ];
        Layout {
            mutex: (size_of::<M>(), align_of::<M>()),
            lines: [line[0] / LINE, line[1] / LINE, line[2] / LINE],
        }
    };
}
