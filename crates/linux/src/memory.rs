//! What locks are made of: core's own atomics, cells that are core's `UnsafeCell`, and padding for an
//! interface's fields.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::sync::atomic;

use spinpark_platform as platform;
use spinpark_platform::{Layout, Memory};

/// This machine: Linux, with everything private to the process.
pub type Linux = LinuxWith<()>;

/// [`Linux`], with padding in its locks for the fields of an interface.
pub struct LinuxWith<R>(PhantomData<R>);

/// What an interface keeps in the locks: see [`Layout::Padding`] and [`Layout::Gap`].
pub trait LockPadding: Send + Sync + 'static {
    /// Behind the lock word.
    type Padding: Default + Send + Sync;
    /// Before the head of the queue.
    type Gap: Default + Send + Sync;

    /// Whether readers of the read-write lock at `lock` may use slots. Asked before the first of them would.
    #[must_use]
    fn may_have_bias(lock: usize) -> bool {
        let _ = lock;
        true
    }
}

impl LockPadding for () {
    type Padding = ();
    type Gap = ();
}

impl<R: LockPadding> Layout for LinuxWith<R> {
    type Padding = R::Padding;
    type Gap = R::Gap;
}

/// Memory that some lock protects.
#[repr(transparent)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    /// A cell that holds `value`, also in constants.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
}

impl<T> platform::Cell<T> for Cell<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    #[inline(always)]
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

impl<R: LockPadding> Memory for LinuxWith<R> {
    type AtomicU32 = atomic::AtomicU32;
    type AtomicPtr<T> = atomic::AtomicPtr<T>;
    type Cell<T> = Cell<T>;
}
