//! Memory that a lock protects: it costs what any memory costs.

use std::cell::UnsafeCell;

use spinpark_platform as platform;

use super::life;
use crate::access::touch;
use crate::world::memory::Access;

/// See [`spinpark_platform::Cell`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> platform::Cell<T> for Cell<T> {
    fn new(value: T) -> Self {
        life::begin();
        Self(UnsafeCell::new(value))
    }

    fn with<R>(&self, act: impl FnOnce(*const T) -> R) -> R {
        touch(self.0.get().addr(), Access::Load);
        act(self.0.get())
    }

    fn with_mut<R>(&self, act: impl FnOnce(*mut T) -> R) -> R {
        touch(self.0.get().addr(), Access::Store); // its contents are there at once: see `memory::stores`
        act(self.0.get())
    }
}

impl<T> Drop for Cell<T> {
    fn drop(&mut self) {
        life::end(self.0.get().addr(), size_of::<T>());
    }
}
