//! The read locks that a thread holds.

/// What the calling thread remembers of its read locks: a recursive reader must not wait for a writer that
/// waits for it.
///
/// `lock` is an address, which is only compared.
pub trait ReadHolds: Sized + Send + Sync + 'static {
    /// Notes that the calling thread holds one more read lock on the object at `lock`.
    fn read_acquired(lock: usize);

    /// Notes that the calling thread gave up one read lock on the object at `lock`.
    fn read_released(lock: usize);

    /// Whether the calling thread may hold a read lock on the object at `lock`. `true` is always a safe
    /// answer; `false` must be certain, unless a thread has given back another's read lock: for a thread that
    /// does hold one, it costs the time of a starved writer's request.
    fn may_hold_read(lock: usize) -> bool;
}
