//! Waits of threads that do not block: they try for a lock again and again, and sleep, yield or spin in
//! between; or they yield in a loop.
//!
//! A *poll* begins with the first try that fails, and ends with one that succeeds. It goes on as long as the
//! thread comes back at once ([`SPIN`]), or has slept or yielded since and comes back soon ([`SLEEP`]).
//! Otherwise the thread has given up, and what it did in between is not known: the poll ended with its last
//! try. It counts as one wait, a long one as several ([`PART`]).
//!
//! Of a loop of `sched_yield` it is only known where it is: a loop that comes back at once is a wait there,
//! as long as its calls. Short loops are one wait together.

use core::ptr;

use super::site_cache::LockCall;
use super::tally::{add, bit};
use super::thread_state::{here, Facts, Outer, Poll, ThreadState, WaitRecord};
use super::wait::FinishedWait;
use super::Recorder;
use crate::format::{HolderId, Role, WaitOutcome, NONE};

/// A thread that tries again within this time, ns, has done nothing else.
const SPIN: u64 = 50_000;
/// The same of one that has slept or yielded.
const SLEEP: u64 = 20_000_000;
/// A poll is written down in parts of this length, ns: it may never end.
const PART: u64 = 50_000_000;
/// Shorter ones are no waits, ns.
const LEAST: u64 = 2_000;
/// A loop of `sched_yield` comes back within this time, ns; a run of fewer calls is none, and it is written
/// down in parts of this length, ns.
const LOOP: u64 = 10_000;
const CALLS: u32 = 4;
const LOOP_PART: u64 = 10_000_000;

fn is_of(poll: &Poll, call: &LockCall) -> bool {
    poll.address.get() == call.address && poll.role.get() == call.role as u32
}

impl Recorder {
    /// A try did not get the lock. `owner`: as in [`Blocking`](super::Blocking).
    pub fn failed(&self, own: &ThreadState, call: &LockCall, owner: Option<u32>) {
        if let Some(stats) = self.recent(own, call) {
            add(&stats.failed_tries, 1);
        }
        let (poll, now) = (own.poll(), self.ticks.now());
        if !self.goes_on(poll, call, now) {
            self.give_up_poll(own);
            poll.address.set(call.address);
            poll.role.set(call.role as u32);
            poll.start.set(now);
            poll.tries.set(0);
            poll.holder.set(NONE);
        }
        let tries = poll.tries.get() + 1;
        poll.tries.set(tries);
        if tries == 2 {
            // Its holders are noted from now on.
            self.heat(call.address);
            let facts = self.facts(own, call, false);
            poll.lock.set(facts.as_ref().map_or(NONE, |facts| facts.lock));
            poll.stack.set(facts.as_ref().map_or(NONE, |facts| facts.stack));
            poll.stats.set(facts.as_ref().map_or(ptr::null(), |facts| facts.stats));
        }
        if tries > 1 && (poll.has_slept.get() != 0 || tries.is_power_of_two()) {
            let (holder, _) = self.noted_holder(own, call, owner, false);
            if holder != NONE && !matches!(HolderId::from_number(poll.holder.get()), HolderId::TookAt(_)) {
                poll.holder.set(holder);
            }
        }
        poll.has_slept.set(0);
        poll.last.set(now);
        if self.ticks.ns(now.saturating_sub(poll.start.get())) >= PART {
            self.give_up_poll(own);
            poll.address.set(call.address);
            poll.start.set(now);
        }
    }

    fn goes_on(&self, poll: &Poll, call: &LockCall, now: u64) -> bool {
        let most = if poll.has_slept.get() != 0 { SLEEP } else { SPIN };
        is_of(poll, call) && self.ticks.ns(now.saturating_sub(poll.last.get())) <= most
    }

    /// Whether the calling thread tries for a lock in a loop, as far as is known.
    #[inline(always)]
    pub fn is_polling(&self) -> bool {
        // SAFETY: null, or memory that is never given back.
        unsafe { here().own.get().as_ref() }.is_some_and(|own| own.poll().address.get() != 0)
    }

