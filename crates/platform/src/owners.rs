//! The owner-running probe.

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
