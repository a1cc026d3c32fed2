//! Polling what only another running thread can change, in a bounded way.
//!
//! In a kernel, the holder of a spin lock cannot be preempted. Here it can, and a machine with more threads
//! than CPUs would burn whole time slices. So a thread that has polled for 100 µs sleeps for 50, on a word
//! that is never woken, and polls again.
//!
//! The rule is the same for all that poll, however often they do: it counts the time that they spend awake,
//! not polls. Otherwise a lock with back-off would sleep at another rate than one without, and a comparison
//! of the two would compare sleeps.
//!
//! Where spin locks keep their CPUs ([`SpinLocks::Kept`]), no thread sleeps here.
//!
//! A waiter in a queue behind a predecessor does more ([`Behind`]): it sleeps only if its predecessor does
//! not run either.

use spinpark_platform::{
    AtomicPtr, AtomicU32, Clock, Deadline, NS_PER_MS, NS_PER_US, OnCpu, Ordering::Acquire, Platform,
    SpinLocks,
};

/// Time awake between two brief sleeps, ns: longer than a section under a `wait_lock` here takes on a running
/// CPU.
const AWAKE_NS: u64 = 100 * NS_PER_US;

/// A brief sleep, ns: a system call and two switches are worth it, a time slice is not lost.
const NAP_NS: u64 = 50 * NS_PER_US;

/// Time awake behind a predecessor of whom nothing is known, ns: a time slice. The thread would be preempted
/// anyway.
const SLICE_NS: u64 = 4 * NS_PER_MS;

/// Polls between two readings of the clock, about 1 µs. Shorter waits do not read it.
const POLLS_PER_READING: u32 = 64;

/// A poll does not take longer, ns: what seems to has a preemption in it, in which the thread was not awake.
pub(crate) const MOST_POLL_NS: u64 = 100;

/// Polls of an owner that is not there. The two windows, between taking a lock and naming its owner and
/// between forgetting the owner and the release, are a few instructions, unless the thread is preempted in
/// one. In a kernel no thread is preempted there, and a spinner goes on until it is to leave its CPU.
pub(crate) const fn window_polls<P: Platform>() -> u32 {
    match P::TUNING.spin_locks {
        SpinLocks::Preempted => 1_000,
        SpinLocks::Kept => u32::MAX,
    }
}

/// How long a thread has polled.
#[derive(Debug, Default)]
pub(crate) struct PollBudget {
    /// Since the last reading of the clock.
    polls: u32,
    /// That reading, ns; 0: none yet.
    read_at: u64,
    /// Until then, since the last sleep, ns.
    awake_ns: u64,
}

impl PollBudget {
    /// Between two polls.
    #[inline]
    pub(crate) fn poll<P: Platform>(&mut self) {
        let polls = P::spin_hint();
        self.count::<P>(polls);
    }

    /// Time has passed that `polls` polls would have taken.
    #[inline]
    pub(crate) fn count<P: Platform>(&mut self, polls: u32) {
        if self.is_over::<P>(polls) {
            self.sleep_briefly::<P>();
        }
    }

    /// The same; returns whether it is time for a brief sleep.
    #[inline]
    fn is_over<P: Platform>(&mut self, polls: u32) -> bool {
        if matches!(P::TUNING.spin_locks, SpinLocks::Kept) {
            return false;
        }
        self.polls += polls;
        self.polls >= POLLS_PER_READING && self.read_clock(P::now(Clock::Monotonic))
    }

    /// A reading of the clock; returns whether it is time for a brief sleep.
    fn read_clock(&mut self, now: u64) -> bool {
        if self.read_at > 0 {
            let most = u64::from(self.polls) * MOST_POLL_NS;
            self.awake_ns += now.saturating_sub(self.read_at).min(most);
        }
        (self.polls, self.read_at) = (0, now);
        self.awake_ns >= AWAKE_NS
    }

