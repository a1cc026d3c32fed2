//! More than two CPUs: a waiter may have one of its own, and each poll takes the lock's line from the owner.

use spinpark_platform::{Awake, Note, Platform, Spin, Spinning, Timing, Tries};

use super::{learned, Policy};

/// The policy for more than two CPUs.
#[derive(Debug, Clone, Copy)]
pub enum Many {}

impl<P: Platform> Policy<P> for Many {
    learned!();

    /// A failed try takes the line from the owner, and many threads try.
    #[inline]
    fn counts_tries() -> bool {
        true
    }

    #[inline(always)]
    fn tries() -> Tries {
        P::tries()
    }

    /// Each poll by a second spinner takes the line, too.
    #[inline]
    fn queues_spinners() -> bool {
        true
    }

    #[inline]
    fn awake(lock: usize) -> Awake {
        P::awake(lock)
    }

    /// A waiter need not sleep to leave the owner alone.
    #[inline]
    fn polls_from_afar() -> bool {
        true
    }

    /// A CPU that waits is no other thread's.
    #[inline]
    fn primary_waits_longer() -> bool {
        true
    }

    /// Many CPUs would wait for one that sleeps.
    #[inline]
    fn leaves_promised() -> bool {
        true
    }

    /// Running threads pass it on each of their CPUs.
    #[inline]
    fn starved_requests_at_once() -> bool {
        true
    }

    /// No release leaves it asleep, so that its timer need not be fine.
    #[inline]
    fn head_keeps_time() -> bool {
        true
    }

    /// No: a stopped thread is not waiting for this CPU.
    #[inline]
    fn least_probe_ns() -> u64 {
        0
    }

    /// An idle CPU takes long to leave a deep sleep.
    #[inline]
    fn wakes_early() -> bool {
        true
    }

    #[inline]
    fn lets_spinner_pass() -> bool {
        true
    }

    /// A lock's line comes from another CPU for each reader.
    #[inline]
    fn shares_lines() -> bool {
        true
    }
}
