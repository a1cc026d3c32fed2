//! A lock from its acquisition to its release: its holder is noted meanwhile.
//!
//! ```text
//! begin_wait ─ (the real lock blocks) ─ end_wait ─┬─ gave_up                        written at once
//!                                                 └─ acquired ─┐
//! acquired_at_once ────────────────────────────────────────────┴─ release ─ released  written after the
//! release
//! ```
//!
//! A thread that holds a lock only reads the clock and writes notes to its own memory; it writes the tables
//! after the release. The wait before is in [`super::wait`].

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::clock::LONG;
use super::governor::Bounded;
use super::hash::hash;
use super::shared_tables::HandOff;
use super::site_cache::LockCall;
use super::tally::add;
use super::thread_state::{here, Facts, ThreadState};
use super::Recorder;
use crate::format::{Detail, HolderId, Kind, Role};

/// What a thread is about to release.
pub enum Releasing {
    /// A lock that is not noted.
    Unknown,
    /// It holds it still afterwards: it had taken it more than once.
    Again,
    /// The end of a hold: to be passed to [`Recorder::released`], or to [`Recorder::kept`].
    Last(Release),
}

/// What is known of a call before the lock is acquired.
pub struct Prepared(Option<Facts>);

/// See [`Releasing`].
pub struct Release {
    /// Where it is noted, until after the release: others may have read it, and it would have to be fetched
    /// before.
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

    /// The longest call that the thread made meanwhile.
    pub(super) fn call(&self, own: &ThreadState) -> super::thread_state::Called {
        own.at(self.at).call.get()
    }

    /// When it is about to end, ticks; 0: that is not measured.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The holder.
    pub(super) fn holder(&self, own: &ThreadState) -> HolderId {
        HolderId::TookAt(own.at(self.at).facts.get().stack)
    }

    /// It is not measured if it began before `time`, ticks.
    pub(crate) fn forget_before(&mut self, time: u64) {
        if self.since < time {
            self.end = 0;
        }
    }
}

impl Recorder {
    /// Whether a thread has waited for a lock with this hash. Then its holders are noted.
    #[inline(always)]
    pub fn is_hot(&self, address: usize) -> bool {
        self.hot[hash(address)].load(Relaxed) != 0
    }

    /// Whether the calling thread has noted locks that it holds.
    #[inline(always)]
    pub fn holds_anything(&self) -> bool {
        // SAFETY: null, or memory that is never given back.
        unsafe { here().own.get().as_ref() }.is_some_and(ThreadState::holds_anything)
    }

    pub(crate) fn heat(&self, address: usize) {
        let hot = &self.hot[hash(address)];
        if hot.load(Relaxed) == 0 {
            hot.store(1, Relaxed);
        }
    }

    /// What is known of a call before the lock is acquired: looked up before, so that no lock is held for it.
    #[inline(always)]
    pub fn prepare_call(&self, own: &ThreadState, call: &LockCall, with_site: bool) -> Prepared {
        let mut facts = self.facts(own, call, with_site);
        if let Some(facts) = &mut facts {
            if self.is_contended() {
                facts.times = self.times();
                facts.weight = own.governor.weight_of_acquisition() * facts.times;
            }
        }
        Prepared(facts)
    }

    /// The lock was acquired at once. Its holder is noted; the hold is measured if `is_timed`.
    #[inline(always)]
    pub fn acquired_at_once(&self, own: &ThreadState, call: &LockCall, prepared: Prepared, is_timed: bool) {
        let weight = prepared.0.as_ref().map_or(1, |facts| facts.weight);
        if own.holds_anything() && self.is_again(own, call, weight) {
            return;
        }
        let Some(mut facts) = prepared.0.filter(|facts| facts.weight > 0) else { return };
        if is_timed {
            facts.since = self.ticks.now();
        }
        if self.is_hot(call.address) {
            self.taken_before_waiters(call, &mut facts);
        }
        self.note(own, call.address, facts);
        self.recorded(own, Bounded::Acquisitions);
    }

