//! What the locks decide by the number of CPUs. The protocol asks these questions, and is right whatever the
//! answers: they are about speed, and about who waits for how long.
//!
//! | question | one CPU | two | more | why |
//! |---|---|---|---|---|
//! | [`counts_tries`](Policy::counts_tries) | – | – | yes | a failed try takes the line from the owner, and many threads try |
//! | [`queues_spinners`](Policy::queues_spinners) | – | – | yes | each poll by a second spinner takes the line, too |
//! | [`cpus_to_spin_on`](Policy::cpus_to_spin_on), [`for_each_cpu`](Policy::for_each_cpu) | – | – | numbers | a spinner without a CPU takes another's |
//! | [`lets_spinner_pass`](Policy::lets_spinner_pass) | – | yes | yes | on one CPU no thread waits awake while another runs |
//! | [`polls_from_afar`](Policy::polls_from_afar) | – | – | yes | a waiter has a CPU of its own: it need not sleep to leave the owner alone |
//! | [`backs_off_asleep`](Policy::backs_off_asleep) | – | yes | – | the owner's CPU and the waiter's are all there are |
//! | [`leaves_asleep`](Policy::leaves_asleep) | – | yes | – | a woken waiter takes turns with its waker, line by line, and nothing else runs |
//! | [`head_keeps_time`](Policy::head_keeps_time) | yes | by timers | yes | where it may be left asleep, its timer must be fine enough to end that |
//! | [`primary_waits_longer`](Policy::primary_waits_longer) | – | – | yes | a CPU that waits is no other thread's |
//! | [`leaves_promised`](Policy::leaves_promised) | – | – | yes | many CPUs would wait for one that sleeps |
//! | [`starved_requests_at_once`](Policy::starved_requests_at_once) | – | – | yes | running threads pass it on each of their CPUs |
//! | [`wakes_early`](Policy::wakes_early) | – | – | yes | an idle CPU takes long to leave a deep sleep |
//! | [`shares_lines`](Policy::shares_lines) | – | – | yes | a lock's line comes from another CPU for each reader |
//! | [`least_probe_ns`](Policy::least_probe_ns) | long | long | 0 | a stopped thread may only be waiting for this very CPU |
//! | [`defers_to_release`](Policy::defers_to_release) | yes | – | – | no waiter runs before the thread that has the CPU leaves it |
//!
//! Measured: `notes/tuning.md` ("CPUs to spare", "One CPU", and the sections of each mechanism).

use spinpark_platform::Platform;

/// The questions. A platform's [`cpus`](spinpark_platform::Platform) and constants answer them.
pub(crate) trait Policy: Platform {
    /// Whether a thread counts which of its tries for locks that are contended fail. If many do, it skips the
    /// fast path.
    #[inline]
    fn counts_tries() -> bool {
        Self::cpus() > 2
    }

    /// Whether the writers that spin for a lock do so in a queue, of which only the head polls.
    #[inline]
    fn queues_spinners() -> bool {
        Self::cpus() > 2
    }

    /// For how many spinners there is a CPU beside the owner's.
    #[inline]
    fn cpus_to_spin_on() -> u32 {
        Self::cpus() - 1
    }

    /// `ns` for each CPU: as many threads as run may have come at once.
    #[inline]
    fn for_each_cpu(ns: u64) -> u64 {
        u64::from(Self::cpus()) * ns
    }

    /// Whether a reader lets a writer go first that waits awake.
    #[inline]
    fn lets_spinner_pass() -> bool {
        Self::cpus() > 1
    }

    /// Whether a spinner that leaves the lock to its owner, or one of many, polls with wide gaps.
    #[inline]
    fn polls_from_afar() -> bool {
        Self::cpus() > 2
    }

    /// Whether a waiter that leaves the lock to its owner sleeps meanwhile, if its timer is fine enough.
    #[inline]
    fn backs_off_asleep() -> bool {
        Self::cpus() == 2
    }

    /// T17: whether a release may leave a head asleep that keeps its own time.
    #[inline]
    fn leaves_asleep() -> bool {
        Self::cpus() == 2
    }

    /// Whether a head that lost is to be left to its own timer (`TIMED`).
    #[inline]
    fn head_keeps_time() -> bool {
        Self::cpus() != 2 || Self::has_fine_timers()
    }

    /// Whether a spinner on which sleeping waiters rely waits for longer than another.
    #[inline]
    fn primary_waits_longer() -> bool {
        Self::cpus() > 2
    }

    /// Whether a spinner goes to sleep if the lock is promised to a waiter that does not come.
    #[inline]
    fn leaves_promised() -> bool {
        Self::cpus() > 2
    }

    /// Whether a woken waiter that has starved polls once, and then requests the lock.
    #[inline]
    fn starved_requests_at_once() -> bool {
        Self::cpus() > 2
    }

    /// T13: whether a thread that is served wakes waiters behind it early.
    #[inline]
    fn wakes_early() -> bool {
        Self::cpus() > 2
    }

    /// Whether a read among others costs more than one alone.
    #[inline]
    fn shares_lines() -> bool {
        Self::cpus() > 2
    }

    /// The least time until a waiter probes a lock (L3), ns.
    #[inline]
    fn least_probe_ns() -> u64 {
        if Self::cpus() > 2 {
            0
        } else {
            Self::TUNING.least_probe_ns
        }
    }

    /// Whether a signal under the mutex leaves the wake-up to the release of the mutex.
    #[inline]
    fn defers_to_release() -> bool {
        Self::cpus() == 1
    }
}

impl<P: Platform> Policy for P {}
