//! Whether the holder of a lock has a CPU: asked of the kernel for some waits.
//!
//! The kernel knows for how long a thread was ready to run and had no CPU. A waiter asks for that of the
//! holder before it blocks, and once more when it has the lock. Asking takes some µs, so a thread asks once
//! in [`EVERY`] at most. Waits that last longer are all watched; others are sampled.

use core::sync::atomic::Ordering::Relaxed;

use spinpark_linux::raw;

use super::tally::add;
use super::thread_state::{Facts, ThreadState, WaitRecord};
use super::Recorder;
use crate::format::{HolderId, Locks, NONE};

/// A thread watches a holder once in this time at most, ns.
const EVERY: u64 = 2_000_000;
/// Of a wait that was shorter, ns, the second question would take too large a part; nor was the holder
/// without a CPU for long.
const SHORT: u64 = 100_000;

/// A holder that is being watched.
#[derive(Clone, Copy)]
pub(super) struct Watch {
    thread: u32,
    /// How long it had had no CPU at the start, ns.
    delay: u64,
}

impl Recorder {
    /// A wait begins for what `thread` holds, at `now`.
    pub(super) fn watch(&self, own: &ThreadState, thread: u32, now: u64) -> Option<Watch> {
        if thread == 0 || self.ticks.ns(now.saturating_sub(own.watched().get())) < EVERY {
            return None;
        }
        own.watched().set(now);
        // Whether their locks are held or free is not known.
        if self.file.header().is_none_or(|header| header.locks == Locks::Library as u32) {
            return None;
        }
        // A sandbox may kill for the question.
        if raw::sandbox() != self.sandbox.load(Relaxed) {
            return None;
        }
        match raw::run_delay(thread) {
            Some(delay) => Some(Watch { thread, delay }),
            None => {
                self.note_end_of(thread);
                None
            }
        }
    }

    /// The wait has ended: counts it, if it was for one holder.
    pub(super) fn watched(&self, facts: &Facts, waited: &WaitRecord, watch: &Watch, table: u32) {
        let was_it = match HolderId::from_number(waited.last) {
            HolderId::Table(last) => last == table,
            _ => waited.last == NONE || waited.last == waited.holder,
        };
        // SAFETY: null, or an entry, which stays where it is.
        let Some(stats) = (unsafe { facts.stats.as_ref() }).filter(|_| was_it && waited.is_split) else {
            return;
        };
        let held = waited.ticks - waited.free;
        let delay = if self.ticks.ns(waited.ticks) < SHORT {
            0
        } else {
            let Some(delay) = raw::run_delay(watch.thread) else { return };
            self.ticks.ticks(delay.saturating_sub(watch.delay))
        };
        add(&stats.watched, held);
        add(&stats.no_cpu, delay.min(held));
    }
}
