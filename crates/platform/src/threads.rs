//! What identifies a thread: its token, its process, its priority.

/// The highest [`Threads::priority`](crate::Threads::priority): Linux' 99, and one above it.
pub const HIGHEST_PRIORITY: u8 = 100;

/// The identity of the calling thread.
pub trait Threads: Sized + Send + Sync + 'static {
    /// A name for the calling thread: not 0, below 2^22, different from that of every living thread of the
    /// process.
    fn thread_token() -> u32;

    /// Changes in a child that was forked: wait queues of an older generation belong to threads that do not
    /// exist here. Below 2^22, 0 in the first process.
    fn generation() -> u32;

    /// The real-time priority of the calling thread, which is about to wait: waiters of a higher one go
    /// first. Up to [`HIGHEST_PRIORITY`]; 0: it has none. May ask the kernel. 0 is always a safe answer,
    /// which only loses the order.
    #[inline(always)]
    fn priority() -> u8 {
        0
    }
}
