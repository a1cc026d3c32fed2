//! What happens to a lock: somebody has to wait for it, gets it, lets it go.
//!
//! ```text
//! begin_wait ─ (the real lock blocks) ─ end_wait ─┬─ gave_up                        written at once
//!                                                 └─ acquired ─┐
//! acquired_at_once ────────────────────────────────────────────┴─ release ─ released  written after the release
//! ```
//!
//! A stack is captured and the holder looked for before a thread blocks, and noted for readers: the wait may never end. Once
//! it has the lock it only reads the clock and notes in its own memory what it knows; the tables are written when it has let
//! the lock go.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use spinpark_linux::raw;

use super::own::{here, Facts, Own, Waited};
use super::place::Call;
use super::side::hash;
use super::tally::{add, bit};
use super::Recorder;
use crate::format::{Begun, Detail, Hold, Kind, Outcome, Role, NONE};

/// Beside a wait of so many ns a look into another thread's memory is nothing: somebody slept.
const LONG: u64 = 20_000;

/// What is known of a wait before it begins.
#[derive(Clone, Copy, Debug)]
pub struct Blocking {
    /// When the thread noticed that it has to wait, ticks.
    pub start: u64,
    /// The thread that has the lock, 0 if nobody does just now; none if that cannot be told.
    pub owner: Option<u32>,
    /// It is worth a system call to know whether it slept.
    pub is_exact: bool,
    /// It waits until a deadline at most.
    pub is_timed: bool,
}

/// A wait that has begun.
#[derive(Clone, Copy)]
pub struct Wait {
    /// Of the recorder, at its start.
    epoch: u32,
    start: u64,
    holder: u32,
    /// The table of who is noted to hold it, or [`NONE`].
    holder_table: u32,
    queue: u32,
    /// Voluntary sleeps before, if they are counted.
    sleeps: Option<u64>,
    /// Where it waits; none if there was no room.
    facts: Option<Facts>,
}

/// A wait that has ended.
#[derive(Clone, Copy)]
pub struct Ended {
    /// As in [`Wait`].
    holder_table: u32,
    facts: Option<Facts>,
    waited: Waited,
}

/// What a thread is about to let go.
pub enum Letting {
    /// A lock that is not noted.
    Unknown,
    /// It holds it still afterwards: it had taken it more than once.
    Again,
    /// The end of a hold: to be passed to [`Recorder::released`], or to [`Recorder::kept`].
    Last(Release),
}

/// See [`Letting`].
pub struct Release {
    /// Where it is noted, until after the release: others may have read it, and it would have to be fetched before.
    at: usize,
    role: Role,
    /// Ticks; 0: it is not measured.
    since: u64,
    end: u64,
}

impl Release {
    /// How the lock was held.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// It is not measured if it began before `time`, ticks.
    pub(crate) fn forget_before(&mut self, time: u64) {
        if self.since < time {
            self.end = 0;
        }
    }
}

impl Recorder {
    /// Whether somebody has waited for a lock with this hash. Then its holders are noted.
    #[inline(always)]
    pub fn is_hot(&self, address: usize) -> bool {
        self.hot[hash(address)].load(Relaxed) != 0
    }

    /// Whether the calling thread has noted locks that it holds.
    #[inline(always)]
    pub fn holds_anything(&self) -> bool {
        // SAFETY: null, or memory that is never given back.
        unsafe { here().own.get().as_ref() }.is_some_and(Own::holds_anything)
    }

    pub(crate) fn heat(&self, address: usize) {
        let hot = &self.hot[hash(address)];
        if hot.load(Relaxed) == 0 {
            hot.store(1, Relaxed);
        }
    }

