//! A wait for a lock, until the lock is acquired or the time is over. How it goes on is in [`super::hold`].
//!
//! Before a thread blocks, its stack is captured, the holder looked for, and both noted for readers: the wait
//! may never end.

use core::sync::atomic::Ordering::Relaxed;

use spinpark_linux::raw;

use super::clock::LONG;
use super::governor::Bounded;
use super::hand_off::Split;
use super::site_cache::LockCall;
use super::spans;
use super::tally::bit;
use super::thread_state::{here, Called, Facts, Outer, ThreadState, WaitRecord};
use super::watch::Watch;
use super::Recorder;
use crate::format::{Begun, HeldWaitStats, Hold, HolderId, RegionId, Role, WaitOutcome, NONE};

/// No lock has this many waiters: where two locks share a slot, the count may be below 0.
const MOST_WAITERS: u32 = 1 << 16;

/// What is known of a wait before it begins.
#[derive(Clone, Copy, Debug)]
pub struct Blocking {
    /// When the thread noticed that it has to wait, ticks.
    pub start: u64,
    /// The thread that has the lock, 0 if it is free just now; none if that is not known.
    pub owner: Option<u32>,
    /// It is worth a system call to know whether it slept.
    pub is_exact: bool,
    /// It waits until a deadline at most.
    pub is_timed: bool,
    /// The lock may be another process'.
    pub is_shared: bool,
    /// Whether it may be left out, if waits come faster than they can be recorded and this one is short.
    pub lot: Lot,
}

/// Whether a wait is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lot {
    /// It is not.
    None,
    /// That is to be decided by lot.
    Undecided,
    /// It is not: that was decided by lot.
    Recorded,
}

/// A wait that has begun and is left out, unless it is long; it costs next to nothing
/// ([`Recorder::begin_left_out`]).
#[derive(Clone, Copy)]
pub struct LeftOut {
    epoch: u32,
    start: u64,
    /// What it stands for, if it does not last ([`super::spans`]); 0: it began in a light span, and stands
    /// for nothing then.
    times: u32,
    /// The thread that held the lock, or 0.
    owner: u32,
    /// As in [`PendingWait`].
    free: u64,
}

/// A wait that has begun.
#[derive(Clone, Copy)]
pub struct PendingWait {
    /// Of the recorder, at its start.
    epoch: u32,
    start: u64,
    holder: u32,
    /// The table of its noted holder, or [`NONE`].
    holder_table: u32,
    /// As in [`WaitRecord`].
    outer: Outer,
    queue: u32,
    /// For how long the lock was free before, ticks.
    free: u64,
    /// Its holder's table, if that is known, and whether that has a CPU is being asked for.
    watch: Option<(Watch, u32)>,
    /// Voluntary sleeps before, if they are counted.
    sleeps: Option<u64>,
    /// Where it waits; none if the file was full.
    facts: Option<Facts>,
    /// It is left out, unless it is long.
    is_left_out: bool,
    /// It may be left out.
    is_bounded: bool,
    /// As in [`LeftOut`].
    times: u32,
}

/// A wait that has ended.
#[derive(Clone, Copy)]
pub struct FinishedWait {
    /// As in [`PendingWait`].
    holder_table: u32,
    /// As in [`PendingWait`].
    watch: Option<(Watch, u32)>,
    facts: Option<Facts>,
    waited: WaitRecord,
    is_left_out: bool,
}

impl PendingWait {
    /// Whether the thread counts as waiting: not if it is left out.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        !self.is_left_out
    }
}

impl FinishedWait {
    /// The end of a poll ([`super::polling`]).
    pub(super) fn of_poll(facts: Option<Facts>, waited: WaitRecord) -> Self {
        Self { holder_table: NONE, watch: None, facts, waited, is_left_out: false }
    }

    /// What is known of it; none if it is left out, or the file was full.
    pub(super) fn facts(&self) -> Option<Facts> {
        self.facts.filter(|_| !self.is_left_out)
    }

    pub(super) fn waited(&self) -> &WaitRecord {
        &self.waited
    }
}

