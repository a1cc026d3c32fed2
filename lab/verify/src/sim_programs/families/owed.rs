//! What a read-write lock owes to threads that have requested it.

use std::cell::{Cell, RefCell};

use spinpark_sim::here::{self, has_priorities};

/// The threads that have requested the lock, and are owed it: they wait without a deadline, to hold the lock
/// alone.
#[derive(Default)]
pub(super) struct Owed {
    /// The thread that waits so; none of its requests count else: it may take them back.
    waits: RefCell<Vec<u32>>,
    /// The thread that requested it, which request that was, and how often others came in alone since.
    requests: RefCell<Vec<(u32, u64, u32)>>,
    made: Cell<u64>,
}

impl Owed {
    /// The running thread waits by `act`.
    pub(super) fn wait<R>(&self, act: impl FnOnce() -> R) -> R {
        let me = here::thread().number();
        self.waits.borrow_mut().push(me);
        let result = act();
        self.waits.borrow_mut().retain(|&waits| waits != me);
        self.requests.borrow_mut().retain(|&(who, ..)| who != me);
        result
    }

    pub(super) fn requested(&self, thread: u32) {
        let is_known = self.requests.borrow().iter().any(|&(who, ..)| who == thread);
        if self.waits.borrow().contains(&thread) && !is_known {
            self.made.set(self.made.get() + 1);
            self.requests.borrow_mut().push((thread, self.made.get(), 0));
        }
    }

    /// The request was withdrawn: there is one at a time.
    pub(super) fn withdrawn(&self) {
        self.requests.borrow_mut().clear();
    }

    /// The latest request that is not met.
    pub(super) fn latest(&self) -> Option<u64> {
        self.requests.borrow().iter().map(|&(_, request, _)| request).max()
    }

    pub(super) fn is_owed(&self, request: u64) -> bool {
        self.requests.borrow().iter().any(|&(_, known, _)| known == request)
    }

    /// The running thread has come in alone, out of the queue or past it. One may have been on its way in at
    /// the request.
    pub(super) fn came_in_alone(&self) {
        for (who, _, times) in self.requests.borrow_mut().iter_mut() {
            *times += 1;
            if *times > 1 && !has_priorities() {
                here::fail(format!(
                    "starvation: thread {who} requested the lock, and writers have passed it {times} times since"
                ));
            }
        }
    }
}
