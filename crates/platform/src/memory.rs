//! Memory: atomics with std's method names, cells that a lock protects, the full fence, and the padding that
//! an interface's fields need in a lock.

use crate::Ordering;

/// What locks are made of, and the fence that orders it.
///
/// An atomic is as `core`'s, with the memory model of the machine. A cell is plain memory: two accesses that
/// no atomic orders are a data race.
pub trait Memory: Sized + Send + Sync + 'static {
    /// A 32-bit atomic that [`Futex::futex_wait`](crate::Futex::futex_wait) can sleep on.
    type AtomicU32: AtomicU32;

    /// An atomic pointer, for queues that are linked without a lock.
    type AtomicPtr<T>: AtomicPtr<T>;
    /// Memory that some lock protects.
    type Cell<T>: Cell<T>;

    /// Orders all memory accesses of the calling thread before it with all after it, as `fence(SeqCst)` does:
    /// of two threads that each write something, fence, and read what the other wrote, at least one sees it.
    #[inline(always)]
    fn full_fence() {
        core::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// What lock words are made of. Each method is that of [`core::sync::atomic::AtomicU32`].
///
/// No algorithm uses a `SeqCst` load or store: loom treats them as acquire and release.
#[allow(missing_docs)]
pub trait AtomicU32: Send + Sync + Sized + 'static {
    fn new(value: u32) -> Self;
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
    fn swap(&self, value: u32, order: Ordering) -> u32;
    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32>;
    fn compare_exchange_weak(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32>;
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32;
    fn fetch_and(&self, value: u32, order: Ordering) -> u32;
    fn fetch_or(&self, value: u32, order: Ordering) -> u32;
}

/// A pointer that several threads change. Each method is that of [`core::sync::atomic::AtomicPtr`].
#[allow(missing_docs)]
pub trait AtomicPtr<T>: Send + Sync + Sized {
    fn new(value: *mut T) -> Self;
    fn load(&self, order: Ordering) -> *mut T;
    fn store(&self, value: *mut T, order: Ordering);
    fn swap(&self, value: *mut T, order: Ordering) -> *mut T;
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T>;
}

/// Memory that is only touched under some lock. A model reports two accesses that are not ordered by it.
///
/// The pointers are good for the duration of the closure, which must be short and must not call out: `with`
/// for reading, `with_mut` for reading and writing. The caller, which knows the lock, may dereference them.
pub trait Cell<T>: Sized {
    /// A cell that holds `value`.
    fn new(value: T) -> Self;
    /// Calls `f` with a pointer to read from.
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R;
    /// Calls `f` with a pointer to read from and write to.
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R;
}

/// The fields in a lock that are not its own state. The algorithms do not touch them.
pub trait Layout: Sized + Send + Sync + 'static {
    /// Padding between a lock's word and the rest of its state: nothing, or fields of an interface that keeps
    /// them there. All zero by default. The algorithms do not touch it.
    type Padding: Default + Send + Sync;

    /// The same, between the queue lock and the head of the queue.
    type Gap: Default + Send + Sync;
}
