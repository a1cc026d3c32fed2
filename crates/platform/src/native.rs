//! Core's own atomics are what most machines use.

use core::sync::atomic;

use crate::{AtomicPtr, AtomicU32, Ordering};

impl AtomicU32 for atomic::AtomicU32 {
    #[inline(always)]
    fn new(value: u32) -> Self {
        Self::new(value)
    }
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }
    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }
    #[inline(always)]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.swap(value, order)
    }
    #[inline(always)]
    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.compare_exchange(current, new, success, failure)
    }
    #[inline(always)]
    fn compare_exchange_weak(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.compare_exchange_weak(current, new, success, failure)
    }
    #[inline(always)]
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_add(value, order)
    }
    #[inline(always)]
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_sub(value, order)
    }
    #[inline(always)]
    fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_and(value, order)
    }
    #[inline(always)]
    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_or(value, order)
    }
}

impl<T> AtomicPtr<T> for atomic::AtomicPtr<T> {
    #[inline(always)]
    fn new(value: *mut T) -> Self {
        Self::new(value)
    }
    #[inline(always)]
    fn load(&self, order: Ordering) -> *mut T {
        self.load(order)
    }
    #[inline(always)]
    fn store(&self, value: *mut T, order: Ordering) {
        self.store(value, order);
    }
    #[inline(always)]
    fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        self.swap(value, order)
    }
    #[inline(always)]
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.compare_exchange(current, new, success, failure)
    }
}
