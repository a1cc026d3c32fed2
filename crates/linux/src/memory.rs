//! Atomics are core's own; a cell is core's `UnsafeCell`.

use core::cell::UnsafeCell;
use core::sync::atomic;

use spinpark_platform as platform;
use spinpark_platform::Memory;

use crate::layout::{LinuxWith, Rooms};

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

impl<R: Rooms> Memory for LinuxWith<R> {
    type AtomicU32 = atomic::AtomicU32;
    type AtomicPtr<T> = atomic::AtomicPtr<T>;
    type Cell<T> = Cell<T>;
}