    /// A thread could not have the lock at once, and is about to block.
    pub fn begin_wait(&self, own: &Own, call: &Call, blocking: &Blocking) -> Wait {
        let Blocking { start, owner, is_exact, is_timed } = *blocking;
        self.heat(call.address);
        let (holder, holder_table) = self.noted_holder(own, call.address, owner);
        own.aside().set(0);
        let facts = self.facts(own, call, true, false);
        // What a new stack took, with a snapshot of the maps perhaps, is not waiting.
        let start = start + own.aside().get();
        let queue = self.queue(call.address, 1);
        here().events.set(0);
        if let Some(facts) = &facts {
            let by = self.own_of(holder_table).map_or(0, Own::id);
            let thread = owner.filter(|owner| *owner != 0).unwrap_or(by);
            let is_noted = by != 0 && by == thread;
            let begun = Begun { since: start, holder, owner: thread, is_timed, is_noted, ..Begun::default() };
            self.publish(own, facts, begun);
        }
        Wait {
            epoch: self.epoch(),
            start,
            holder,
            holder_table,
            queue,
            sleeps: is_exact.then(raw::sleeps),
            facts,
        }
    }

    /// Notes for readers that the thread is about to block, and what it holds meanwhile.
    pub(crate) fn publish(&self, own: &Own, facts: &Facts, begun: Begun) {
        let (lock, role, stack) = (facts.lock, facts.role as u32, facts.stack);
        let mut begun = Begun { lock, role, stack, ..begun };
        let held = own.latest_held().filter(|(address, facts)| self.is_held(*address, facts));
        held.for_each(|(_, facts)| begun.holds.push(Hold { lock: facts.lock, stack: facts.stack }));
        own.table().waiting.begin(&begun);
    }

    /// Whether what is noted has not ended unseen, as one in the library may have since somebody gave up, and one that was
    /// noted with another detail.
    fn is_held(&self, address: usize, facts: &Facts) -> bool {
        let disturbed = self.side.get().map_or(0, |side| side.slot(address).disturbed.load(Relaxed));
        facts.since == 0 || facts.since >= disturbed.max(self.changed.load(Relaxed))
    }

    /// The thread blocks no more: what is known of its wait, to be passed to [`Recorder::acquired`] or
    /// [`Recorder::gave_up`].
    pub fn end_wait(&self, own: &Own, call: &Call, wait: &Wait) -> Ended {
        let end = self.ticks.now();
        if wait.epoch != self.epoch() {
            // It was the parent's: this is a child that a signal handler made meanwhile.
            let waited = Waited { ticks: 0, end, holder: NONE, queue: 0, outcomes: 0 };
            return Ended { holder_table: NONE, facts: None, waited };
        }
        own.table().waiting.end();
        self.queue(call.address, -1);
        let mut outcomes = outcomes(here().events.replace(0));
        if outcomes & bit(Outcome::Parked) != 0 {
            outcomes &= !bit(Outcome::Spun); // it slept first
        }
        let mut holder = wait.holder;
        if let Some(side) = self.side.get() {
            let slot = side.slot(call.address);
            if holder == NONE {
                holder = slot.released_at(call.address);
            }
            slot.holder.store((own.number() + 1) as u16, Relaxed);
            if slot.handed.load(Relaxed) != 0 && outcomes & bit(Outcome::Parked) != 0 {
                slot.handed.store(0, Relaxed);
                outcomes ^= bit(Outcome::Parked) | bit(Outcome::HandedOver);
            }
        }
        if outcomes & (bit(Outcome::Spun) | bit(Outcome::Parked) | bit(Outcome::HandedOver)) == 0 {
            outcomes |= match wait.sleeps.map(|before| raw::sleeps() > before) {
                Some(true) => bit(Outcome::Parked),
                Some(false) => bit(Outcome::Spun),
                None => bit(Outcome::Unknown),
            };
        }
        let ticks = end.saturating_sub(wait.start);
        Ended {
            holder_table: wait.holder_table,
            facts: wait.facts,
            waited: Waited { ticks, end, holder, queue: wait.queue, outcomes },
        }
    }

    /// The lock was had after a wait.
    pub fn acquired(&self, own: &Own, call: &Call, ended: &Ended) {
        let Some(facts) = ended.facts else { return };
        if ended.holder_table != NONE && call.role == Role::Write && self.is_time_to_look(&ended.waited) {
            self.drop_stale_note(own, call.address, ended.holder_table);
        }
        if call.role == Role::Write {
            // It cannot have held it while it waited.
            self.forget_hold(own, call.address);
        }
        let facts = Facts { wait: Some(ended.waited), since: ended.waited.end, ..facts };
        self.note(own, call.address, facts);
    }