    /// The calling thread has slept or yielded.
    pub fn slept(&self) {
        // SAFETY: null, or memory that is never given back.
        if let Some(own) = unsafe { here().own.get().as_ref() } {
            own.poll().has_slept.set(1);
        }
    }

    /// A try got the lock. Whether that was the end of a poll: then it is noted as after a wait.
    pub fn polled(&self, own: &ThreadState, call: &LockCall) -> bool {
        let (poll, now) = (own.poll(), self.ticks.now());
        if !self.goes_on(poll, call, now) || !self.is_wait(poll, now) {
            self.give_up_poll(own);
            return false;
        }
        let waited = self.waited(own, poll, now);
        poll.forget();
        // Polls are recorded in all spans.
        let facts = self.facts(own, call, false).map(|facts| Facts { weight: 1, times: 1, ..facts });
        let ended =
            FinishedWait::of_poll(facts, WaitRecord { outcomes: bit(WaitOutcome::Unknown), ..waited });
        match call.role {
            // Of a semaphore nothing is held afterwards, as far as is known here.
            Role::Wake => self.went_on(own, call, &ended),
            _ => self.acquired(own, call, &ended),
        }
        true
    }

    fn is_wait(&self, poll: &Poll, end: u64) -> bool {
        poll.tries.get() > 1 && self.ticks.ns(end.saturating_sub(poll.start.get())) >= LEAST
    }

    fn waited(&self, own: &ThreadState, poll: &Poll, end: u64) -> WaitRecord {
        let start = poll.start.get();
        WaitRecord {
            ticks: end.saturating_sub(start),
            end,
            holder: poll.holder.get(),
            // Each try found it held.
            is_split: true,
            outer: self.outer_at_end(own, poll.lock.get(), (Outer::NOTHING, start, end), None),
            queue: 1,
            ..WaitRecord::NOTHING
        }
    }

    /// The thread's poll has ended with its last try.
    fn give_up_poll(&self, own: &ThreadState) {
        let poll = own.poll();
        let end = poll.last.get();
        if poll.address.replace(0) == 0 || !self.is_wait(poll, end) || poll.lock.get() == NONE {
            return;
        }
        let Some(role) = Role::from_number(poll.role.get()) else { return };
        let facts = Facts {
            lock: poll.lock.get(),
            role,
            stack: poll.stack.get(),
            weight: 1,
            times: 1,
            since: 0,
            non_critical: 0,
            stats: poll.stats.get(),
            site: ptr::null(),
            wait: None,
        };
        let waited = self.waited(own, poll, end);
        self.file.has_waited();
        self.write_wait(own, &facts, &WaitRecord { outcomes: bit(WaitOutcome::TimedOut), ..waited });
    }

    /// The calling thread has yielded from `start` on, ticks. For how long it has done so in a loop, ticks,
    /// if that is to be written down now.
    #[inline(always)]
    pub fn yielded(&self, start: u64) -> Option<u64> {
        let (yields, now) = (&here().yields, self.ticks.now());
        let since = start.saturating_sub(yields.last.get());
        if self.ticks.ns(since) > LOOP {
            let time = yields.time.replace(0);
            if yields.calls.replace(0) >= CALLS {
                yields.earlier.set(yields.earlier.get() + time);
            }
        }
        yields.last.set(now);
        yields.calls.set(yields.calls.get().saturating_add(1));
        yields.time.set(yields.time.get() + now.saturating_sub(start));
        let time = yields.time.get() + yields.earlier.get();
        if yields.calls.get() < CALLS || self.ticks.ns(time) < LOOP_PART {
            return None;
        }
        yields.time.set(0);
        yields.earlier.set(0);
        Some(time)
    }

    /// Writes that down. The address of the call is the function's number.
    pub fn looped(&self, own: &ThreadState, call: &LockCall, ticks: u64) {
        let Some(facts) = self.facts(own, call, false) else { return };
        self.file.has_waited();
        let outcomes = bit(WaitOutcome::Unknown);
        let waited = WaitRecord { ticks, end: self.ticks.now(), outcomes, ..WaitRecord::NOTHING };
        self.write_wait(own, &facts, &waited);
    }
}
