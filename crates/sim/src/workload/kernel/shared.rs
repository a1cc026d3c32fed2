//! Words that all CPUs write: reference counts and spin locks of the kernel's objects, each on a cache line
//! of its own.

use std::rc::Rc;

use spinpark_platform::{AtomicU32 as _, Ordering::Relaxed, SpinPolicy};

use crate::object::Object;
use crate::platform::{AtomicU32, Sim};

/// A cache line with a word, or more of them. Clones are the same line.
#[derive(Debug)]
pub(super) struct Line<T>(Rc<Object<T>>);

impl<T> Clone for Line<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// A counter.
pub(super) type Count = Line<AtomicU32>;

impl Count {
    pub(super) fn new() -> Self {
        Self(Object::new(AtomicU32::new(0)))
    }

    /// One atomic operation.
    pub(super) fn change(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// A store, as to the links of a list.
    pub(super) fn write(&self) {
        self.0.store(1, Relaxed);
    }
}

/// The kernel's spin lock of 2008 to 2014: tickets. A waiter polls the line that the holder has to write.
#[derive(Debug)]
pub(super) struct Tickets {
    next: AtomicU32,
    serving: AtomicU32,
}

/// Such a lock.
pub(super) type SpinLock = Line<Tickets>;

impl SpinLock {
    pub(super) fn new() -> Self {
        Self(Object::new(Tickets { next: AtomicU32::new(0), serving: AtomicU32::new(0) }))
    }

    /// Runs `section` under the lock. Within [`in_kernel`](crate::here::in_kernel): a waiter is not
    /// preempted.
    pub(super) fn with(&self, section: impl FnOnce()) {
        let Tickets { next, serving } = &**self.0;
        let mine = next.fetch_add(1, Relaxed);
        while serving.load(Relaxed) != mine {
            Sim::<crate::LinuxTuning>::spin_hint();
        }
        section();
        serving.store(mine.wrapping_add(1), Relaxed);
    }
}
