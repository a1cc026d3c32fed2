//! The events of slow paths.

/// What a slow path did, for counters and the profiler. No decision rests on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A spinner took the lock without sleeping.
    SpinAcquired,
    /// A spinner left because the lock went to another owner (document 001's rule).
    SpinLeftOwnerChanged,
    /// A spinner left because the owner is not running.
    SpinLeftOffCpu,
    /// A spinner left because its time budget was used up.
    SpinLeftBudget,
    /// A thread went to sleep in a lock's queue or a condition variable's queue.
    Parked,
    /// A release woke the head of the queue.
    WokeHead,
    /// A release let a group of readers in.
    GrantedReaders,
    /// A release handed the lock to the head of the queue, or promised it to the head and woke it.
    HandedOff,
    /// A waiter that had lost for too long asked for a hand-off.
    RequestedHandoff,
    /// A signal moved a waiter to its mutex' queue, asleep as it was.
    MovedWaiter,
    /// A signal left the wake-up of its waiter to the signalling thread's release of the mutex.
    DeferredWake,
    /// A waiter that had asked for a hand-off let in the readers that it had kept out.
    WithdrewRequest,
    /// A wait ended at its deadline.
    TimedOut,
    /// A reader enabled a lock's bias: readers use slots from here on.
    EnabledBias,
    /// A writer revoked a lock's bias and counted the readers in its slots.
    RevokedBias,
    /// A release woke a waiter without setting `WAKING`: a real-time one while an earlier woken waiter has
    /// not come yet, or any on one CPU.
    WokeUnmarked,
    /// A woken waiter woke one behind it early in the queue.
    EarlyWake,
    /// A wake pass had a sleeping waiter set its timer, because a thread that was woken may not come.
    Appointed,
    /// A waiter's timer ended: it probes the lock.
    Probed,
}

/// What a machine does with the events of slow paths: nothing, or count them.
pub trait Events: Sized + Send + Sync + 'static {
    /// Is called after a slow path did something. Must not allocate, block or take a lock.
    #[inline(always)]
    fn event(event: Event) {
        let _ = event;
    }
}
