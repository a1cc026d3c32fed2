//! Waiting awake: what a poll is, on how many CPUs, and what spinners queue in.

use crate::Memory;

/// Polling, and the CPUs of the process.
///
/// The answers change only the speed.
pub trait SpinPolicy: Memory {
    /// Tells the CPU (or the model) that this thread polls memory that another thread has to change.
    ///
    /// Returns the number of polls, for callers that count them: more than 1 on a machine that skips polls
    /// that would see nothing new.
    fn spin_hint() -> u32;

    /// Waits awake for about `span` ns without touching shared memory. May return at any time.
    fn spin_for(span: u64);

    /// Whether the scheduler wants this CPU for another thread, so that spinning on is unkind. `false` is
    /// always a safe answer: where a thread cannot ask, one that spins is preempted.
    #[inline(always)]
    fn need_resched() -> bool {
        false
    }

    /// Calls `act` with what the spinners of the lock at `lock` queue in. `None`: they do not queue.
    fn with_spinner_slots<R>(
        lock: usize,
        act: impl FnOnce(SpinnerSlots<'_, Self::AtomicU32>) -> R,
    ) -> Option<R> {
        let _ = (lock, act);
        None
    }

    /// How many CPUs the threads of this process can use: some ways of waiting pay only with CPUs to spare. 1
    /// is always a safe answer.
    #[inline(always)]
    fn cpus() -> u32 {
        1
    }

    /// Whether waiters are woken without `WAKING` (L4 in `core` of the locks): the threads of this process
    /// can use one CPU. A woken waiter does not run before the thread that has it, which takes the lock again
    /// and again until then. Asked for each such waiter: not all of a crowd is to be awake at once. `false` is always
    /// a safe answer.
    fn wakes_unmarked() -> bool {
        false
    }

    /// The CPU that the calling thread is bound to, if it may use only one; its number is only compared.
    /// `None` is always a safe answer.
    fn only_cpu() -> Option<u32> {
        None
    }

    /// Whether a sleep of the calling thread that ends by its timer ends about then. `false`: the thread must
    /// not leave a lock to its owner for a time, since nothing else may end its sleep.
    fn has_fine_timers() -> bool {
        true
    }
}

/// A cache line of the memory for the queues of spinners, which all locks of a process share: three words,
/// all zero at first.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct SpinLine<W> {
    /// Of a queue: its youngest spinner. Of a slot: its state.
    pub word: W,
    /// Of a queue: the name of the lock. Of a slot: its spinner's thread.
    pub about: W,
    /// Of a slot: the one before it. 0: none, or not known yet.
    pub before: W,
}

/// The queue of one lock's spinners. The platform chooses which locks share a queue; normally one of them
/// uses it at a time.
#[derive(Debug)]
pub struct SpinnerSlots<'a, W> {
    /// The queue.
    pub queue: &'a SpinLine<W>,
    /// The slots of all queues: at least 1, at most [`SpinnerSlots::MOST_SLOTS`].
    pub slots: &'a [SpinLine<W>],
    /// The lock's name, most probably not that of another one of its queue. Not 0.
    pub name: u32,
}

impl<W> SpinnerSlots<'_, W> {
    /// The most slots: a number has ten bits, and 0 is none.
    pub const MOST_SLOTS: usize = 1023;
}
