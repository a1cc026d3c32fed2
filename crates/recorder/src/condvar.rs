//! Condition variables: the wait for a signal, separate from the re-acquisition of the mutex.
//!
//! Callers cannot see where one ends and the other begins, but the signaller knows when it signalled. A wait
//! that ended at its deadline has waited for a signal until then. The time after either is the
//! re-acquisition, the wake-up included.

use core::sync::atomic::Ordering::Relaxed;

use super::releases::READER;
use super::shared_tables::HandOff;
use super::site_cache::LockCall;
use super::spans;
use super::tally::{add, bit};
use super::thread_state::{Facts, Outer, ThreadState, WaitRecord};
use super::Recorder;
use crate::format::{Begun, HolderId, Role, WaitOutcome, NONE};

/// A wait on a condition variable that has begun.
#[derive(Clone, Copy)]
pub struct SignalWait {
    /// Of the recorder, at its start.
    epoch: u32,
    start: u64,
    /// As in [`WaitRecord`].
    outer: Outer,
    queue: u32,
    /// The mutex that the wait releases, if it may be noted.
    mutex: Option<usize>,
    facts: Option<Facts>,
    /// What it stands for, if it does not last ([`super::spans`]); 0: it began in a light span, and stands for
    /// nothing then.
    times: u32,
}

impl SignalWait {
    /// Whether the thread counts as waiting: not in a light span.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.times != 0
    }
}

impl Recorder {
    /// The thread is about to wait for a signal; the role of the call is [`Role::Signal`]. `mutex`: one that
    /// may be noted still, and which it lets go before it sleeps; `with`: the address of that mutex.
    pub fn begin_signal_wait(
        &self,
        own: &ThreadState,
        call: &LockCall,
        (with, mutex): (usize, Option<usize>),
        is_timed: bool,
    ) -> SignalWait {
        let is_sampled = self.is_contended() && self.is_hot(call.address);
        let times = if is_sampled { self.times() } else { 1 };
        self.file.has_waited();
        self.heat(call.address);
        let facts = self.facts(own, call, false);
        self.note_mutex(facts.as_ref(), with);
        let queue = self.queue(call.address, 1);
        let start = self.ticks.now();
        let begun = Begun { since: start, holder: NONE, is_timed, ..Begun::default() };
        let outer = facts.as_ref().map_or(Outer::NOTHING, |facts| self.publish(own, facts, begun, mutex));
        SignalWait { epoch: self.epoch(), start, outer, queue, mutex, facts, times }
    }

    /// The same in a light span, for a condition variable that threads have waited for: it is recorded if it
    /// lasts, and noted for readers.
    pub fn begin_light_signal_wait(
        &self,
        own: &ThreadState,
        call: &LockCall,
        mutex: usize,
        is_timed: bool,
    ) -> SignalWait {
        let start = self.ticks.now();
        let facts = self.facts(own, call, false);
        self.note_mutex(facts.as_ref(), mutex);
        let begun = Begun { since: start, holder: NONE, is_timed, ..Begun::default() };
        if let Some(facts) = &facts {
            self.publish(own, facts, begun, Some(mutex));
        }
        self.count_uncounted(call.address, 1);
        let mutex = Some(mutex);
        SignalWait { epoch: self.epoch(), start, outer: Outer::NOTHING, queue: 0, mutex, facts, times: 0 }
    }

    /// One waiter more or less whose wait began in a light span.
    fn count_uncounted(&self, address: usize, change: i32) {
        if let Some(shared) = self.shared.get() {
            shared.uncounted(address).fetch_add(change as u32, Relaxed);
        }
    }

    /// One waiter less. `is_counted`: as [`SignalWait::is_counted`] had it.
    fn waits_no_more(&self, address: usize, is_counted: bool) {
        if is_counted {
            self.queue(address, -1);
        } else {
            self.count_uncounted(address, -1);
        }
    }

    /// Notes the mutex with which a thread waits.
    fn note_mutex(&self, facts: Option<&Facts>, mutex: usize) {
        let lock = facts.and_then(|facts| self.lock_at(facts.lock));
        // Others read the line: it is the same mutex as a rule.
        if let Some(lock) = lock.filter(|lock| lock.mutex.load(Relaxed) != mutex as u64) {
            lock.mutex.store(mutex as u64, Relaxed);
        }
    }

