//! "Is the owner on a CPU?": one load in a kernel, a system call here, so it is not asked at every poll.

use spinpark_platform::{OnCpu, Platform};

/// A poll takes at least so long, ns.
const POLL_NS: u64 = 16;

/// So many answers in a row that say nothing are taken for a no: a spinner without an end needs a yes.
const MOST_UNKNOWN: u32 = 64;

/// What a spinner knows about one owner.
#[derive(Debug)]
pub(crate) struct Oracle {
    owner: u32,
    sample: u64,
    polls: u64,
    unknown: u32,
}

impl Oracle {
    /// Before the first question.
    pub(crate) const fn new() -> Self {
        Self { owner: 0, sample: 0, polls: 0, unknown: 0 }
    }

    /// Whether `owner` may be running, as far as is known.
    pub(crate) fn may_run<P: Platform>(&mut self, owner: u32) -> bool {
        if self.owner != owner {
            *self = Self { owner, ..Self::new() };
        }
        let distance = (P::TUNING.oracle_ns / POLL_NS).max(1);
        let is_due = self.polls.is_multiple_of(distance);
        self.polls += 1;
        if !is_due {
            return true;
        }
        match P::owner_on_cpu(owner, &mut self.sample) {
            OnCpu::Running => self.unknown = 0,
            OnCpu::Off => return false,
            OnCpu::Unknown => self.unknown += 1,
        }
        self.unknown < MOST_UNKNOWN
    }
}