    /// Whether it is time to look into another thread's memory, while this one has the lock: that costs as much as a release
    /// of a lock that others want, and what there is to see is rare. So only after a wait beside which it is nothing, and
    /// every few waits.
    fn is_time_to_look(&self, waited: &Waited) -> bool {
        const EVERY: u64 = 8;
        // By lot: programs that wait in turn for several locks should not miss one each time.
        waited.end / 64 % EVERY == 0 || self.ticks.ns(waited.ticks) >= LONG
    }

    /// The lock was had after a wait, and nobody sees when it is let go: the wait is written down.
    pub fn acquired_unseen(&self, own: &Own, ended: &Ended) {
        if let Some(facts) = ended.facts {
            self.write(own, &Facts { wait: Some(ended.waited), since: 0, ..facts }, 0);
        }
    }

    /// The time was over before the lock was had.
    pub fn gave_up(&self, own: &Own, ended: &Ended) {
        let Some(facts) = ended.facts else { return };
        let besides = bit(Outcome::OwnerChanged) | bit(Outcome::OffCpu) | bit(Outcome::Budget);
        let outcomes = ended.waited.outcomes & besides | bit(Outcome::TimedOut);
        self.write_wait(own, &facts, &Waited { outcomes, ..ended.waited });
    }

    /// The lock was had at once. Its holder is noted; the hold is measured if `is_timed`.
    #[inline(always)]
    pub fn acquired_at_once(&self, own: &Own, call: &Call, is_timed: bool, with_site: bool) {
        if own.holds_anything() && self.is_again(own, call) {
            return;
        }
        // Where each hold is told by its place, every stack is looked at whole.
        let Some(mut facts) = self.facts(own, call, with_site, with_site) else { return };
        if is_timed {
            facts.since = self.ticks.now();
        }
        self.note(own, call.address, facts);
    }

    /// As [`Recorder::count_or_sample`], if that is no more than to count a lock that this thread knows, and the next sample
    /// is not due; whether it was. Each of the two numbers changes in one instruction, so a signal handler does no harm.
    #[inline(always)]
    pub fn count(&self, call: &Call) -> bool {
        let here = here();
        // SAFETY: null, or memory that is never given back.
        let Some(own) = (unsafe { here.own.get().as_ref() }) else { return false };
        let hash = hash(call.address);
        let is_plain = self.hot[hash].load(Relaxed) == 0
            && !own.holds_anything()
            && here.is_busy.get() == 0
            && self.alive.get()
            && !own.gaps.is_due();
        match own.recent_at(hash).get(call) {
            Some(stats) if is_plain => {
                own.gaps.skip();
                add(&stats.acquisitions, 1);
                true
            }
            _ => false,
        }
    }

    /// The lock was had at once: it is counted, and noted only if it is hot or a sample.
    pub fn count_or_sample(&self, own: &Own, call: &Call) {
        let is_sample = own.gaps.is_sample();
        if is_sample || self.is_hot(call.address) || own.holds_anything() {
            return self.sample(own, call, is_sample);
        }
        if let Some(stats) = self.recent(own, call) {
            add(&stats.acquisitions, 1);
        }
    }

    #[cold]
    #[inline(never)]
    fn sample(&self, own: &Own, call: &Call, is_sample: bool) {
        if is_sample || self.is_hot(call.address) {
            self.acquired_at_once(own, call, is_sample, false);
        } else if !self.is_again(own, call) {
            if let Some(stats) = self.recent(own, call) {
                add(&stats.acquisitions, 1);
            }
        }
    }

    /// A try did not get the lock.
    pub fn failed(&self, own: &Own, call: &Call) {
        if let Some(stats) = self.recent(own, call) {
            add(&stats.failed_tries, 1);
        }
    }

    /// Whether the thread holds this lock already, and holds it once more now. Counts it then.
    #[inline(never)]
    fn is_again(&self, own: &Own, call: &Call) -> bool {
        let Some(found) = own.find(call.address) else { return false };
        let facts = own.at(found).facts.get();
        let kind = (call.kind)(call.address);
        let can_be = call.role == Role::Read || matches!(kind, Kind::Recursive | Kind::Special);
        if can_be && !own.is_gone(found) {
            let again = &own.at(found).again;
            again.set(again.get() + 1);
            // SAFETY: null, or an entry, which stays where it is.
            if let Some(stats) = unsafe { facts.stats.as_ref() } {
                add(&stats.acquisitions, 1);
            }
            return true;
        }
        // Nobody can hold such a lock twice: somebody else let it go, or nobody looked.
        own.remove(found);
        self.write(own, &Facts { since: 0, ..facts }, 0);
        false
    }

