//! What a lock guards, as the checker sees it: which threads are inside, and which have to be.
//!
//! All of it is outside of the simulated machine: it costs no time, and nothing comes between two lines of
//! it.

use std::cell::{Cell, RefCell};

use spinpark_platform::{Clock, Clocks, Deadline};
use spinpark_sim::{Failure, Sim, Tuned, here};

/// How a thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Alone.
    Alone,
    /// Beside readers, and alone among those.
    Upgradable,
    /// Beside others.
    Shared,
}

/// The threads inside.
#[derive(Debug, Default)]
pub struct Guard {
    writer: Cell<Option<u32>>,
    upgradable: Cell<Option<u32>>,
    readers: RefCell<Vec<u32>>,
    acquisitions: Cell<u64>,
}

impl Guard {
    /// No thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The threads that are inside in a way that excludes `hold`.
    fn against(&self, hold: Hold) -> Option<u32> {
        let reader = || self.readers.borrow().first().copied();
        let upgradable = self.upgradable.get();
        self.writer.get().or_else(|| match hold {
            Hold::Alone => upgradable.or_else(reader),
            Hold::Upgradable => upgradable,
            Hold::Shared => None,
        })
    }

    /// The running thread has come in.
    pub fn enter(&self, hold: Hold) {
        let me = here::thread().number();
        if let Some(first) = self.against(hold) {
            here::end_with(Failure::Exclusion { first, second: me });
        }
        self.acquisitions.set(self.acquisitions.get() + 1);
        match hold {
            Hold::Alone => self.writer.set(Some(me)),
            Hold::Upgradable => self.upgradable.set(Some(me)),
            Hold::Shared => self.readers.borrow_mut().push(me),
        }
    }

    /// The running thread is about to leave.
    pub fn leave(&self, hold: Hold) {
        let me = here::thread().number();
        match hold {
            Hold::Alone => self.writer.set(None),
            Hold::Upgradable => self.upgradable.set(None),
            Hold::Shared => {
                let mut readers = self.readers.borrow_mut();
                let mine = readers.iter().position(|&reader| reader == me);
                readers.swap_remove(mine.expect("it came in"));
            }
        }
    }

    /// How often a thread has come in.
    #[must_use]
    pub fn acquisitions(&self) -> u64 {
        self.acquisitions.get()
    }

    /// Whether no thread is inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.against(Hold::Alone).is_none()
    }

    /// Comes in, stays for a while, leaves.
    pub fn visit(&self, hold: Hold) {
        self.enter(hold);
        stay();
        self.leave(hold);
    }
}

/// Stays for a while inside a lock: mostly short, sometimes off the CPU.
pub(crate) fn stay() {
    match here::random(24) {
        0 => here::sleep(here::random(20_000)),
        1 => here::yield_now(),
        2 => here::compute(here::random(30_000)),
        _ => here::compute(here::random(300)),
    }
}

/// A deadline within this many `times` the time after which a waiter has starved, or the `longest` hold if
/// that is longer, ns.
pub(crate) fn soon_by<T: Tuned>(longest: u64, times: u64) -> Deadline {
    let at = Sim::<T>::now(Clock::Monotonic) + here::random(T::TUNING.starvation_ns.max(longest) * times);
    Deadline { clock: Clock::Monotonic, at }
}

/// Does something else for a while.
pub(crate) fn wander() {
    match here::random(16) {
        0 => here::sleep(here::random(100_000)),
        1 => here::yield_now(),
        2..8 => {}
        _ => here::compute(here::random(3_000)),
    }
}
