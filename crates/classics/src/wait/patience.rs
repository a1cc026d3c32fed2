//! Polling what only another running thread can change, in a bounded way.
//!
//! In a kernel, who holds a spin lock cannot be preempted. Here it can, and a machine with more threads than CPUs would
//! burn whole time slices. So after many polls the poller sleeps for a moment, on a word that nobody wakes.

use spinpark_platform::{AtomicU32, Clock, Deadline, NS_PER_US, Platform};

/// Polls between two naps: longer than a section under a `wait_lock` here takes on a running CPU.
const POLLS: u32 = 4_096;

/// A nap, ns: a system call and two switches are worth it, a time slice is not lost.
const NAP_NS: u64 = 50 * NS_PER_US;

/// Polls of an owner that is not there. The two windows, between taking a lock and naming its owner and between
/// forgetting the owner and the release, are a few instructions, unless the thread is preempted in one.
pub(crate) const WINDOW_POLLS: u32 = 1_000;

/// Counts polls.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    polls: u32,
}

impl Patience {
    /// Between two polls.
    #[inline]
    pub(crate) fn poll<P: Platform>(&mut self) {
        P::spin_hint();
        self.count::<P>(1);
    }

    /// Time has passed that `polls` polls would have taken.
    #[inline]
    pub(crate) fn count<P: Platform>(&mut self, polls: u32) {
        self.polls += polls;
        if self.polls >= POLLS {
            self.polls = 0;
            nap::<P>();
        }
    }
}

#[cold]
fn nap<P: Platform>() {
    let nobody_wakes = P::AtomicU32::new(0);
    let at = P::now(Clock::Monotonic).saturating_add(NAP_NS);
    P::futex_wait(&nobody_wakes, 0, Some(Deadline { clock: Clock::Monotonic, at }));
}
