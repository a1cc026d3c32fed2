//! Faults: what a machine may do at any time, and seldom does.
//!
//! A lock has to live with all of it, so a test asks for much of it. Two orders of threads: *by time*, as the
//! machine runs them, with random delays and preemptions; and *by rank*: always the runnable thread of the
//! lowest rank runs.
//!
//! Order by rank is PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010) with one change: each step
//! is a change of rank with probability 1/s, where PCT draws a fixed number of steps. Its argument carries
//! over. A bug of depth *d* shows in each run in which *d* events come in a certain order. For a run of *n*
//! threads and *k* steps, and *s = k*: the thread that has to be last at first has the highest rank with
//! probability 1/n; the *d − 1* steps at which others have to stop are changes of rank, and no other step is
//! one, with probability (1/k)^(d−1) · (1 − 1/k)^(k−d+1), which is at least 1/(e·k^(d−1)); and the stopped
//! threads go on in the right order with probability 1/(d−1)!, because the ranks that they get are random. So
//! a run finds the bug with probability 1/(e · n · (d−1)! · k^(d−1)) or more. That is a lower bound: mostly
//! many sets of steps will do. A thread that polls goes behind all others, or none of them would end its
//! wait.

use serde::{Deserialize, Serialize};

use crate::time::{Ps, ps};
use crate::world::World;

/// In which order threads run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// As the machine's times say.
    #[default]
    Time,
    /// By rank. Each step takes its time, as if there were one CPU; what is planned for a time comes then.
    Rank,
}

/// How often what goes wrong: probabilities between 0 and 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chaos {
    /// In which order threads run.
    pub order: Order,
    /// Order by rank: how many steps lie between two changes of rank, about.
    pub steps_between_changes: u32,
    /// A thread is held up at a step, with its CPU.
    pub delay: f64,
    /// For how long, on the average, ns. The times are spread widely.
    pub delay_ns: f64,
    /// A thread is preempted at a step: another one gets its CPU, if one waits.
    pub preempt: f64,
    /// A futex wait ends at once, woken for no reason.
    pub spurious: f64,
    /// A signal handler ends a futex wait, after `delay_ns` on the average.
    pub interrupt: f64,
    /// A woken thread starts late, by `delay_ns` on the average.
    pub late: f64,
    /// The answer whether an owner runs is drawn by lot.
    pub wrong_oracle: f64,
    /// A restartable step is aborted for no reason.
    pub abort: f64,
    /// A weak compare-exchange fails for no reason, as on machines with load-linked and store-conditional.
    pub weak: f64,
    /// A store stays in its core's buffer though the core has the line, for `delay_ns` on the average; order
    /// by rank: until nothing of a lower rank is to be done, at a random rank.
    pub buffered: f64,
}

/// Ranks at first are below this; those of threads that were stopped lie between this and the next; then come
/// threads that poll.
pub(crate) const STOPPED: i64 = 1 << 40;
pub(crate) const POLLING: i64 = 1 << 41;

impl Chaos {
    pub(crate) fn is_on(&self) -> bool {
        self.delay > 0.0 || self.is_by_rank()
    }

    pub(crate) fn is_by_rank(&self) -> bool {
        self.order == Order::Rank
    }

    pub(crate) fn first_rank(&self, rng: &mut fastrand::Rng) -> i64 {
        if self.is_by_rank() { rng.i64(0..STOPPED) } else { 0 }
    }
}

impl World {
    /// Whether a fault of this probability happens now.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    /// Order by rank: the running thread goes behind all others. A thread that polls has to, or no other
    /// would run.
    pub(crate) fn fall_behind(&mut self) {
        if self.chaos.is_by_rank() {
            self.last_rank += 1;
            self.threads[self.running].rank = POLLING + self.last_rank;
        }
    }

    /// How late a woken thread starts.
    pub(crate) fn lateness(&mut self) -> Ps {
        if self.chance(self.chaos.late) { self.long_time() } else { 0 }
    }

    /// From far below to far above the average.
    pub(crate) fn long_time(&mut self) -> Ps {
        let exponential = -libm::log(1.0 - self.rng.f64());
        ps(self.chaos.delay_ns * exponential * exponential / 2.0)
    }
}