    #[cold]
    fn sleep_briefly<P: Platform>(&mut self) {
        let never_woken = P::AtomicU32::new(0);
        let at = P::now(Clock::Monotonic).saturating_add(NAP_NS);
        P::futex_wait(&never_woken, 0, Some(Deadline { clock: Clock::Monotonic, at }));
        *self = Self::default();
    }
}

/// Waits until a thread that is in a queue has linked itself; returns its node.
pub(crate) fn linked<P: Platform, N>(link: &P::AtomicPtr<N>) -> *mut N {
    let mut budget = PollBudget::default();
    loop {
        let node = link.load(Acquire);
        if !node.is_null() {
            return node;
        }
        budget.poll::<P>();
    }
}

/// How long a thread has polled for a word that its predecessor in a queue writes.
///
/// The kernel's waiters cannot leave such a queue, and spin for as long as it takes. So these do while the
/// predecessor runs, which spins itself or is the head. If it does not, it was preempted or sleeps, the queue
/// stands, and spinning keeps a CPU from it.
#[derive(Debug)]
pub(crate) struct Behind {
    budget: PollBudget,
    predecessor: u32,
    sample: u64,
    /// Since anything was known of it, ns.
    unknown_ns: u64,
}

impl Behind {
    /// Before the first poll, behind the thread of that name.
    pub(crate) fn new(predecessor: u32) -> Self {
        Self { budget: PollBudget::default(), predecessor, sample: 0, unknown_ns: 0 }
    }

    /// Between two polls.
    #[inline]
    pub(crate) fn poll<P: Platform>(&mut self) {
        if self.budget.is_over::<P>(P::spin_hint()) {
            self.consider::<P>();
        }
    }

    /// Asks for the predecessor, once in a while: that is a system call.
    #[cold]
    fn consider<P: Platform>(&mut self) {
        let answer = P::owner_on_cpu(self.predecessor, &mut self.sample);
        if self.may_sleep(answer) || P::need_resched() {
            self.budget.sleep_briefly::<P>();
        } else {
            self.budget = PollBudget::default();
        }
    }

    /// Whether to sleep briefly, after [`AWAKE_NS`] awake.
    fn may_sleep(&mut self, answer: OnCpu) -> bool {
        self.unknown_ns = if answer == OnCpu::Unknown { self.unknown_ns + AWAKE_NS } else { 0 };
        answer == OnCpu::Off || self.unknown_ns >= SLICE_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls in groups of `polls`, each of which takes `ns`; returns the time awake until a sleep.
    fn awake(polls: u32, ns: u64) -> u64 {
        let mut budget = PollBudget::default();
        let mut now = 1_000;
        for looks in 0.. {
            budget.polls = polls;
            if budget.read_clock(now) {
                return looks * ns;
            }
            now += ns;
        }
        unreachable!()
    }

    #[test]
    fn who_looks_often_naps_as_late_as_who_looks_seldom() {
        assert_eq!(awake(64, 1_000), AWAKE_NS);
        assert_eq!(awake(512, 10_000), AWAKE_NS);
    }

    /// 64 polls in 4 ms are 64 polls and a preemption.
    #[test]
    fn a_preempted_thread_has_not_polled() {
        let mut budget = PollBudget { polls: 64, read_at: 1_000, awake_ns: 0 };
        assert!(!budget.read_clock(4_001_000));
        assert_eq!(budget.awake_ns, 64 * MOST_POLL_NS);
    }

    #[test]
    fn no_thread_naps_behind_a_predecessor_that_runs() {
        let mut behind = Behind::new(7);
        assert!((0..1_000).all(|_| !behind.may_sleep(OnCpu::Running)));
        assert!(behind.may_sleep(OnCpu::Off));
    }

    #[test]
    fn a_predecessor_of_whom_nothing_is_known_is_spun_for_a_time_slice() {
        let mut behind = Behind::new(7);
        let spins = (1..).find(|_| behind.may_sleep(OnCpu::Unknown)).expect("a sleep");
        assert_eq!(spins * AWAKE_NS, SLICE_NS);
        assert!(!behind.may_sleep(OnCpu::Running) && !behind.may_sleep(OnCpu::Unknown));
    }
}
