//! The threads that sleep on words.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use loom::thread::Thread;
use spinpark_platform::{Clock, Deadline, Wait};

/// A thread that sleeps on a word.
pub(super) struct Sleeper {
    pub(super) address: usize,
    pub(super) deadline: Option<Deadline>,
    pub(super) thread: Thread,
    /// Why its sleep has ended.
    pub(super) outcome: Rc<Cell<Option<Wait>>>,
}

impl Sleeper {
    pub(super) fn end(self, outcome: Wait) {
        self.outcome.set(Some(outcome));
        self.thread.unpark();
    }
}

/// All sleepers, oldest first.
#[derive(Default)]
pub(super) struct Sleepers(RefCell<Vec<Sleeper>>);

impl Sleepers {
    /// Adds the youngest sleepers.
    pub(super) fn add(&self, sleepers: impl IntoIterator<Item = Sleeper>) {
        self.0.borrow_mut().extend(sleepers);
    }

    /// Takes out up to `count` sleepers for which `is_meant` holds, oldest first.
    pub(super) fn take(&self, count: u32, is_meant: impl Fn(&Sleeper) -> bool) -> Vec<Sleeper> {
        let mut taken = Vec::new();
        let mut sleepers = self.0.borrow_mut();
        while taken.len() < count as usize {
            let Some(index) = sleepers.iter().position(&is_meant) else { break };
            taken.push(sleepers.remove(index));
        }
        taken
    }

    /// Ends every wait whose deadline is not after what its clock shows.
    pub(super) fn expire(&self, shown: impl Fn(Clock) -> u64) {
        let is_over = |deadline: Deadline| deadline.at <= shown(deadline.clock);
        for sleeper in self.take(u32::MAX, |sleeper| sleeper.deadline.is_some_and(is_over)) {
            sleeper.end(Wait::TimedOut);
        }
    }
}
