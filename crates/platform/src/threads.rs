//! Threads: what identifies one (its token, its process, its priority), and whether the owner of a lock runs.

/// The highest [`Threads::priority`]: Linux' 99, and one above it.
pub const HIGHEST_PRIORITY: u8 = 100;

/// The identity of the calling thread.
pub trait Threads: Sized + Send + Sync + 'static {
    /// A name for the calling thread: not 0, below 2^22, different from that of every living thread of the
    /// process.
    fn thread_token() -> u32;

    /// Changes in a child that was forked: wait queues of an older generation belong to threads that do not
    /// exist here. Below 2^21, 0 in the first process.
    fn generation() -> u32;

    /// The real-time priority of the calling thread, which is about to wait: waiters of a higher one go
    /// first. Up to [`HIGHEST_PRIORITY`]; 0: it has none. May ask the kernel. 0 is always a safe answer,
    /// which only loses the order.
    #[inline(always)]
    fn priority() -> u8 {
        0
    }
}

/// What the machine knows about a lock owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCpu {
    /// The owner has run since the last question.
    Running,
    /// The owner has not run since the last question: waiting for it by spinning cannot pay.
    Off,
    /// Not known. Always a safe answer: the spinner falls back to its time budget.
    Unknown,
}

/// Whether a lock's owner runs: spinning for a preempted or sleeping owner cannot pay.
pub trait Owners: Sized + Send + Sync + 'static {
    /// Asks whether the thread named `owner` runs. `sample` carries what this platform remembers between two
    /// questions about the same owner; 0 means that this is the first one. An `owner` of 0 is one that the
    /// lock does not name.
    fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu;

    /// Whether the thread named `thread` has ended. `false` is always a safe answer; `true` is certain.
    fn has_ended(thread: u32) -> bool {
        let _ = thread;
        false
    }
}
