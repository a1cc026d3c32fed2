//! Waits to be woken: a futex, a semaphore, a barrier, the end of a thread. Only the stack says whether that
//! is a lock, and only readers know names. So what a thread has afterwards is not noted, and each stack has a
//! record of its own ([`Kind::is_by_stack`](crate::format::Kind::is_by_stack)).
//!
//! A thread that wakes others notes its stack and the time, as a release does ([`super::hand_off`]). The
//! memory of the object is never read: it may be gone.
//!
//! ```text
//! begin_wait ─ (the thread sleeps) ─ end_wait ─┬─ went_on    woken, or interrupted
//!                                              ├─ gave_up    its time was over
//!                                              └─ (nothing)  it did not sleep
//! begin_wake ─ (the call that wakes) ─ end_wake
//! ```

use core::sync::atomic::Ordering::Relaxed;

use super::hold::Releasing;
use super::shared_tables::HandOff;
use super::site_cache::LockCall;
use super::tally::bit;
use super::thread_state::{Facts, ThreadState};
use super::wait::FinishedWait;
use super::Recorder;
use crate::format::WaitOutcome;

/// A wake-up that is under way, and what was noted before it.
#[derive(Clone, Copy)]
pub struct Wake {
    hand_off: HandOff,
    ended: u64,
    release: u64,
    held_since: u64,
}

/// The address by which a [`LockCall`] has a word of four bytes: places of locks are distinguished by eighths
/// of it ([`hash`](super::hash::hash)), and two words may lie in eight bytes.
#[inline(always)]
#[must_use]
pub fn word(address: usize) -> usize {
    address << 1
}

/// The inverse.
#[inline(always)]
#[must_use]
pub fn address_of(word: usize) -> usize {
    word >> 1
}

impl Recorder {
    /// The thread goes on after a wait.
    pub fn went_on(&self, own: &ThreadState, call: &LockCall, ended: &FinishedWait) {
        if let Some(shared) = self.shared.get() {
            shared.slot(call.address).taken(call.role, ended.waited().end);
        }
        let Some(facts) = ended.facts() else { return };
        let mut waited = *ended.waited();
        waited.outcomes = waited.outcomes & !bit(WaitOutcome::Unknown) | bit(WaitOutcome::Parked);
        self.write(own, &Facts { wait: Some(waited), since: 0, ..facts }, 0);
        if self.meter(own).is_on() {
            self.metered_wait(own, ended.waited().end, false);
        }
    }

    /// The thread does not come back to its wait: it was cancelled. `is_counted`: the wait was not left out.
    pub fn cancel_wait(&self, call: &LockCall, is_counted: bool) {
        // None: in a child that a signal handler made meanwhile, or it began in an earlier recording.
        let Some(own) = self.enter_fast() else { return };
        own.table().waiting.end();
        if is_counted {
            self.queue(call.address, -1);
        }
        self.leave();
    }

    /// The thread is about to wake threads that wait at an address for which one has waited
    /// ([`Recorder::is_hot`]).
    #[inline(never)]
    pub fn begin_wake(&self, own: &ThreadState, call: &LockCall) -> Option<Wake> {
        let slot = self.shared.get()?.slot(call.address);
        let (ended, release) = (slot.ended.load(Relaxed), slot.release.load(Relaxed));
        let held_since = slot.held_since.load(Relaxed);
        let hand_off = self.hand_off(own, call, (false, true), &Releasing::Unknown)?;
        Some(Wake { hand_off, ended, release, held_since })
    }

    /// It has; whether that woke any. If not, nothing has happened.
    #[inline(never)]
    pub fn end_wake(&self, own: &ThreadState, call: &LockCall, wake: &Wake, woke: bool) {
        let Some(shared) = self.shared.get() else { return };
        if woke {
            return self.remember_wake(own, call.address, &wake.hand_off);
        }
        let slot = shared.slot(call.address);
        if slot.ended.load(Relaxed) == wake.hand_off.ended {
            slot.is_free.store(0, Relaxed);
            slot.ended.store(wake.ended, Relaxed);
            slot.release.store(wake.release, Relaxed);
            slot.held_since.store(wake.held_since, Relaxed);
        }
    }
}
