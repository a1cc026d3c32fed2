//! Letting the line in: a writer at its head is woken, and tries itself; readers at its head are let in
//! together.

use spinpark_platform::{AtomicU32, Event, Ordering::Relaxed, Platform};

use super::count::{self, ACTIVE, WAITING};
use super::{Kind, Rwsem, Series};
use crate::wait::Locked;

/// The waiters that may be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The head, reader or writer: no thread may be active.
    Any,
    /// Readers only: readers may be active.
    Readers,
    /// Readers only: the caller holds it for reading, so no writer can steal it.
    BesideMe,
}

impl<P: Platform, S: Series> Rwsem<P, S> {
    /// A release that leaves waiters behind. Patch 9: unless another one is about to wake (S4).
    #[cold]
    #[inline(never)]
    pub(super) fn wake(&self) {
        if S::ONE_WAKER {
            P::full_fence();
            if self.wakeup.load(Relaxed) != 0 {
                return;
            }
            self.wakeup.store(1, Relaxed);
        }
        let mut waiters = self.waiters.lock();
        self.wake_line(&mut waiters, Wake::Any);
    }

    /// The next release wakes itself.
    fn end_wakeup(&self) {
        if S::ONE_WAKER {
            self.wakeup.store(0, Relaxed);
        }
    }

    /// Lets in, or wakes, the head of the line.
    pub(super) fn wake_line(&self, waiters: &mut Locked<'_, P, Kind>, wake: Wake) {
        match waiters.first() {
            Some(Kind::Reader) => {
                self.end_wakeup();
                self.grant(waiters, wake);
            }
            Some(Kind::Writer) if wake == Wake::Any => {
                // It may be about to sleep: it says so, then looks at the count, which the caller has
                // changed. If it does both under the list's lock, it has done so before this, or sees the
                // change.
                if !S::LOOKS_UNDER_LOCK {
                    P::full_fence();
                }
                waiters.wake_first();
                P::event(Event::WokeHead);
                self.end_wakeup();
            }
            // No waiter: patch 9 says that only of a list that is not empty; or the writer is woken
            // later.
            Some(Kind::Writer) | None => self.end_wakeup(),
        }
    }

    /// Lets in the readers at the head, unless a writer was faster.
    fn grant(&self, waiters: &mut Locked<'_, P, Kind>, wake: Wake) {
        let early = if wake == Wake::BesideMe { 0 } else { ACTIVE };
        if early != 0 && !self.reserve() {
            return;
        }
        let (readers, are_all) = waiters.leading(|kind| kind == Kind::Reader);
        let waiting = if are_all { WAITING } else { 0 };
        let change = readers as i32 * ACTIVE - early - waiting;
        if change != 0 {
            self.add(change);
        }
        for _ in 0..readers {
            waiters.pop_wake();
        }
        P::event(Event::GrantedReaders);
    }

    /// Counts one reader in, so that no writer can steal the lock any more; `false` if one has.
    fn reserve(&self) -> bool {
        loop {
            if S::READS_BEFORE_GRANT {
                if S::ONE_WAKER {
                    P::full_fence(); // S4: the writer's release sees `wakeup` cleared, or is seen here
                }
                if count::is_stolen(self.peek()) {
                    return false;
                }
            }
            if !count::is_stolen(self.add(ACTIVE) - ACTIVE) {
                return true;
            }
            if !count::is_idle(self.add(-ACTIVE)) {
                return false; // its release wakes
            }
        }
    }
}
