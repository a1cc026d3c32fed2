//! "Is the owner on a CPU?": one load in a kernel, a system call here, so it is not asked at every poll.

use spinpark_platform::{OnCpu, Platform};

/// The shortest time of a poll, ns.
const POLL_NS: u64 = 16;

/// This number of answers in a row that say nothing is taken for a no: a spinner without an end needs a yes.
const MOST_UNKNOWN: u32 = 64;

/// What a spinner knows about one owner.
#[derive(Debug)]
pub(crate) struct Oracle {
    owner: u32,
    sample: u64,
    /// Polls until the next question.
    left: u64,
    unknown: u32,
    /// The last answer, which holds until the next one.
    may_run: bool,
}

impl Oracle {
    /// Before the first question.
    pub(crate) const fn new() -> Self {
        Self { owner: 0, sample: 0, left: 0, unknown: 0, may_run: true }
    }

    /// Whether `owner` may be running, as far as is known. To be asked at every poll.
    pub(crate) fn may_run<P: Platform>(&mut self, owner: u32) -> bool {
        if self.owner != owner {
            *self = Self { owner, ..Self::new() };
        }
        if self.left > 0 {
            self.left -= 1;
            return self.may_run;
        }
        self.left = P::TUNING.owner_probe_ns / POLL_NS;
        self.unknown += 1;
        self.may_run = match P::owner_on_cpu(owner, &mut self.sample) {
            OnCpu::Running => {
                self.unknown = 0;
                true
            }
            OnCpu::Off => false,
            OnCpu::Unknown => self.unknown < MOST_UNKNOWN,
        };
        self.may_run
    }

    /// The spinner has stayed away for as long as `polls` polls: the next question is due so much earlier.
    pub(crate) fn pass(&mut self, polls: u32) {
        self.left = self.left.saturating_sub(polls.into());
    }

    /// Between two polls.
    pub(crate) fn poll<P: Platform>(&mut self) {
        self.pass(P::spin_hint() - 1);
    }
}