impl Recorder {
    /// As [`Recorder::begin_wait`], of a thread that leaves out most waits, has noted no lock, and has waited
    /// at this place for this lock before: it is noted for readers while it lasts. Otherwise what is to be
    /// asked of `begin_wait`.
    #[inline(always)]
    pub fn begin_left_out(
        &self,
        own: &ThreadState,
        call: &LockCall,
        (start, owner, is_timed): (u64, Option<u32>, bool),
    ) -> Result<LeftOut, Lot> {
        if own.governor.weight(Bounded::Waits) == 1 || own.holds_anything() || !self.is_hot(call.address) {
            return Err(Lot::Undecided);
        }
        let Some((lock, stack)) = self.cached_numbers(own, call) else { return Err(Lot::Undecided) };
        if !own.governor.leaves_out(Bounded::Waits) {
            return Err(Lot::Recorded);
        }
        if own.governor.is_short_of_time() {
            // As in `begin_wait`.
            own.table().unseen_release.store(start, Relaxed);
        }
        let (role, owner) = (call.role as u32, owner.unwrap_or(0));
        let mut begun =
            Begun { since: start, lock, role, stack, holder: NONE, owner, is_timed, ..Begun::default() };
        self.push_passed(own, &mut begun, call.address);
        self.publish_semaphores(own);
        own.table().waiting.begin(&begun);
        let slot = self.shared.get().map(|shared| shared.slot(call.address));
        let free = slot.map_or(0, |slot| slot.free_until(call.role, start));
        Ok(LeftOut { epoch: self.epoch(), start, times: self.times(), owner, free })
    }

    /// The same in a light span: it is recorded if it lasts, and noted for readers.
    #[inline(always)]
    pub fn begin_light(
        &self,
        own: &ThreadState,
        call: &LockCall,
        (start, owner, is_timed): (u64, Option<u32>, bool),
    ) -> LeftOut {
        let owner = owner.unwrap_or(0);
        let wait = LeftOut { epoch: self.epoch(), start, times: 0, owner, free: 0 };
        // What others know of this thread's locks may not be true any more.
        own.table().unseen_release.store(start, Relaxed);
        let begun = Begun { since: start, holder: NONE, owner, is_timed, ..Begun::default() };
        if own.holds_anything() {
            if let Some(facts) = self.facts(own, call, false) {
                self.publish(own, &facts, begun, None);
            }
            return wait;
        }
        let known = self.cached_numbers(own, call);
        let known = known.or_else(|| self.facts(own, call, false).map(|facts| (facts.lock, facts.stack)));
        if let Some((lock, stack)) = known {
            let mut begun = Begun { lock, role: call.role as u32, stack, ..begun };
            self.push_passed(own, &mut begun, call.address);
            self.publish_semaphores(own);
            own.table().waiting.begin(&begun);
        }
        wait
    }

    /// Such a wait has ended. If it was long, it is recorded after all, with what is known of it, and goes
    /// where the result of [`Recorder::end_wait`] goes. `owner`: none if the lock was acquired; else the
    /// thread that has it still, or 0.
    #[inline(always)]
    pub fn end_left_out(
        &self,
        own: &ThreadState,
        call: &LockCall,
        wait: LeftOut,
        owner: Option<u32>,
    ) -> Option<FinishedWait> {
        let is_acquired = owner.is_none();
        let end = self.ticks.now();
        if wait.epoch != self.epoch() {
            return None; // the parent's, as in `end_wait`
        }
        own.table().waiting.end();
        let ticks = end.saturating_sub(wait.start);
        own.governor.add_waited(ticks);
        if wait.times == 0 {
            return if self.ticks.ns(ticks) < spans::LONG {
                None
            } else {
                self.end_long(own, call, &wait, (end, owner))
            };
        }
        self.count_waited(ticks);
        let slot = self.shared.get().filter(|_| is_acquired).map(|shared| shared.slot(call.address));
        let ended = match self.ticks.ns(ticks) < LONG {
            true => None,
            false => self.end_long(own, call, &wait, (end, owner)),
        };
        if let Some(slot) = slot.filter(|_| ended.is_none()) {
            slot.taken(call.role, end);
        }
        ended
    }

