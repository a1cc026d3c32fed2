//! Policies: which threads wait awake, which waiter is woken or left asleep, when a lock is kept for a waiter.
//! (For how long, and after what time, is in [`Tuning`](spinpark_platform::Tuning).) The protocol
//! ([`core`](crate::core)) asks, and is right whatever the answers: no invariant leans on one. They are about
//! speed, and about which thread waits for how long.
//!
//! | policy | answers |
//! |---|---|
//! | [`Usual`] | as [`Few`] with one or two CPUs, as [`Many`] with more: that of a lock whose type names no other |
//! | [`Park`] | the trait's own: no thread waits awake, and waiters are woken in order |
//!
//! A lock has its policy as a type parameter: `RawMutex<P, Park>`. A policy of one's own implements the
//! questions that it answers differently from [`Park`]; CONTRIBUTING has an example. `verify` runs each protocol
//! under these, and under answers at random.
//!
//! Measured: `notes/tuning.md` ("CPUs to spare", "One CPU", and the sections of each mechanism).

mod few;
mod many;

use spinpark_platform::{Awake, Note, Platform, Spin, Spinning, Timing, Tries};

pub use few::Few;
pub use many::Many;

/// What a lock asks. `lock` is its address, which is only compared. Answers may differ from call to call, and
/// may rest on what [`Policy::learns`] was told.
///
/// Each question has an answer here, which is that of [`Park`].
pub trait Policy<P: Platform>: Sized + Send + Sync + 'static {
    // ---- the event that teaches it

    /// Notes what the calling thread does. [`Note::Sleeps`] is for the machine in any case: it may have to wake a
    /// waiter of another lock early, which it had left asleep (E2).
    #[inline(always)]
    fn learns(lock: usize, note: Note) {
        if let Note::Sleeps = note {
            P::notes(lock, note);
        }
    }

    /// Whether and how the acquisition that the calling thread has just made, after a wait, is timed:
    /// [`Note::Acquired`], then [`Note::Released`] and [`Note::Returns`]. `queued`: it waited in the queue.
    #[inline]
    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        let _ = (lock, queued);
        None
    }

    // ---- the first try

    /// Whether the calling thread reads a lock before it tries to take it: a failed try takes the line from the
    /// owner. Counts an attempt.
    #[inline(always)]
    fn reads_first() -> bool {
        false
    }

    /// Whether a thread counts which of its tries for locks that are contended fail.
    #[inline]
    fn counts_tries() -> bool {
        false
    }

    /// How the calling thread's latest tries went: if many have failed, it skips the fast path.
    #[inline(always)]
    fn tries() -> Tries {
        Tries::Succeed
    }

    // ---- before it queues: to wait awake

    /// Whether the calling thread may wait awake, for what `kind` says.
    #[inline]
    fn can_spin(kind: Spin) -> bool {
        let _ = kind;
        false
    }

    /// Whether a thread that waits awake acquires the lock as soon as it is free, or leaves it to its owner for
    /// many turns.
    #[inline]
    fn spinning(lock: usize) -> Spinning {
        let _ = lock;
        Spinning::Eager
    }

    /// Whether a waiter that leaves the lock to its owner sleeps meanwhile, if its timer is fine enough; else it
    /// polls with wide gaps.
    #[inline]
    fn backs_off_asleep() -> bool {
        false
    }

    /// Whether the writers that spin for a lock do so in a queue, of which only the head polls.
    #[inline]
    fn queues_spinners() -> bool {
        false
    }

    /// How many threads are to wait awake in that queue.
    #[inline]
    fn awake(lock: usize) -> Awake {
        let _ = lock;
        Awake::All
    }

    /// For how many spinners there is a CPU beside the owner's.
    #[inline]
    fn cpus_to_spin_on() -> u32 {
        P::cpus() - 1
    }

    /// `ns` for each CPU: as many threads as run may have come at once.
    #[inline]
    fn for_each_cpu(ns: u64) -> u64 {
        u64::from(P::cpus()) * ns
    }

    /// Whether a spinner that leaves the lock to its owner, or one of many, polls with wide gaps.
    #[inline]
    fn polls_from_afar() -> bool {
        false
    }

    /// Whether a spinner on which sleeping waiters rely waits for longer than another.
    #[inline]
    fn primary_waits_longer() -> bool {
        false
    }

    /// Whether a spinner goes to sleep if the lock is promised to a waiter that does not come.
    #[inline]
    fn leaves_promised() -> bool {
        true
    }

    // ---- asleep, and woken

    /// The least time until a waiter probes a lock (L3), ns; at most `longest_probe_ns` counts.
    #[inline]
    fn least_probe_ns() -> u64 {
        P::TUNING.least_probe_ns
    }

    /// Whether a head that was woken and lost is to be left to its own timer (`TIMED`).
    #[inline]
    fn head_keeps_time() -> bool {
        true
    }

    /// Whether a woken waiter that has starved polls once, and then requests the lock.
    #[inline]
    fn starved_requests_at_once() -> bool {
        true
    }

    /// E1: whether a thread that is served wakes waiters behind it early.
    #[inline]
    fn wakes_early() -> bool {
        false
    }

    // ---- on a release

    /// E2: whether a release may leave a head asleep that keeps its own time, as its thread comes back at once.
    #[inline]
    fn leaves_asleep() -> bool {
        false
    }

    /// Whether the calling thread, which releases the lock, comes back for it soon.
    #[inline]
    fn returns_soon(lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// L4: whether the head is woken without a mark.
    #[inline]
    fn wakes_unmarked() -> bool {
        false
    }

    /// H4: whether threads that run have passed a woken waiter for long, so that the lock is kept for it. Notes
    /// that the calling thread is one of them.
    #[inline]
    fn has_passed_woken() -> bool {
        false
    }

    /// A3: whether the calling thread's release of a lock without waiters clears `CONTENDED`.
    #[inline]
    fn ends_contended(lock: usize) -> bool {
        P::ends_contended(lock)
    }

    // ---- readers

    /// Whether a reader lets a writer go first that waits awake.
    #[inline]
    fn lets_spinner_pass() -> bool {
        false
    }

    /// How many reads without a write in between enable a lock's bias.
    #[inline]
    fn reads_before_slots() -> u32 {
        P::reads_before_slots()
    }

    /// Whether a read among others costs more than one alone.
    #[inline]
    fn shares_lines() -> bool {
        false
    }

    // ---- condition variables

    /// Whether a signal under the mutex leaves the wake-up to the release of the mutex.
    #[inline]
    fn defers_to_release() -> bool {
        false
    }

    /// Whether the calling thread, which holds the lock and signals, usually waits soon after. Counts the signal.
    #[inline]
    fn waits_next(lock: usize) -> bool {
        let _ = lock;
        false
    }
}

