//! Cells that report unordered accesses.

use loom::cell::UnsafeCell;
use spinpark_platform as platform;

/// Memory that some lock protects; two accesses that no lock orders fail the model.
#[derive(Debug)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> platform::Cell<T> for Cell<T> {
    fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }

    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }
}

impl<T> Drop for Cell<T> {
    /// The drop check: every access is over.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.0.with_mut(|_| ());
        }
    }
}
