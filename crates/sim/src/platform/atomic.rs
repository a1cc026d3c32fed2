//! Words whose accesses cost what the machine says. As large as real ones, so that they share cache lines as those do.

use std::sync::atomic;

use spinpark_platform::{self as seam, Ordering, Ordering::Relaxed};

use crate::here::access;
use crate::memory::Access;
use crate::trace::Did;

/// A word of 32 bits.
#[derive(Debug)]
#[repr(transparent)]
pub struct AtomicU32(atomic::AtomicU32);

/// A pointer.
#[derive(Debug)]
#[repr(transparent)]
pub struct AtomicPtr<T>(atomic::AtomicPtr<T>);

impl AtomicU32 {
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The value, as it is: an access that costs nothing.
    pub(super) fn value(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Replaces the value: as above.
    pub(super) fn set(&self, value: u32) {
        self.0.store(value, Relaxed);
    }

    fn update(&self, act: impl FnOnce(&atomic::AtomicU32) -> u32) -> u32 {
        access(self.address(), Access::Update);
        let old = act(&self.0);
        crate::here::note(|| Did::Wrote(old.into(), self.value().into()));
        old
    }
}

impl seam::AtomicU32 for AtomicU32 {
    fn new(value: u32) -> Self {
        Self(atomic::AtomicU32::new(value))
    }

    fn load(&self, _: Ordering) -> u32 {
        access(self.address(), Access::Load);
        let value = self.0.load(Relaxed);
        crate::here::note(|| Did::Saw(value.into()));
        value
    }

    fn store(&self, value: u32, _: Ordering) {
        access(self.address(), Access::Store);
        crate::here::note(|| Did::Wrote(self.value().into(), value.into()));
        self.0.store(value, Relaxed);
    }

    fn swap(&self, value: u32, _: Ordering) -> u32 {
        self.update(|word| word.swap(value, Relaxed))
    }

    fn compare_exchange(&self, current: u32, new: u32, _: Ordering, _: Ordering) -> Result<u32, u32> {
        access(self.address(), Access::Update);
        let result = self.0.compare_exchange(current, new, Relaxed, Relaxed);
        crate::here::note(|| match result {
            Ok(old) => Did::Wrote(old.into(), new.into()),
            Err(seen) => Did::Failed(seen.into(), current.into()),
        });
        result
    }

    fn compare_exchange_weak(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.compare_exchange(current, new, success, failure)
    }

    fn fetch_add(&self, value: u32, _: Ordering) -> u32 {
        self.update(|word| word.fetch_add(value, Relaxed))
    }

    fn fetch_sub(&self, value: u32, _: Ordering) -> u32 {
        self.update(|word| word.fetch_sub(value, Relaxed))
    }

    fn fetch_and(&self, value: u32, _: Ordering) -> u32 {
        self.update(|word| word.fetch_and(value, Relaxed))
    }

    fn fetch_or(&self, value: u32, _: Ordering) -> u32 {
        self.update(|word| word.fetch_or(value, Relaxed))
    }
}

impl<T> AtomicPtr<T> {
    fn touch(&self, kind: Access) {
        access(std::ptr::from_ref(self).addr(), kind);
    }
}

impl<T> seam::AtomicPtr<T> for AtomicPtr<T> {
    fn new(value: *mut T) -> Self {
        Self(atomic::AtomicPtr::new(value))
    }

    fn load(&self, _: Ordering) -> *mut T {
        self.touch(Access::Load);
        self.0.load(Relaxed)
    }

    fn store(&self, value: *mut T, _: Ordering) {
        self.touch(Access::Store);
        self.0.store(value, Relaxed);
    }

    fn swap(&self, value: *mut T, _: Ordering) -> *mut T {
        self.touch(Access::Update);
        self.0.swap(value, Relaxed)
    }

    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        _: Ordering,
        _: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.touch(Access::Update);
        self.0.compare_exchange(current, new, Relaxed, Relaxed)
    }
}