    /// The wait is over, and the mutex held again. `late`: it ended at its deadline, this many ns ago.
    pub fn end_signal_wait(&self, own: &ThreadState, call: &LockCall, wait: &SignalWait, late: Option<u64>) {
        let end = self.ticks.now();
        if wait.epoch != self.epoch() {
            return; // as in `end_wait`
        }
        own.table().waiting.end();
        self.waits_no_more(call.address, wait.is_counted());
        let is_long = self.ticks.ns(end.saturating_sub(wait.start)) >= spans::LONG;
        let weight = if is_long { 1 } else { wait.times };
        if weight == 0 {
            return;
        }
        let slot = self.shared.get().map(|shared| shared.slot(call.address));
        let signal = slot.map_or(0, |slot| slot.signal.load(Relaxed));
        let is_signalled = late.is_none() && signal > wait.start;
        let signaller = slot.filter(|_| is_signalled).map_or(NONE, |slot| slot.released_by(call.address));
        let woken = match late {
            Some(ns) => end.saturating_sub(self.ticks.ticks(ns)),
            None if is_signalled => signal,
            // Woken for no visible reason.
            None => end,
        };
        let woken = woken.clamp(wait.start, end.max(wait.start));
        let Some(facts) = wait.facts.map(|facts| Facts { weight, ..facts }) else { return };
        let outcome = if late.is_some() { WaitOutcome::TimedOut } else { WaitOutcome::Parked };
        let waited = WaitRecord {
            ticks: woken - wait.start,
            end: woken,
            last: signaller,
            ended: if signaller == NONE { 0 } else { signal },
            outer: self.outer_at_end(own, facts.lock, (wait.outer, wait.start, end), wait.mutex),
            queue: wait.queue,
            outcomes: bit(outcome),
            ..WaitRecord::NOTHING
        };
        if late.is_some() {
            self.write_wait(own, &facts, &waited);
        } else {
            self.write(own, &Facts { wait: Some(waited), ..facts }, 0);
        }
        let role = if late.is_some() { Role::Late } else { Role::Back };
        let Some(stats) = self.lock_stats(own, role, facts.lock) else { return };
        let waited = WaitRecord {
            ticks: end.saturating_sub(woken),
            end,
            last: NONE,
            ended: 0,
            outcomes: bit(WaitOutcome::Unknown),
            queue: 0,
            ..waited
        };
        let facts = Facts { role, stats, site: core::ptr::null(), ..facts };
        self.write(own, &Facts { wait: Some(waited), ..facts }, 0);
    }

    /// The thread was cancelled in its wait. `is_counted`: that did not begin in a light span.
    pub fn cancel_signal_wait(&self, call: &LockCall, is_counted: bool) {
        // None: in a child that a signal handler made meanwhile, or it began in an earlier recording.
        let Some(own) = self.enter_fast() else { return };
        own.table().waiting.end();
        self.waits_no_more(call.address, is_counted);
        self.leave();
    }

    /// Whether a signal is forwarded: in a light span, and no thread waits for it.
    #[inline(always)]
    #[must_use]
    pub fn passes_signal(&self, address: usize) -> bool {
        self.is_light()
            && self.shared.get().is_some_and(|shared| {
                shared.uncounted(address).load(Relaxed) == 0 && shared.slot(address).queue.load(Relaxed) == 0
            })
    }

    /// The thread is about to signal; `is_to_all`: to broadcast. Called only if a thread has waited (it is
    /// hot) and [`Recorder::passes_signal`] is false, or everything is counted. With waiters its stack is
    /// noted: where a signal comes from tells if it hands a lock over.
    pub fn signal(&self, own: &ThreadState, call: &LockCall, is_to_all: bool) {
        if let Some(shared) = self.shared.get() {
            let slot = shared.slot(call.address);
            let stack = if self.has_waiters(call.address) { self.stack(own, call.site) } else { NONE };
            let now = self.ticks.now() & !READER;
            let before = slot.signal.load(Relaxed);
            if stack != NONE {
                let holder = HolderId::ReleasedAt(stack).number();
                // What would have been held since the signal before, if a lock is handed over.
                let held = now.saturating_sub(before);
                self.remember_wake(own, call.address, &HandOff { ended: now, holder, held_since: 0, held });
            }
            // Not the one before, if this one has no stack.
            slot.note_release(call.address, HolderId::ReleasedAt(stack).number());
            slot.signal.store(now, Relaxed);
        }
        if self.is_contended() && self.is_light() {
            return;
        }
        if let Some(stats) = self.recent(own, call) {
            let times = if self.is_contended() { self.times().into() } else { 1 };
            add(&stats.wake_ups, times);
            add(&stats.broadcasts, if is_to_all { times } else { 0 });
        }
    }
}
