//! What all locks here have in common, for benchmarks, models and simulations.

/// A mutual-exclusion lock without data and guards.
pub trait RawLock: Send + Sync + Sized {
    /// An unlocked lock.
    fn new() -> Self;

    /// Acquires; waits as long as it takes. Acquire ordering.
    fn lock(&self);

    /// Acquires if that is possible at once. Acquire ordering on success.
    fn try_lock(&self) -> bool;

    /// Releases; the calling thread holds the lock. Release ordering.
    fn unlock(&self);
}

/// A read-write lock without data and guards.
pub trait RawRwLock: Send + Sync + Sized {
    /// An unlocked lock.
    fn new() -> Self;

    /// Acquires for reading; waits as long as it takes. Acquire ordering.
    fn read(&self);

    /// Acquires for reading if that is possible at once. Acquire ordering on success.
    fn try_read(&self) -> bool;

    /// Releases a read lock; the calling thread holds one. Release ordering.
    fn unlock_read(&self);

    /// Acquires for writing; waits as long as it takes. Acquire ordering.
    fn write(&self);

    /// Acquires for writing if that is possible at once. Acquire ordering on success.
    fn try_write(&self) -> bool;

    /// Releases the write lock; the calling thread holds it. Release ordering.
    fn unlock_write(&self);

    /// Turns the write lock, which the calling thread holds, into a read lock.
    fn downgrade(&self);
}