    /// If threads wait for the lock, this one was faster: how long it holds it is measured then, in a sample
    /// by chance only.
    #[inline(always)]
    fn taken_before_waiters(&self, call: &LockCall, facts: &mut Facts) {
        let Some(shared) = self.shared.get() else { return };
        let slot = shared.slot(call.address);
        let has_waiters = slot.queue.load(Relaxed) != 0;
        // Those whose waits are left out do not count in the queue.
        if has_waiters || slot.is_free.load(Relaxed) != 0 {
            let now = if facts.since == 0 { self.ticks.now() } else { facts.since };
            slot.taken(call.role, now);
            if has_waiters && !self.is_sampling() {
                facts.since = now;
            }
        }
    }

    /// As [`Recorder::count_or_sample`] for a lock that is not hot, if that is no more than to count one that
    /// this thread knows, and the next sample is not due; whether it was. Each of the two numbers changes in
    /// one instruction, so a signal handler does no harm.
    #[inline(always)]
    pub fn count(&self, address: usize, role: Role) -> bool {
        let here = here();
        // SAFETY: null, or memory that is never given back.
        let Some(own) = (unsafe { here.own.get().as_ref() }) else { return false };
        if own.holds_anything() || here.is_busy.get() != 0 || !self.alive.get() || own.gaps.is_due() {
            return false;
        }
        let Some(stats) = own.recent_at(hash(address)).get(address, role) else { return false };
        own.gaps.skip();
        add(&stats.acquisitions, 1);
        true
    }