    #[cold]
    #[inline(never)]
    fn end_long(
        &self,
        own: &ThreadState,
        call: &LockCall,
        wait: &LeftOut,
        (end, owner): (u64, Option<u32>),
    ) -> Option<FinishedWait> {
        let start = wait.start;
        let ns = self.ticks.ns(end.saturating_sub(start));
        let weight = match wait.times {
            0 => own.governor.weight_of_any(ns),
            _ => own.governor.weight_of_long(ns, false),
        };
        let times = if ns < spans::LONG { wait.times } else { 1 };
        let (split, last) = self.split((call.address, call.role), (start, end), wait.free);
        let Some(weight) = weight else {
            // It is in no sum, but may be one of those that are kept whole.
            let ticks = end.saturating_sub(start);
            let waited = WaitRecord {
                ticks,
                end,
                last: if split.ended == 0 { NONE } else { last },
                ended: split.ended,
                free: split.free,
                is_split: split.is_known,
                ..WaitRecord::NOTHING
            };
            self.keep_left_out(own, self.facts(own, call, false), &waited);
            return None;
        };
        let facts =
            self.facts(own, call, false).map(|facts| Facts { weight: weight * times, times, ..facts });
        if let Some(shared) = self.shared.get() {
            shared.slot(call.address).holder.store((own.number() + 1) as u16, Relaxed);
        }
        self.recorded(own, Bounded::Waits);
        let holder = match owner {
            Some(owner) if owner != 0 => self.noted_holder(own, call, Some(owner), false).0,
            // Of its releases in a light span only the thread is known.
            _ if wait.times == 0 => {
                self.table_of(wait.owner).map_or(NONE, |table| HolderId::Table(table).number())
            }
            _ => NONE,
        };
        Some(FinishedWait {
            holder_table: NONE,
            watch: None,
            is_left_out: false,
            facts,
            waited: WaitRecord {
                ticks: end.saturating_sub(start),
                end,
                holder,
                // Of a release that was not seen the slot has an older one.
                last: if split.ended == 0 { NONE } else { last },
                ended: split.ended,
                free: split.free,
                is_split: split.is_known,
                queue: 1,
                outcomes: bit(WaitOutcome::Unknown),
                ..WaitRecord::NOTHING
            },
        })
    }

    /// A thread could not have the lock at once, and is about to block.
    pub fn begin_wait(&self, own: &ThreadState, call: &LockCall, blocking: &Blocking) -> PendingWait {
        let Blocking { start, owner, is_exact, is_timed, is_shared, lot } = *blocking;
        let meter = self.meter(own);
        // The first wait for a lock is always recorded.
        let is_first = !self.is_hot(call.address);
        let may_leave_out = lot != Lot::None && !is_first;
        let times = if may_leave_out && call.role != Role::Wake { self.times() } else { 1 };
        let is_left_out = lot == Lot::Undecided && !is_first && own.governor.leaves_out(Bounded::Waits);
        self.file.has_waited();
        self.heat(call.address);
        // This comes first: a release from now on is to waiters.
        let queue = if is_left_out { 0 } else { self.queue(call.address, 1) };
        let slot = self.shared.get().filter(|_| !is_left_out).map(|shared| shared.slot(call.address));
        let free = slot.map_or(0, |slot| slot.wait_begins(call.role, queue == 1, start));
        let (holder, holder_table) =
            if is_left_out { (NONE, NONE) } else { self.noted_holder(own, call, owner, is_shared) };
        own.aside().set(0);
        let mut facts = self.facts(own, call, false);
        if let Some(facts) = facts.as_mut().filter(|_| may_leave_out) {
            facts.weight = own.governor.weight(Bounded::Waits);
        }
        // The time for a new stack, perhaps with a snapshot of the maps, is not waiting.
        let start = start + own.aside().get();
        if own.governor.is_short_of_time() {
            // What others know of this thread's locks may not be true any more. It releases none from the
            // start of the wait on: a thread that has begun to wait since then knows better.
            own.table().unseen_release.store(blocking.start, Relaxed);
        }
        here().events.set(0);
        let mut outer = Outer::NOTHING;
        let by = self.own_of(holder_table).map_or(0, ThreadState::id);
        let thread = owner.filter(|owner| *owner != 0).unwrap_or(by);
        let table = match HolderId::from_number(holder) {
            HolderId::Table(table) => table,
            _ => holder_table,
        };
        let watch = if is_left_out { None } else { self.watch(own, thread, start) };
        let watch = watch.map(|watch| (watch, table));
        if let Some(facts) = &facts {
            let is_noted = by != 0 && by == thread;
            // From when the owner was read, whatever was done since then: see `unseen_release`.
            let since = blocking.start;
            let begun = Begun { since, holder, owner: thread, is_timed, is_noted, ..Begun::default() };
            outer = self.publish(own, facts, begun, None);
        }
        if meter.is_on() {
            self.metered_wait(own, meter.since(), own.holds_anything());
        }
        PendingWait {
            epoch: self.epoch(),
            start,
            holder,
            holder_table,
            outer,
            queue,
            free,
            watch,
            sleeps: is_exact.then(raw::sleeps),
            facts,
            is_left_out,
            is_bounded: lot != Lot::None,
            times,
        }
    }

