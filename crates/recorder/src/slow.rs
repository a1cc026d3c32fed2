//! Waits that are kept whole ([`Slow`]): the longest of each thread, and all that are longer than the user
//! has asked for.
//!
//! They are written where a wait is counted, after the lock was released, so that no thread waits for it.

use core::sync::atomic::Ordering::Relaxed;

use super::parts::Parts;
use super::thread_state::{Facts, ThreadState, WaitRecord};
use super::Recorder;
use crate::format::{RegionId, Slow, SlowWait, LONGEST, NONE};

/// Shorter waits are not kept, ns.
const LEAST: u64 = 100_000;

impl Recorder {
    /// Keeps a wait, if it is one of the longest. `parts`: its holders, of which there may be none.
    #[inline(always)]
    pub(super) fn keep_slow(&self, own: &ThreadState, facts: &Facts, waited: &WaitRecord, parts: &Parts) {
        if self.is_slow(own, waited) {
            self.keep(own, facts, waited, parts);
        }
    }

    /// The same for a wait that is in no sum.
    pub(super) fn keep_left_out(&self, own: &ThreadState, facts: Option<Facts>, waited: &WaitRecord) {
        let Some(facts) = facts.filter(|_| self.is_slow(own, waited)) else { return };
        let mut parts = Parts::new();
        if facts.role.is_mutual() {
            self.parts(&facts, waited, &mut parts);
        }
        self.keep(own, &facts, waited, &parts);
    }

    #[inline(always)]
    fn is_slow(&self, own: &ThreadState, waited: &WaitRecord) -> bool {
        let ns = self.ticks.ns(waited.ticks);
        ns >= LEAST && (waited.ticks > own.slow().least.get() || ns >= self.slower_than.load(Relaxed))
    }

    #[cold]
    #[inline(never)]
    fn keep(&self, own: &ThreadState, facts: &Facts, waited: &WaitRecord, parts: &Parts) {
        let record = match self.ticks.ns(waited.ticks) >= self.slower_than.load(Relaxed) {
            true => self.file.claim::<Slow>(RegionId::Slow).map(|(number, _)| number),
            false => self.place(own, waited.ticks),
        };
        let Some(record) = record else { return };
        // What a thread that has ended left behind is written by the one that uses its table now.
        let thread = own.table().id.load(Relaxed);
        if thread == own.id() {
            self.note_name(own);
        }
        // The holder that held it longest; where that is not known, the last one.
        let mut most = (0, NONE);
        for part in parts.all() {
            let held = part.ticks.saturating_sub(part.free);
            if held > most.0 {
                most = (held, part.holder);
            }
        }
        let last = if waited.last == NONE { waited.holder } else { waited.last };
        let holder = if most.1 == NONE { last } else { most.1 };
        // What the last one called is known.
        let (call, call_us) = if holder == waited.last { self.call_of(waited) } else { (0, 0) };
        let wait = SlowWait {
            thread,
            name: own.table().name,
            lock: facts.lock,
            role: facts.role as u32,
            stack: facts.stack,
            holder,
            start: waited.end.saturating_sub(waited.ticks),
            end: waited.end,
            free: if waited.is_split { waited.free } else { 0 },
            is_split: waited.is_split,
            queue: waited.queue,
            outcomes: waited.outcomes,
            call,
            call_us,
        };
        // SAFETY: claimed by this thread, or one of those that it claimed before; all zero is one.
        unsafe { &*self.file.at::<Slow>(RegionId::Slow, record) }.set(&wait);
    }

    /// The record for one of the thread's longest waits: a free one, or that of the shortest.
    fn place(&self, own: &ThreadState, ticks: u64) -> Option<u32> {
        let slow = own.slow();
        if slow.first.get() == 0 {
            let first = self.file.claim_many(RegionId::Slow, LONGEST)?;
            slow.first.set(first + 1);
            slow.lengths.iter().for_each(|length| length.set(0));
        }
        let shortest = slow.lengths.iter().enumerate().min_by_key(|(_, length)| length.get());
        let (at, length) = shortest?;
        length.set(ticks);
        slow.least.set(slow.lengths.iter().map(core::cell::Cell::get).min().unwrap_or(0));
        Some(slow.first.get() - 1 + at as u32)
    }
}