    /// The thread is about to let a lock go. The last look at the clock while it holds it.
    #[inline(always)]
    pub fn release(&self, own: &Own, address: usize) -> Letting {
        let Some(found) = own.find(address) else { return Letting::Unknown };
        let again = &own.at(found).again;
        if again.get() > 0 && !own.is_gone(found) {
            again.set(again.get() - 1);
            return Letting::Again;
        }
        let Facts { role, since, .. } = own.at(found).facts.get();
        own.let_go(address);
        // With the detail that was, its release may not have been seen.
        let is_measured = since != 0 && since >= self.changed.load(Relaxed);
        let end = if is_measured { self.ticks.now() } else { 0 };
        Letting::Last(Release { at: found, role, since, end })
    }

    /// It has let it go.
    #[inline(always)]
    pub fn released(&self, own: &Own, release: &Release) {
        let facts = own.at(release.at).facts.get();
        // A look at what others write takes as long as all of this, and of a short hold there is little to be wrong.
        let held_for = release.end.saturating_sub(release.since);
        let is_short = release.end != 0 && self.ticks.ns(held_for) < LONG;
        let is_true = is_short || !own.is_gone(release.at);
        own.remove(release.at);
        own.let_go(0);
        self.write(own, &facts, if is_true { release.end } else { 0 });
        if !is_true {
            self.released_unseen(own);
        }
    }

    /// It has let a lock go that others may wait for, and that it had was not noted: what others have found out about its
    /// holder is not true any more.
    pub fn released_unseen(&self, own: &Own) {
        own.table().unseen_release.store(self.ticks.now(), Relaxed);
    }

    /// It could not let it go, and holds it still.
    pub fn kept(&self, own: &Own, address: usize, letting: &Letting) {
        match letting {
            Letting::Unknown => {}
            Letting::Last(_) => own.let_go(0),
            Letting::Again => {
                if let Some(found) = own.find(address) {
                    let again = &own.at(found).again;
                    again.set(again.get() + 1);
                }
            }
        }
    }

    /// Waits whose locks are still held are written down: the process ends.
    pub(crate) fn write_pending(&self, own: &Own) {
        own.take_all(|facts| self.write(own, &Facts { since: 0, ..facts }, 0));
    }

    #[inline(always)]
    fn note(&self, own: &Own, address: usize, facts: Facts) {
        if !own.push(address, facts) {
            self.note_instead(own, address, facts);
        }
    }

    /// There is no room: notes that are not true make room.
    #[cold]
    #[inline(never)]
    fn note_instead(&self, own: &Own, address: usize, facts: Facts) {
        while let Some(stale) = own.stale() {
            let facts = own.at(stale).facts.get();
            own.remove(stale);
            self.write(own, &Facts { since: 0, ..facts }, 0);
        }
        if !own.push(address, facts) {
            self.write(own, &Facts { since: 0, ..facts }, 0);
        }
    }

    /// What is known of a call before the lock is had.
    #[inline(always)]
    pub(crate) fn facts(&self, own: &Own, call: &Call, is_sure: bool, with_site: bool) -> Option<Facts> {
        let place = self.place(own, call, is_sure)?;
        if with_site && place.site.get().is_null() {
            let site = self.site_stats(own, call.role, place.lock.get(), place.stack.get());
            place.site.set(site.map_or(ptr::null(), ptr::from_ref));
        }
        Some(Facts {
            lock: place.lock.get(),
            role: call.role,
            stack: place.stack.get(),
            since: 0,
            stats: place.stats.get(),
            site: place.site.get(),
            wait: None,
        })
    }

    /// One waiter more or less; how many there are then.
    pub(crate) fn queue(&self, address: usize, change: i32) -> u32 {
        let Some(side) = self.side.get() else { return 0 };
        let queue = &side.slot(address).queue;
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

const _: () = assert!(Detail::Full as u32 == 3);