    /// Notes for readers that the thread is about to block, and what it holds meanwhile; `besides` is a lock
    /// that it releases before. Returns what it holds that others wait for.
    pub(crate) fn publish(
        &self,
        own: &ThreadState,
        facts: &Facts,
        begun: Begun,
        besides: Option<usize>,
    ) -> Outer {
        let (lock, role, stack) = (facts.lock, facts.role as u32, facts.stack);
        let mut begun = Begun { lock, role, stack, ..begun };
        self.forget_older(own);
        let held = own.latest_held().filter(|(address, facts)| self.is_held(*address, facts));
        for (_, facts) in held.filter(|(address, _)| Some(*address) != besides) {
            begun.holds.push(Hold { lock: facts.lock, stack: facts.stack });
        }
        self.push_passed(own, &mut begun, besides.unwrap_or(0));
        self.publish_semaphores(own);
        own.table().waiting.begin(&begun);
        self.outer(own, lock, begun.is_timed, besides)
    }

    /// The mutex that the thread has taken last of those that it has left out, and has not released: it holds
    /// that, too. Not that at `besides`. (If another thread has released it, which POSIX leaves undefined,
    /// this is wrong until the thread's next acquisition.)
    fn push_passed(&self, own: &ThreadState, begun: &mut Begun, besides: usize) {
        self.forget_older(own);
        let passed = here().passed.get();
        if passed == 0 || passed == besides {
            return;
        }
        if let Some((lock, _)) = self.find_lock(passed).filter(|(lock, _)| *lock != begun.lock) {
            begun.holds.push(Hold { lock, stack: NONE });
        }
    }

    /// The calling thread has the mutex at `address`, and leaves that out. `pthread_mutex_unlock` with the
    /// detail `contended` takes this back, the next acquisition that is noted, and a change of the detail.
    pub fn passed(&self, address: usize) {
        here().passed.set(address);
    }

    /// It releases the mutex at `address` in another way.
    pub fn not_passed(&self, address: usize) {
        let passed = &here().passed;
        if passed.get() == address {
            passed.set(0);
        }
    }

    /// What this thread holds besides `lock` that most others wait for; of several the one that it took last,
    /// as far as that is known.
    fn outer(&self, own: &ThreadState, lock: u32, is_timed: bool, besides: Option<usize>) -> Outer {
        let (mut outer, mut best) = (Outer::NOTHING, None);
        if !own.holds_anything() {
            return outer;
        }
        let timed = if is_timed { HeldWaitStats::TIMED } else { 0 };
        let held = own.latest_held().filter(|(address, facts)| self.is_held(*address, facts));
        for (address, facts) in held.filter(|(address, _)| Some(*address) != besides) {
            let queue = self.waiting_for(address);
            let rank = Some((queue, self.is_hot(address), facts.since));
            if facts.lock != lock && rank >= best {
                (outer, best) =
                    (Outer { lock: facts.lock, how: facts.role as u32 | timed, queue, blocked: 0 }, rank);
            }
        }
        outer
    }

    /// The same at the end of a wait. `before`: what it was at the beginning, and when that and this are.
    pub(crate) fn outer_at_end(
        &self,
        own: &ThreadState,
        lock: u32,
        (before, start, end): (Outer, u64, u64),
        besides: Option<usize>,
    ) -> Outer {
        let outer = self.outer(own, lock, before.how & HeldWaitStats::TIMED != 0, besides);
        if outer.lock == NONE {
            return outer;
        }
        let ticks = end.saturating_sub(start);
        let blocked = self.waited_since(outer.lock, (start, end)).unwrap_or_else(|| {
            // As many all the time as at the beginning and the end on average.
            let at_start = if outer.lock == before.lock { before.queue } else { 0 };
            ticks.saturating_mul(u64::from(outer.queue + at_start)) / 2
        });
        Outer { blocked, ..outer }
    }

    /// For how long the threads that wait for `lock` have done so between these points in time, ticks; also
    /// those whose waits are left out. Reading their memory must be short compared with that time: this
    /// thread has the lock.
    fn waited_since(&self, lock: u32, (start, end): (u64, u64)) -> Option<u64> {
        /// The cost of reading one thread's memory, ns: two lines that the other thread has written. And the
        /// share of the time that all of them may take, that of the governor's bound.
        const LOOK: u64 = 100;
        const PART: u64 = 64;
        let count = self.file.header()?.regions[RegionId::Threads as usize].used.load(Relaxed);
        if self.ticks.ns(end.saturating_sub(start)) < u64::from(count) * LOOK * PART {
            return None;
        }
        let waits = (0..count).filter_map(|number| self.own_of(number)?.table().waiting.since(lock));
        Some(waits.map(|since| end.saturating_sub(since.max(start))).sum())
    }

