//! Patch 8: a writer spins on the owner before it queues, in line with other spinners.
//!
//! A spinner at the head of the MCS queue polls the owner while that runs, and takes the lock when it is
//! released, past sleeping waiters. It leaves if the lock went to another thread (document 001's rule), and
//! each time it has tried it goes to the end of the queue. A spinner in the queue cannot leave it: the reason
//! why the kernel got another queue later. It spins behind others that run for as long as they do
//! ([`mcs`](crate::mcs)).
//!
//! Differs from the patch: readers name no owner, and preemption cannot be disabled, so "no owner" may last.
//! A spinner polls that a thousand times in all, then queues; the patch polls until it has to be rescheduled,
//! as this does in a simulated kernel.

use spinpark_platform::{Event, Platform};

use super::count::{WAITING, WRITE};
use super::{NO_OWNER, Rwsem, Series};
use crate::wait::{Oracle, window_polls};

/// What a spinner found at the head of the queue.
enum Attempt {
    Taken,
    Leave,
    /// Not free yet; whether there was an owner.
    Again {
        is_owned: bool,
    },
}

impl<P: Platform, S: Series> Rwsem<P, S> {
    /// Spins while that may pay; returns whether it has the lock.
    pub(super) fn spin(&self) -> bool {
        let mut oracle = Oracle::new();
        let owner = self.owner();
        if owner == NO_OWNER || !oracle.may_run::<P>(owner) {
            return false; // perhaps readers
        }
        let mut window = 0;
        loop {
            let is_owned = match self.spinners.with(|| self.attempt(&mut oracle)) {
                Attempt::Taken => {
                    P::event(Event::SpinAcquired);
                    return true;
                }
                Attempt::Leave => return false,
                Attempt::Again { is_owned } => is_owned,
            };
            if !is_owned && (P::need_resched() || window >= window_polls::<P>()) {
                return false;
            }
            let polls = P::spin_hint();
            window = if is_owned { window } else { window.saturating_add(polls) };
        }
    }

    fn attempt(&self, oracle: &mut Oracle) -> Attempt {
        let owner = self.owner();
        if owner != NO_OWNER && !self.spin_on(owner, oracle) {
            return Attempt::Leave;
        }
        if self.steal() { Attempt::Taken } else { Attempt::Again { is_owned: owner != NO_OWNER } }
    }

    /// Polls while `owner` holds the lock and runs; returns whether it was released.
    fn spin_on(&self, owner: u32, oracle: &mut Oracle) -> bool {
        while self.owner() == owner {
            if P::need_resched() {
                return false;
            }
            if !oracle.may_run::<P>(owner) {
                P::event(Event::SpinLeftOffCpu);
                return false;
            }
            oracle.poll::<P>();
        }
        let is_released = self.owner() == NO_OWNER;
        if !is_released {
            P::event(Event::SpinLeftOwnerChanged);
        }
        is_released
    }

    /// Takes the lock for writing if no thread is active, past all waiters: what a spinner tries.
    pub fn steal(&self) -> bool {
        let seen = self.peek();
        let is_free = seen == 0 || seen == WAITING;
        let taken = is_free && self.exchange(seen, seen + WRITE).is_ok();
        if taken {
            self.note_owner();
        }
        taken
    }
}
