//! Faults: what a machine may do at any time, and seldom does.
//!
//! A lock has to live with all of it, so a test asks for much of it. Two orders of threads: *by time*, as the machine
//! runs them, with random delays; and *by rank* (PCT: Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010): always
//! the runnable thread of the lowest rank runs, ranks are drawn once, and change at a few random steps. An order by rank
//! finds each bug of depth *d* with a known probability.

use serde::{Deserialize, Serialize};

use crate::engine::time::{Ps, ps};
use crate::engine::world::World;

/// In which order threads run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// As the machine's times say.
    #[default]
    Time,
    /// By rank. Time stands still while threads run, apart from what the clock shows.
    Rank,
}

/// How often what goes wrong: probabilities between 0 and 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chaos {
    /// In which order threads run.
    pub order: Order,
    /// Order by rank: how many steps lie between two changes of rank, about.
    pub steps_between_changes: u32,
    /// A thread is held up, as if it were preempted there and then, at a step.
    pub delay: f64,
    /// For how long, on the average, ns. The times are spread widely.
    pub delay_ns: f64,
    /// A futex wait ends at once, woken for no reason or by a signal.
    pub spurious: f64,
    /// A woken thread starts late, by `delay_ns` on the average.
    pub late: f64,
    /// The answer whether an owner runs is drawn by lot.
    pub wrong_oracle: f64,
    /// A restartable step is aborted for no reason.
    pub abort: f64,
}

impl Chaos {
    pub(crate) fn is_on(&self) -> bool {
        self.delay > 0.0 || self.is_by_rank()
    }

    pub(crate) fn is_by_rank(&self) -> bool {
        self.order == Order::Rank
    }

    pub(crate) fn first_rank(&self, rng: &mut fastrand::Rng) -> i64 {
        if self.is_by_rank() { rng.i64(0..1 << 40) } else { 0 }
    }
}

impl World {
    /// Whether a fault of this probability happens now.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    /// At a step of the running thread: what holds it up.
    pub(crate) fn disturb(&mut self) -> Ps {
        if self.chaos.is_by_rank() {
            let between = self.chaos.steps_between_changes.max(1);
            if self.rng.u32(0..between) == 0 {
                self.fall_behind();
            }
        }
        if self.chance(self.chaos.delay) { self.long_time() } else { 0 }
    }

    /// Order by rank: the running thread goes behind all others. A thread that polls has to, or nobody else would run.
    pub(crate) fn fall_behind(&mut self) {
        if self.chaos.is_by_rank() {
            self.shared.last_rank += 1;
            self.threads[self.running].rank = (1 << 40) + self.shared.last_rank;
        }
    }

    /// How late a woken thread starts.
    pub(crate) fn lateness(&mut self) -> Ps {
        if self.chance(self.chaos.late) { self.long_time() } else { 0 }
    }

    /// From far below to far above the average.
    fn long_time(&mut self) -> Ps {
        let exponential = -(1.0 - self.rng.f64()).ln();
        ps(self.chaos.delay_ns * exponential * exponential / 2.0)
    }
}
