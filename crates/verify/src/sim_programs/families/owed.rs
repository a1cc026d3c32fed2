//! What a read-write lock owes to threads that have demanded it.

use std::cell::{Cell, RefCell};

use spinpark_sim::here::{self, has_priorities};

/// The threads that have demanded the lock, and are owed it: they wait without a deadline, to hold the lock alone.
#[derive(Default)]
pub(super) struct Owed {
    /// The thread that waits so; none of its demands count else: it may take them back.
    waits: RefCell<Vec<u32>>,
    /// The thread that demanded it, which demand that was, and how often others came in alone since.
    demands: RefCell<Vec<(u32, u64, u32)>>,
    made: Cell<u64>,
}

impl Owed {
    /// The running thread waits by `act`.
    pub(super) fn wait<R>(&self, act: impl FnOnce() -> R) -> R {
        let me = here::thread().number();
        self.waits.borrow_mut().push(me);
        let result = act();
        self.waits.borrow_mut().retain(|&waits| waits != me);
        self.demands.borrow_mut().retain(|&(who, ..)| who != me);
        result
    }

    pub(super) fn demanded(&self, thread: u32) {
        let is_known = self.demands.borrow().iter().any(|&(who, ..)| who == thread);
        if self.waits.borrow().contains(&thread) && !is_known {
            self.made.set(self.made.get() + 1);
            self.demands.borrow_mut().push((thread, self.made.get(), 0));
        }
    }

    /// The demand was withdrawn: there is one at a time.
    pub(super) fn withdrawn(&self) {
        self.demands.borrow_mut().clear();
    }

    /// The latest demand that is not met.
    pub(super) fn latest(&self) -> Option<u64> {
        self.demands.borrow().iter().map(|&(_, demand, _)| demand).max()
    }

    pub(super) fn is_owed(&self, demand: u64) -> bool {
        self.demands.borrow().iter().any(|&(_, known, _)| known == demand)
    }

    /// The running thread has come in alone, out of the queue or past it. One may have been on its way in at the demand.
    pub(super) fn came_in_alone(&self) {
        for (who, _, times) in self.demands.borrow_mut().iter_mut() {
            *times += 1;
            if *times > 1 && !has_priorities() {
                here::fail(format!(
                    "starvation: thread {who} demanded the lock, and writers have passed it {times} times since"
                ));
            }
        }
    }
}
