//! What a thread has learnt about waiting awake: plain data that a platform keeps for each thread.
//!
//! Whether spinning pays depends on the program: on how long it holds its locks, on whether owners sleep or yield, on
//! how many threads want the CPUs. So threads learn it, each for itself, and the same on every machine that locks run on.

use crate::pacing::Pacing;
use crate::{Pace, Spin, NS_PER_MS, NS_PER_US};

/// A thread's habits. All zero in a new thread.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Habits {
    /// How spinning has gone lately, for each kind of [`Spin`].
    spins: [Spins; 4],
    passed: Passed,
    pacing: Pacing,
}

/// Recent luck with spinning.
#[derive(Debug, Default)]
#[repr(C)]
struct Spins {
    /// Spins in a row that did not pay.
    misses: u32,
    /// How many chances to spin to let pass.
    pause: u32,
}

/// How often and since when a thread has passed a waiter that was woken.
#[derive(Debug, Default)]
#[repr(C)]
struct Passed {
    times: u32,
    /// On the monotonic clock, ns.
    since: u64,
}

/// The longest pause: after eight misses in a row, one chance in 256 is taken.
const MOST_MISSES: u32 = 8;

/// How many releases lie between two looks at the clock; a look costs as much as a release.
const PASSES_PER_LOOK: u32 = 16;
/// For how long a woken waiter is passed before it is let run.
const LATE_NS: u64 = 50 * NS_PER_US;
/// Passing that began longer ago was another time.
const FORGOTTEN_NS: u64 = NS_PER_MS;

impl Habits {
    fn spins(&mut self, kind: Spin) -> &mut Spins {
        let [locks, turns, signals, hand_overs] = &mut self.spins;
        match kind {
            Spin::Lock => locks,
            Spin::Turn => turns,
            Spin::Signal => signals,
            Spin::HandOver => hand_overs,
        }
    }

    /// Whether this thread's spins have paid lately. Counts a chance that is let pass.
    ///
    /// A thread that misses tries again after 1, 3, 7, … 255 chances.
    pub fn spins_pay(&mut self, kind: Spin) -> bool {
        let spins = self.spins(kind);
        let pays = spins.pause == 0;
        spins.pause = spins.pause.saturating_sub(1);
        pays
    }

    /// Notes whether a spin paid.
    pub fn spun(&mut self, kind: Spin, paid: bool) {
        let spins = self.spins(kind);
        spins.misses = if paid { 0 } else { MOST_MISSES.min(spins.misses + 1) };
        spins.pause = (1 << spins.misses) - 1;
    }

    /// See [`Platform::pace`](crate::Platform::pace).
    pub fn pace(&mut self, now: u64) -> Pace {
        self.pacing.next(now)
    }

    /// See [`Platform::spun_into`](crate::Platform::spun_into).
    pub fn spun_into(&mut self, now: u64) {
        self.pacing.took(now);
    }

    /// See [`Platform::passed_woken`](crate::Platform::passed_woken): whether to let the waiter run now. Reads the clock (ns)
    /// now and then.
    ///
    /// The waiter is runnable, and mostly waits for this very CPU: the kernel had put it there when both were busy, and lets
    /// it run at the end of a time slice, whatever became idle meanwhile.
    pub fn has_passed_for_long(&mut self, clock: impl FnOnce() -> u64) -> bool {
        let passed = &mut self.passed;
        passed.times += 1;
        if passed.times < PASSES_PER_LOOK {
            return false;
        }
        passed.times = 0;
        let now = clock();
        let since = now.saturating_sub(passed.since);
        if since > FORGOTTEN_NS {
            passed.since = now;
        } else if since > LATE_NS {
            passed.since = 0;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_misses_lets_more_and_more_chances_pass() {
        let mut habits = Habits::default();
        for pause in [1, 3, 7] {
            assert!(habits.spins_pay(Spin::Lock));
            habits.spun(Spin::Lock, false);
            assert_eq!((0..pause).filter(|_| habits.spins_pay(Spin::Lock)).count(), 0);
        }
        assert!(habits.spins_pay(Spin::Turn), "another kind");
        assert!(habits.spins_pay(Spin::Lock));
        habits.spun(Spin::Lock, true);
        assert!(habits.spins_pay(Spin::Lock));
    }

    #[test]
    fn a_waiter_that_is_passed_for_long_is_let_run() {
        let mut habits = Habits::default();
        let mut now = 10 * NS_PER_MS;
        let mut lets_run = 0;
        for _ in 0..200 {
            now += NS_PER_US;
            lets_run += u32::from(habits.has_passed_for_long(|| now));
        }
        assert!((1..=3).contains(&lets_run), "{lets_run} times in 200 µs");
    }
}
