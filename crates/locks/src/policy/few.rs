//! One CPU or two: the owner's CPU and the waiter's are all there are.

use spinpark_platform::{Note, Platform, Spin, Spinning, Timing};

use super::{learned, Policy};

/// The policy for one CPU or two.
#[derive(Debug, Clone, Copy)]
pub enum Few {}

impl<P: Platform> Policy<P> for Few {
    learned!();

    /// With two. The waiter's CPU is wanted by other threads, and a sleep costs the owner nothing.
    #[inline]
    fn backs_off_asleep() -> bool {
        P::cpus() == 2
    }

    /// Long: a stopped thread may only be waiting for this very CPU.
    #[inline]
    fn least_probe_ns() -> u64 {
        P::TUNING.least_probe_ns
    }

    /// No: one that waits awake until the promise is taken finds the lock free sooner than one that is woken.
    #[inline]
    fn leaves_promised() -> bool {
        false
    }

    /// Where it may be left asleep, its timer must be fine enough to end that.
    #[inline]
    fn head_keeps_time() -> bool {
        P::cpus() != 2 || P::has_fine_timers()
    }

    /// No: running threads pass it on one CPU only, and the lock is mostly free in a moment.
    #[inline]
    fn starved_requests_at_once() -> bool {
        false
    }

    /// With two. A woken waiter takes turns with its waker, line by line, and nothing else runs.
    #[inline]
    fn leaves_asleep() -> bool {
        P::cpus() == 2
    }

    #[inline]
    fn returns_soon(lock: usize) -> bool {
        P::returns_soon(lock)
    }

    /// With two. On one CPU no thread waits awake while another runs.
    #[inline]
    fn lets_spinner_pass() -> bool {
        P::cpus() == 2
    }

    /// With one. No waiter runs before the thread that has the CPU leaves it.
    #[inline]
    fn defers_to_release() -> bool {
        P::cpus() == 1
    }
}
