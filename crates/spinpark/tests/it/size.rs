//! The sizes and the constants that users rely on.

use std::mem::size_of;

use spinpark::{Condvar, Mutex, Once, RawMutex, RawRwLock, RwLock};

static MUTEX: Mutex<u32> = Mutex::new(1);
static CONST_MUTEX: Mutex<u32> = spinpark::const_mutex(2);
static RWLOCK: RwLock<u32> = RwLock::new(3);
static CONDVAR: Condvar = Condvar::new();

#[test]
fn sizes_are_as_documented() {
    assert_eq!(size_of::<RawMutex>(), 16);
    assert_eq!(size_of::<RawRwLock>(), 24);
    assert_eq!(size_of::<Condvar>(), 16);
    assert_eq!(size_of::<Once>(), 24);
}

#[test]
fn statics_work() {
    assert_eq!(*MUTEX.lock() + *CONST_MUTEX.lock() + *RWLOCK.read(), 6);
    assert!(!CONDVAR.notify_one());
}

#[test]
fn all_zero_is_unlocked() {
    // SAFETY: zero is a valid, unlocked state; that is what this test is about.
    let mutex: Mutex<u32> = unsafe { std::mem::zeroed() };
    // SAFETY: the same.
    let condvar: Condvar = unsafe { std::mem::zeroed() };
    assert!(mutex.try_lock().is_some());
    assert_eq!(condvar.notify_all(), 0);
}
