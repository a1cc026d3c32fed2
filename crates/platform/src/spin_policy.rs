//! Waiting awake: whether, and how.

use crate::{Memory, SpinRoom};

/// What a thread spins for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// A lock that is held.
    Lock,
    /// A lock that a release woke it for, and that another thread took meanwhile.
    Turn,
    /// A signal of a condition variable.
    Signal,
    /// A lock that the next release hands over.
    HandOver,
    /// A writer that waits awake for readers, and is let in first.
    Writer,
}

/// Whether the calling thread should spin, and what a poll is.
///
/// Only speed rests on the answers.
pub trait SpinPolicy: Memory {
    /// Whether the calling thread should spin now: another thread can run meanwhile (more than one CPU), and its spins
    /// of this kind have paid lately. `false` forbids spinning.
    fn can_spin(kind: Spin) -> bool;

    /// Tells whether a spin paid, for the next answer of [`can_spin`](SpinPolicy::can_spin).
    #[inline(always)]
    fn spun(kind: Spin, paid: bool) {
        let _ = (kind, paid);
    }

    /// Tells the CPU (or the model) that this thread polls memory that another thread has to change.
    ///
    /// Returns how many polls that was: 1, or more on a machine that leaves out those that would see nothing new. For
    /// callers that count them.
    fn spin_hint() -> u32;

    /// Waits awake for about `span` ns without touching shared memory. May return at any time.
    fn spin_for(span: u64);

    /// Whether the scheduler wants this CPU for another thread, so that spinning on is unkind. `false` is always a safe
    /// answer: where a thread cannot ask, one that spins is preempted.
    #[inline(always)]
    fn need_resched() -> bool {
        false
    }

    /// Calls `act` with what the spinners of the lock at `lock` queue in. `None`: they do not queue.
    fn with_spin_room<R>(lock: usize, act: impl FnOnce(SpinRoom<'_, Self::AtomicU32>) -> R) -> Option<R> {
        let _ = (lock, act);
        None
    }

    /// How many CPUs the threads of this process can use: some ways of waiting pay only with CPUs to spare. 1 is always a
    /// safe answer.
    #[inline(always)]
    fn cpus() -> u32 {
        1
    }

    /// Whether waiters are woken without a mark (T16 in `core` of the locks): the threads of this process can use one CPU, so that a
    /// woken waiter does not come before the thread that has it, which takes the lock again and again until then. `false` is always a
    /// safe answer.
    fn wakes_unmarked() -> bool {
        false
    }

    /// The CPU that the calling thread is bound to, if it may use only one; its number is only compared. `None` is always a
    /// safe answer.
    fn only_cpu() -> Option<u32> {
        None
    }
}
