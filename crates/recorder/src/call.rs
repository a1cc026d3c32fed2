//! What a lock's holder does while others wait for it, as far as it calls libc: a wait of its own, in which
//! they wait, too.
//!
//! It is recorded like a wait for a lock by a thread that holds another one ([`HeldWaitStats`]): the function
//! stands for the lock ([`Kind::Call`](crate::format::Kind::Call)). A release passes the longest call of its
//! hold to the waiters.

use super::site_cache::LockCall;
use super::thread_state::{Called, Facts, Outer, ThreadState, WaitRecord};
use super::Recorder;
use crate::format::NONE;

/// Shorter calls are not counted, ns: they did not block, and to note them would take as long.
const LEAST: u64 = 10_000;
/// In a [`Called`], the number of the function stands above these bits; below, the ticks.
const TICKS_BITS: u32 = 56;

impl Recorder {
    /// The thread, which has noted locks, has made a call from `start` on, ticks. The address of the call is
    /// the function's number.
    pub fn called(&self, own: &ThreadState, call: &LockCall, start: u64) {
        let end = self.now();
        let ticks = end.saturating_sub(start);
        if self.ticks.ns(ticks) < LEAST {
            return;
        }
        let called = pack(call.address, ticks);
        own.called(|longest| if ticks > ticks_of(longest) { called } else { longest });
        let outer = self.outer_at_end(own, NONE, (Outer::NOTHING, start, end), None);
        if outer.lock == NONE || outer.blocked == 0 {
            return;
        }
        if let Some(facts) = self.facts(own, call, false) {
            let facts = if self.is_contended() { Facts { weight: self.times(), ..facts } } else { facts };
            self.write_held_wait(own, &facts, &WaitRecord { ticks, end, outer, ..WaitRecord::NOTHING });
        }
    }

    /// The longest call of the holder that ended a wait: the function's number, and µs.
    pub(super) fn call_of(&self, waited: &WaitRecord) -> (u32, u32) {
        let us = self.ticks.ns(ticks_of(waited.call)) / 1_000;
        ((waited.call >> TICKS_BITS) as u32, u32::try_from(us).unwrap_or(u32::MAX))
    }
}

fn pack(function: usize, ticks: u64) -> Called {
    (function as u64) << TICKS_BITS | ticks.min((1 << TICKS_BITS) - 1)
}

fn ticks_of(called: Called) -> u64 {
    called & ((1 << TICKS_BITS) - 1)
}