    /// Whether the noted hold has not ended unrecorded, as one in the library may have since a waiter gave
    /// up.
    fn is_held(&self, address: usize, facts: &Facts) -> bool {
        let disturbed = self.shared.get().map_or(0, |shared| shared.slot(address).disturbed.load(Relaxed));
        facts.since == 0 || facts.since >= disturbed
    }

    /// The thread does not block any more. Returns what is known of its wait, for [`Recorder::acquired`] or
    /// [`Recorder::gave_up`].
    pub fn end_wait(&self, own: &ThreadState, call: &LockCall, wait: &PendingWait) -> FinishedWait {
        let end = self.ticks.now();
        if wait.epoch != self.epoch() {
            // It was the parent's: this is a child that a signal handler made meanwhile.
            return FinishedWait {
                holder_table: NONE,
                watch: None,
                facts: None,
                waited: WaitRecord { end, ..WaitRecord::NOTHING },
                is_left_out: true,
            };
        }
        own.table().waiting.end();
        let ticks = end.saturating_sub(wait.start);
        own.governor.add_waited(ticks);
        let ns = self.ticks.ns(ticks);
        self.count_waited(ticks);
        let times = if ns < spans::LONG { wait.times } else { 1 };
        let weight = match wait.facts {
            Some(facts) if ns >= LONG && wait.is_bounded => {
                own.governor.weight_of_long(ns, !wait.is_left_out).map(|weight| weight.min(facts.weight))
            }
            facts => (!wait.is_left_out).then(|| facts.map_or(1, |facts| facts.weight)),
        };
        let Some(weight) = weight else {
            let waited = WaitRecord { ticks, end, ..WaitRecord::NOTHING };
            self.keep_left_out(own, wait.facts, &waited);
            return FinishedWait {
                holder_table: NONE,
                watch: None,
                facts: wait.facts,
                waited,
                is_left_out: true,
            };
        };
        if !wait.is_left_out {
            self.queue(call.address, -1);
        }
        let mut outcomes = outcomes(here().events.replace(0));
        if outcomes & bit(WaitOutcome::Parked) != 0 {
            outcomes &= !bit(WaitOutcome::Spun); // it slept first
        }
        let (mut split, last) = self.split((call.address, call.role), (wait.start, end), wait.free);
        if wait.is_left_out {
            split = Split::UNKNOWN;
        } else if split.ended == 0 && matches!(HolderId::from_number(wait.holder), HolderId::OutOfSight(_)) {
            // It held it until this thread acquired it, as far as is known.
            split = Split { free: 0, ended: 0, is_known: true };
        } else if wait.holder == NONE && split.ended == 0 {
            match wait.sleeps.map(|before| raw::sleeps() > before) {
                // Every acquisition is noted, and every release to waiters: the lock was released just before
                // this one counted.
                Some(false) => split = Split { free: ticks, ended: 0, is_known: true },
                // A thread does not go to sleep for a lock that is free: code that is not recorded held it.
                Some(true) => split = Split::UNKNOWN,
                None => {}
            }
        }
        if let Some(shared) = self.shared.get() {
            let slot = shared.slot(call.address);
            slot.holder.store((own.number() + 1) as u16, Relaxed);
            if slot.handed.load(Relaxed) != 0 && outcomes & bit(WaitOutcome::Parked) != 0 {
                slot.handed.store(0, Relaxed);
                outcomes ^= bit(WaitOutcome::Parked) | bit(WaitOutcome::HandedOver);
            }
        }
        if outcomes & (bit(WaitOutcome::Spun) | bit(WaitOutcome::Parked) | bit(WaitOutcome::HandedOver)) == 0
        {
            outcomes |= match wait.sleeps.map(|before| raw::sleeps() > before) {
                Some(true) => bit(WaitOutcome::Parked),
                Some(false) => bit(WaitOutcome::Spun),
                None => bit(WaitOutcome::Unknown),
            };
        }
        let lock = wait.facts.map_or(NONE, |facts| facts.lock);
        let outer = self.outer_at_end(own, lock, (wait.outer, wait.start, end), None);
        let facts = wait.facts.map(|facts| Facts { weight: weight * times, times, ..facts });
        self.recorded(own, Bounded::Waits);
        FinishedWait {
            holder_table: wait.holder_table,
            watch: wait.watch,
            is_left_out: false,
            facts,
            waited: WaitRecord {
                ticks,
                end,
                holder: wait.holder,
                last,
                ended: split.ended,
                free: split.free.min(ticks),
                is_split: split.is_known,
                outer,
                call: if split.ended == 0 { 0 } else { self.call_at_release(call.address) },
                queue: wait.queue,
                outcomes,
            },
        }
    }

