//! What a thread guesses about a contended lock, from what it has measured itself: whether to wait awake, how
//! to poll, how many threads wait awake, and when a contended lock counts as uncontended again.
//!
//! No invariant of a lock rests on an answer. Each thread learns for itself ([`SpinStats`]): whether spinning
//! pays depends on the program, on how long it holds its locks, on whether owners sleep or yield, and on how
//! many threads want the CPUs.
//!
//! | a thread asks | it has measured | answers |
//! |---|---|---|
//! | [`can_spin`](Adaptive::can_spin) | which of its latest spins paid | after *n* failures in a row, one chance in 2ⁿ (256 at most) |
//! | [`spinning`](Adaptive::spinning) | its sections and non-critical sections (`acquisitions`), what it costs to move a lock (`transfer`) | [`Spinning::BackOff`], where threads come back faster than the lock can move |
//! | [`awake`](Adaptive::awake) | the same | as many spinners as keep the lock held |
//! | [`reads_first`](Adaptive::reads_first) | whether it has waited lately | a load before the compare-exchange, which would take the line from the owner |
//! | [`tries`](Adaptive::tries) | how many of its latest tries found the lock taken (`tries`) | whether to skip the fast path, and join the spinners at once |
//! | [`returns_soon`](Adaptive::returns_soon), [`waits_next`](Adaptive::waits_next) | what it did after its latest releases and signals | which waiter is better left asleep for now |
//! | [`has_passed_woken`](Adaptive::has_passed_woken) | since when it acquires a lock past a waiter that was woken for it | when to promise the lock to that one |
//! | [`ends_contended`](Adaptive::ends_contended) | releases without a waiter | when releases are plain stores again |
//!
//! A platform keeps the [`SpinStats`] of each thread, and implements [`Adaptive`] with them.
//! [`Usual`](super::Usual) answers from it; a policy need not.
//!
//! The constants stand where they are used; `notes/tuning.md` has the planes of workloads that they were
//! chosen on. With two CPUs the threads take turns, or back off in the lock's queue;
//! with more, spinners queue, and one that backs off polls seldom.

mod acquisitions;
mod spin_stats;
mod transfer;
mod tries;

pub use self::spin_stats::SpinStats;
pub use self::transfer::TransferCost;

/// What a thread spins for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// A lock that is held.
    Lock,
    /// A lock that a release woke it for, and that another thread acquired meanwhile.
    Woken,
    /// A signal of a condition variable.
    Signal,
    /// A lock that the next release hands over.
    HandOver,
    /// A writer that waits awake for readers, and is let in first.
    Writer,
    /// Readers that leave a lock to the writer that waits for them.
    Readers,
}

/// How a thread spins for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spinning {
    /// It polls often, and acquires the lock as soon as it is free: the threads take turns.
    #[default]
    Eager,
    /// It backs off for many acquisitions of the owner, which comes back for the lock faster than the lock
    /// can move.
    BackOff,
}

/// How many threads are to wait awake for a lock, with CPUs to spare, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Awake {
    /// Not known: all of them, for a short time.
    Briefly,
    /// All that come, for as long as the tuning says.
    #[default]
    All,
    /// At most this number; a thread that finds as many awake sleeps at once.
    AtMost(u32),
}

/// What a thread that wants a lock has found at its first try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Try {
    /// The lock was free.
    Free,
    /// It was taken.
    Taken,
    /// The thread skipped the try, and joined others that wait awake.
    Skipped,
    /// The thread left those that wait awake before it became their head.
    Late,
}

/// How a thread's latest tries went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tries {
    /// None failed. Always a safe answer.
    #[default]
    Succeed,
    /// Some failed.
    FailSometimes,
    /// More than a quarter failed: the thread skips the fast path and joins the queue of spinners, if there
    /// are any, without reading the lock, which would take its line from the owner.
    FailOften,
}