/// No thread waits awake, and waiters are woken in order: the trait's own answers.
#[derive(Debug, Clone, Copy)]
pub enum Park {}

impl<P: Platform> Policy<P> for Park {}

/// The machine's answers ([`Adaptive`](spinpark_platform::Adaptive)): from what the calling thread has measured,
/// or, of wakes without a mark, by the CPUs that there are.
macro_rules! learned {
    () => {
        #[inline(always)]
        fn learns(lock: usize, note: Note) {
            P::notes(lock, note);
        }

        #[inline]
        fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
            P::wants_time(lock, queued)
        }

        #[inline(always)]
        fn reads_first() -> bool {
            P::reads_first()
        }

        #[inline]
        fn can_spin(kind: Spin) -> bool {
            P::can_spin(kind)
        }

        #[inline]
        fn spinning(lock: usize) -> Spinning {
            P::spinning(lock)
        }

        #[inline]
        fn wakes_unmarked() -> bool {
            P::wakes_unmarked()
        }

        #[inline]
        fn has_passed_woken() -> bool {
            P::has_passed_woken()
        }

        #[inline]
        fn ends_contended(lock: usize) -> bool {
            P::ends_contended(lock)
        }

        #[inline]
        fn waits_next(lock: usize) -> bool {
            P::waits_next(lock)
        }
    };
}
use learned;

/// As [`Few`] or as [`Many`], by the number of CPUs that the process may use now.
#[derive(Debug, Clone, Copy)]
pub enum Usual {}

/// Questions that the two answer differently.
macro_rules! by_cpus {
    ($($name:ident($($argument:ident: $type:ty)?) -> $answer:ty;)*) => {$(
        #[inline]
        fn $name($($argument: $type)?) -> $answer {
            match P::cpus() {
                1 | 2 => <Few as Policy<P>>::$name($($argument)?),
                _ => <Many as Policy<P>>::$name($($argument)?),
            }
        }
    )*};
}

impl<P: Platform> Policy<P> for Usual {
    learned!();

    /// Only [`Many`] counts, and else none has failed: to ask how many CPUs there are would take longer.
    #[inline(always)]
    fn tries() -> Tries {
        P::tries()
    }

    by_cpus! {
        counts_tries() -> bool;
        backs_off_asleep() -> bool;
        queues_spinners() -> bool;
        awake(lock: usize) -> Awake;
        polls_from_afar() -> bool;
        primary_waits_longer() -> bool;
        leaves_promised() -> bool;
        least_probe_ns() -> u64;
        head_keeps_time() -> bool;
        starved_requests_at_once() -> bool;
        wakes_early() -> bool;
        leaves_asleep() -> bool;
        returns_soon(lock: usize) -> bool;
        lets_spinner_pass() -> bool;
        shares_lines() -> bool;
        defers_to_release() -> bool;
    }
}
