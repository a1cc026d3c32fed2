//! Other systems than Linux on x86-64 and aarch64, and Miri, which runs no assembly: the locks are `parking_lot`'s, whose types are
//! `lock_api`'s, too. A program that uses spinpark builds and runs there.

#[cfg(not(feature = "portable"))]
compile_error!("spinpark's own locks are for Linux on x86-64 and aarch64: enable its feature `portable`");

pub mod policy;
pub mod profile;

pub use parking_lot::{
    const_fair_mutex, const_mutex, const_reentrant_mutex, const_rwlock, Condvar, FairMutex, FairMutexGuard,
    MappedFairMutexGuard, MappedMutexGuard, MappedReentrantMutexGuard, MappedRwLockReadGuard,
    MappedRwLockWriteGuard, Mutex, MutexGuard, Once, OnceState, RawFairMutex, RawMutex, RawRwLock,
    RawThreadId, ReentrantMutex, ReentrantMutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard,
    RwLockWriteGuard, WaitTimeoutResult,
};

/// To be called before this process installs a seccomp filter that kills. Elsewhere there is none.
pub fn before_filter() {}