/// What a thread notes about itself and the lock that it acquires, waits for or releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// It waits for the lock, to write.
    Waits,
    /// It tries to acquire the lock.
    Returns,
    /// It has acquired the lock past waiters, and is likely to do so again: it [reads
    /// first](Adaptive::reads_first) in its next attempts.
    PassesWaiters,
    /// How its first try went.
    Tried(Try),
    /// It has just acquired a lock that it had found taken, awake. It read the clock at `clock`, then the
    /// lock, and found it free: the time since then is what it costs to move a lock.
    Moved {
        /// ns, monotonic.
        clock: u64,
    },
    /// Whether a spin paid.
    Spun(Spin, bool),
    /// It has acquired the lock, and its release will be timed ([`Adaptive::wants_time`]).
    Acquired {
        /// The contended bit was set only for that.
        set_contended: bool,
    },
    /// It has just released the lock, which may be gone, and whose contended bit it left set.
    Released,
    /// It is about to release the lock, to wait on a condition variable.
    ReleasesToWait,
    /// It is about to sleep in a wait for the lock. It may have left a waiter of another lock asleep, for
    /// which it [did not come back](Adaptive::returns_soon). It wakes that waiter early if it finds its note
    /// ([`notes_sleep`](spinpark_platform::Futex::notes_sleep)): the other lock itself may be gone by now.
    Sleeps,
}

/// How the next acquisition is timed ([`Adaptive::wants_time`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Whether the contended bit may be set only for that.
    pub may_set_contended: bool,
}

/// After a wait, a thread reads first in this number of attempts ([`Adaptive::reads_first`]). Fewer cost
/// where half of all attempts find a lock held, more cost where few do: `notes/tuning.md`, "Many locks".
pub const READS_AFTER_WAIT: u32 = 16;

/// How threads that contend for a lock share it. A machine that does not implement it has threads take turns.
///
/// `lock` is an address, which is only compared.
pub trait Adaptive: Sized + Send + Sync + 'static {
    /// Whether the calling thread should spin now: another thread can run meanwhile (more than one CPU), and
    /// its spins of this kind have paid lately. `false` forbids spinning.
    fn can_spin(kind: Spin) -> bool;

    /// Notes what the calling thread does, for the next answers. `lock` is 0 where the note is about no lock.
    #[inline(always)]
    fn notes(lock: usize, note: Note) {
        let _ = (lock, note);
    }

    /// How the calling thread is to wait for the lock at `lock`.
    fn spinning(lock: usize) -> Spinning {
        let _ = lock;
        Spinning::Eager
    }

    /// How many threads that wait awake keep the lock at `lock` held. [`Awake::All`] is always a safe answer.
    fn awake(lock: usize) -> Awake {
        let _ = lock;
        Awake::All
    }

    /// Whether the calling thread has waited for a lock lately: then it reads a lock's state before it
    /// requests the lock's line for writing, which would take the line from the owner in a failed try. Counts
    /// an attempt. `false` is always a safe answer.
    #[inline(always)]
    fn reads_first() -> bool {
        false
    }

    /// How the calling thread's latest tries went.
    #[inline(always)]
    fn tries() -> Tries {
        Tries::Succeed
    }

    /// Whether and how the time of the calling thread, which has just acquired the lock at `lock` after a
    /// wait, is to be taken: [`Note::Acquired`], then [`Note::Released`] and [`Note::Returns`].
    ///
    /// `queued`: the wait was one in the lock's queue. It cost more than the timing does, and a thread has
    /// few of them.
    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        let _ = (lock, queued);
        None
    }

    /// Whether the calling thread, which releases the lock at `lock`, comes back for it so soon that a waiter
    /// with a timer is better left asleep. `false` is always a safe answer.
    fn returns_soon(lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// Whether the calling thread, which holds the lock at `lock` and signals, usually waits itself soon
    /// after that. Counts the signal. `false` is always a safe answer.
    fn waits_next(lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// Notes that the calling thread is about to release a lock that it had acquired while a waiter that was
    /// woken for it has not come yet. Returns whether that has gone on for long: the waiter may need the
    /// caller's CPU, and the lock is kept for it then.
    fn has_passed_woken() -> bool {
        false
    }

    /// Whether the calling thread's release clears the contended bit of a lock that has no waiters. A release
    /// that is timed ([`Note::Acquired`]) does not. The bit
    /// makes each release a little slower; to set it again costs an [asymmetric
    /// barrier](spinpark_platform::AsymmetricBarrier::asymmetric_barrier).
    fn ends_contended(lock: usize) -> bool {
        let _ = lock;
        true
    }
}