    /// The lock was acquired at once: it is counted, and noted only if it is hot or a sample.
    pub fn count_or_sample(&self, own: &ThreadState, call: &LockCall) {
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
    fn sample(&self, own: &ThreadState, call: &LockCall, is_sample: bool) {
        if is_sample || self.is_hot(call.address) {
            let prepared = self.prepare_call(own, call, false);
            self.acquired_at_once(own, call, prepared, is_sample);
        } else if !self.is_again(own, call, 1) {
            if let Some(stats) = self.recent(own, call) {
                add(&stats.acquisitions, 1);
            }
        }
    }

    /// Whether the thread holds this lock already, and holds it once more now. Counts it then, for `weight`.
    #[inline(never)]
    fn is_again(&self, own: &ThreadState, call: &LockCall, weight: u32) -> bool {
        let Some(found) = own.find(call.address) else { return false };
        let facts = own.at(found).facts.get();
        let kind = (call.kind)(call.address);
        let can_be = call.role == Role::Read || matches!(kind, Kind::Recursive | Kind::Special);
        if can_be && !own.is_gone(found) {
            let again = &own.at(found).again;
            again.set(again.get() + 1);
            // SAFETY: null, or an entry, which stays where it is.
            if let Some(stats) = unsafe { facts.stats.as_ref() } {
                add(&stats.acquisitions, u64::from(weight));
            }
            return true;
        }
        // Such a lock cannot be held twice: another thread released it, or its release was not seen.
        self.forget_note(own, found);
        false
    }

    /// The thread is about to release a lock. It reads the clock for the last time while it holds it.
    #[inline(always)]
    pub fn release(&self, own: &ThreadState, address: usize) -> Releasing {
        self.forget_older(own);
        let Some(found) = own.find(address) else { return Releasing::Unknown };
        let again = &own.at(found).again;
        if again.get() > 0 && !own.is_gone(found) {
            again.set(again.get() - 1);
            return Releasing::Again;
        }
        let Facts { role, since, .. } = own.at(found).facts.get();
        own.let_go(address);
        let end = if since == 0 { 0 } else { self.ticks.now() };
        Releasing::Last(Release { at: found, role, since, end })
    }

    /// It has released it; `hand_off`: to threads that wait for it.
    #[inline(always)]
    pub fn released(&self, own: &ThreadState, release: &Release, hand_off: Option<(usize, HandOff)>) {
        let facts = own.at(release.at).facts.get();
        // Reading what others write takes as long as all of this, and an error about a short hold is small.
        let held_for = release.end.saturating_sub(release.since);
        let is_short = release.end != 0 && self.ticks.ns(held_for) < LONG;
        let is_true = is_short || !own.is_gone(release.at);
        let around = if self.is_full() { own.around(release.at) } else { None };
        own.remove(release.at);
        own.let_go(0);
        self.write(own, &facts, if is_true { release.end } else { 0 });
        if let Some(outer) = around.filter(|_| is_true && release.end != 0) {
            self.write_nested(own, &facts, outer, held_for);
        }
        if !is_true {
            self.released_unseen(own);
        }
        if let Some((address, hand_off)) = &hand_off {
            self.handed_off(own, *address, &facts, hand_off);
        }
    }

    /// It has released a lock that others may wait for, and whose hold was not noted: what others have found
    /// out about its holder is out of date.
    pub fn released_unseen(&self, own: &ThreadState) {
        own.table().unseen_release.store(self.ticks.now(), Relaxed);
    }

    /// The release failed: the thread still holds it.
    pub fn kept(&self, own: &ThreadState, address: usize, releasing: &Releasing) {
        match releasing {
            Releasing::Unknown => {}
            Releasing::Last(_) => own.let_go(0),
            Releasing::Again => {
                if let Some(found) = own.find(address) {
                    let again = &own.at(found).again;
                    again.set(again.get() + 1);
                }
            }
        }
    }

    /// Writes down the waits whose locks are still held: the process ends, or their end may not be seen.
    #[cold]
    #[inline(never)]
    pub(crate) fn write_pending(&self, own: &ThreadState) {
        own.take_all(|facts| self.write(own, &Facts { since: 0, ..facts }, 0));
    }

    #[inline(always)]
    pub(super) fn note(&self, own: &ThreadState, address: usize, mut facts: Facts) {
        self.skip_no_more(own);
        self.forget_older(own);
        if self.is_full() && facts.since != 0 && !own.holds_anything() {
            let before = own.table().latest.load(Relaxed);
            let waited = facts.wait.as_ref().map_or(0, |wait| wait.ticks);
            if before != 0 {
                facts.non_critical = facts.since.saturating_sub(waited).saturating_sub(before).max(1);
            }
        }
        if !own.push(address, facts) {
            self.note_instead(own, address, facts);
        }
    }

    /// A hold that was noted with another detail than now may have ended unrecorded since.
    #[inline(always)]
    pub(super) fn forget_older(&self, own: &ThreadState) {
        let changed = self.changed.load(Relaxed);
        if own.changed().get() != changed {
            own.changed().set(changed);
            here().passed.set(0);
            self.write_pending(own);
        }
    }

    /// A note is out of date: what is known of that hold is written down.
    pub(super) fn forget_note(&self, own: &ThreadState, at: usize) {
        let facts = own.at(at).facts.get();
        own.remove(at);
        self.write(own, &Facts { since: 0, ..facts }, 0);
    }

    /// All notes are in use: drops those that are out of date.
    #[cold]
    #[inline(never)]
    fn note_instead(&self, own: &ThreadState, address: usize, facts: Facts) {
        while let Some(stale) = own.stale() {
            self.forget_note(own, stale);
        }
        if !own.push(address, facts) {
            self.write(own, &Facts { since: 0, ..facts }, 0);
        }
    }

    /// What is known of a call before the lock is acquired.
    #[inline(always)]
    pub(crate) fn facts(&self, own: &ThreadState, call: &LockCall, with_site: bool) -> Option<Facts> {
        let cached = self.cached_site(own, call)?;
        if with_site && cached.site.get().is_null() {
            let site = self.site_stats(own, call.role, cached.lock.get(), cached.stack.get());
            cached.site.set(site.map_or(ptr::null(), ptr::from_ref));
        }
        Some(Facts {
            lock: cached.lock.get(),
            role: call.role,
            stack: cached.stack.get(),
            weight: 1,
            times: 1,
            since: 0,
            non_critical: 0,
            stats: cached.stats.get(),
            site: cached.site.get(),
            wait: None,
        })
    }
}

const _: () = assert!(Detail::Full as u32 == 3);