    /// The lock was acquired after a wait.
    pub fn acquired(&self, own: &ThreadState, call: &LockCall, ended: &FinishedWait) {
        if let (Some((watch, table)), Some(facts)) = (&ended.watch, &ended.facts) {
            self.watched(facts, &ended.waited, watch, *table);
        }
        if let Some(shared) = self.shared.get() {
            shared.slot(call.address).taken(call.role, ended.waited.end);
        }
        let Some(facts) = ended.facts else { return };
        if ended.is_left_out {
            return;
        }
        if ended.holder_table != NONE && call.role == Role::Write && self.is_time_to_look(&ended.waited) {
            self.drop_stale_note(own, call.address, ended.holder_table);
        }
        if call.role == Role::Write {
            // It cannot have held it while it waited.
            self.forget_hold(own, call.address);
        }
        let facts = Facts { wait: Some(ended.waited), since: ended.waited.end, ..facts };
        self.note(own, call.address, facts);
        if self.meter(own).is_on() {
            self.metered_wait(own, ended.waited.end, true);
        }
    }

    /// Whether to read another thread's memory while this one has the lock, which costs as much as a
    /// contended release: only after a far longer wait, or at random.
    fn is_time_to_look(&self, waited: &WaitRecord) -> bool {
        const EVERY: u64 = 8;
        // At random: programs that wait for several locks in a fixed order should not miss one each time.
        waited.end / 64 % EVERY == 0 || self.ticks.ns(waited.ticks) >= LONG
    }

    /// The lock was taken after a wait, and its release will not be seen: the wait is written down.
    pub fn acquired_unseen(&self, own: &ThreadState, ended: &FinishedWait) {
        if let Some(facts) = ended.facts {
            self.write(own, &Facts { wait: Some(ended.waited), since: 0, ..facts }, 0);
        }
    }

    /// The time was over before the lock was acquired.
    pub fn gave_up(&self, own: &ThreadState, ended: &FinishedWait) {
        let Some(facts) = ended.facts.filter(|_| !ended.is_left_out) else { return };
        let besides = bit(WaitOutcome::OwnerChanged) | bit(WaitOutcome::OffCpu) | bit(WaitOutcome::Budget);
        let outcomes = ended.waited.outcomes & besides | bit(WaitOutcome::TimedOut);
        // Whether the lock was free or held, this thread did not get it: that counts as held.
        let is_split = facts.role != Role::Wake || ended.waited.is_split;
        self.write_wait(own, &facts, &WaitRecord { outcomes, is_split, ..ended.waited });
    }

    /// Whether threads wait for the lock at `address`, as far as their waits are not left out.
    #[inline(always)]
    pub(super) fn has_waiters(&self, address: usize) -> bool {
        self.shared.get().is_some_and(|shared| shared.slot(address).queue.load(Relaxed) != 0)
    }

    /// The longest call of the holder that released the lock at `address` last.
    fn call_at_release(&self, address: usize) -> Called {
        self.shared.get().map_or(0, |shared| shared.slot(address).call.load(Relaxed))
    }

    fn waiting_for(&self, address: usize) -> u32 {
        let queue = self.shared.get().map_or(0, |shared| shared.slot(address).queue.load(Relaxed));
        if queue > MOST_WAITERS {
            0
        } else {
            queue
        }
    }

    /// One waiter more or less; how many there are then.
    pub(crate) fn queue(&self, address: usize, change: i32) -> u32 {
        let Some(shared) = self.shared.get() else { return 0 };
        let queue = &shared.slot(address).queue;
        queue.fetch_add(change as u32, Relaxed).wrapping_add(change as u32)
    }
}

/// The outcomes that these events are.
fn outcomes(events: u32) -> u32 {
    super::EVENTS
        .iter()
        .filter(|(event, _)| events & 1 << event != 0)
        .fold(0, |all, (_, outcome)| all | bit(*outcome))
}
