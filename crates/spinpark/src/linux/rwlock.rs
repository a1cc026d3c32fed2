//! [`RwLock`] and its guards.

use crate::linux::RawRwLock;

/// Many readers or one writer of the data inside; 24 bytes and the data.
///
/// # Fairness
/// Readers join readers, also recursively while a writer waits. A writer that has waited for 0.5 ms keeps new
/// readers out, but lets them in from time to time: readers inside may wait for new ones.
///
/// # Differences from std
/// `read` and `write` return guards, not `Result`s; a read lock may be taken again by its thread, where std's may
/// deadlock or panic. There are timed acquisitions, upgradable readers, and guards of a part of the data or that own an
/// `Arc`. Readers of a lock that is hardly ever written use slots of their own CPU, so that a rare writer waits longer.
///
/// # Poisoning
/// None: a panic of a writer releases the lock, and the data is as the panic has left it.
///
/// # Panics
/// Never. A thread that asks for the write lock while it reads, or the other way round, waits for itself for ever.
///
/// ```
/// use spinpark::RwLock;
///
/// let table = RwLock::new(vec![1, 2, 3]);
/// {
///     let one = table.read();
///     let two = table.read();
///     assert_eq!(one.len() + two.len(), 6);
/// }
/// table.write().push(4);
///
/// let seen = table.upgradable_read();
/// if seen.len() == 4 {
///     let mut table = spinpark::RwLockUpgradableReadGuard::upgrade(seen);
///     table.clear();
///     let readable = spinpark::RwLockWriteGuard::downgrade(table);
///     assert!(readable.is_empty());
/// }
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// Read access to the data of a [`RwLock`].
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;

/// Write access to the data of a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// Read access that can turn into write access without letting another writer in between.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// Read access to a part of the data of a [`RwLock`].
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;

/// Write access to a part of the data of a [`RwLock`].
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// A read-write lock around `value`, in a constant.
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::const_new(<RawRwLock as lock_api::RawRwLock>::INIT, value)
}
