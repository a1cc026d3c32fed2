//! The time between two owners of a contended lock: when it was released and by which holder, and for how
//! long it was free.
//!
//! ```text
//!  a holds      │ free        │ b holds            │ free      │ the waiter has it
//!  ─────────────┼─────────────┼────────────────────┼───────────┼──────────
//!           release       acquisition          release     acquisition
//! ```
//!
//! The slot of a lock has, in ticks: `ended`, the latest release that saw waiters (its lowest bit: a
//! reader's); `is_free`, no thread has been seen to take the lock since; `free`, for how long it was free
//! before. So a waiter reads the sum twice, when it begins to wait and when it has the lock. The difference
//! is the part of its wait that no holder explains. A release without waiters writes none of it; nor does an
//! acquisition that is left out ([`super::cost`]), by a thread that is faster than the next owner: that
//! thread keeps the time for itself until it releases the lock to waiters. Until then, or until a waiter
//! acquires it, the lock counts as free.
//!
//! Several readers hold a lock at once, and a reader that releases it may leave others behind. So for a
//! reader after a reader the lock was not free, and a writer waits for the reader that leaves last. A reader
//! waits for a writer, even if other readers were faster after it. So the latest release by a writer has a
//! place of its own, and is written before the lock is free.
//!
//! Which holders a wait had is in [`super::parts`].

use core::sync::atomic::Ordering::Relaxed;

use super::hold::Releasing;
use super::releases::{level, Past, READER};
use super::shared_tables::{HandOff, Slot};
use super::site_cache::LockCall;
use super::tally::add;
use super::thread_state::{Facts, ThreadState};
use super::Recorder;
use crate::format::{HolderId, Lock, LockStats, RegionId, Role, NONE};

/// A thread remembers the release of a short hold once in this time at most, ns.
const EVERY: u64 = 2_000;

/// How a wait was split.
#[derive(Clone, Copy)]
pub(super) struct Split {
    /// The lock was free, ticks.
    pub(super) free: u64,
    /// The release that ended the wait, as in the slot; 0 if it was not seen.
    pub(super) ended: u64,
    pub(super) is_known: bool,
}

impl Split {
    pub(super) const UNKNOWN: Self = Self { free: 0, ended: 0, is_known: false };
}

/// Whether a lock that was released is free for a thread that wants it in `role`: of several readers others
/// may have it still.
fn is_free_for(role: Role, ended: u64) -> bool {
    role == Role::Write || ended & READER == 0
}

impl Slot {
    /// For how long the lock was free until `now`, ticks, from any point in time on; for a thread that wants
    /// it in `role`.
    pub(super) fn free_until(&self, role: Role, now: u64) -> u64 {
        let (free, ended) = (self.free.load(Relaxed), self.ended.load(Relaxed));
        if self.is_free.load(Relaxed) == 0 || !is_free_for(role, ended) {
            return free;
        }
        free.wrapping_add(now.saturating_sub(ended & !READER))
    }

    /// One waiter more, from `now` on: for how long the lock was free until then.
    pub(super) fn wait_begins(&self, role: Role, is_first: bool, now: u64) -> u64 {
        if is_first {
            // It is held: another thread has taken it without reading this, as there were no waiters.
            self.is_free.store(0, Relaxed);
            self.held_since.store(now, Relaxed);
        }
        self.free_until(role, now)
    }

    /// A wait ends: how it was split, if that is known. `free`: from [`Slot::wait_begins`].
    pub(super) fn wait_ends(&self, role: Role, (start, end): (u64, u64), free: u64) -> Split {
        let ended = self.ended.load(Relaxed);
        // Where it counted as free at the start, and was not, the difference may be below 0.
        let free = (self.free_until(role, end).wrapping_sub(free) as i64).max(0) as u64;
        let free = free.min(end.saturating_sub(start));
        let is_its = ended & !READER > start && ended & !READER <= end && is_free_for(role, ended);
        Split { free, ended: if is_its { ended } else { 0 }, is_known: self.is_free.load(Relaxed) != 0 }
    }

    /// A thread has taken the lock, at `now`.
    pub(super) fn taken(&self, role: Role, now: u64) {
        if self.is_free.load(Relaxed) == 0 || self.is_free.swap(0, Relaxed) == 0 {
            return;
        }
        self.held_since.store(now, Relaxed);
        let ended = self.ended.load(Relaxed);
        if is_free_for(role, ended) {
            add(&self.free, now.saturating_sub(ended & !READER));
        }
    }
}

impl Recorder {
    /// A wait for the lock at `address` ends: how it was split, and the holder that released the lock last,
    /// as in [`WaitRecord`]. `free`: from [`Slot::wait_begins`].
    pub(super) fn split(
        &self,
        (address, role): (usize, Role),
        (start, end): (u64, u64),
        free: u64,
    ) -> (Split, u32) {
        let Some(shared) = self.shared.get() else { return (Split::UNKNOWN, NONE) };
        let slot = shared.slot(address);
        let split = slot.wait_ends(role, (start, end), free);
        if role == Role::Wake && split.ended != 0 {
            // One wake-up may be for many, of which the first one makes the place look taken.
            return (Split { free: end - split.ended, is_known: true, ..split }, slot.released_by(address));
        }
        if role != Role::Read {
            return (split, slot.released_by(address));
        }
        match shared.latest_writer(address).filter(|past| past.ended > start && past.ended <= end) {
            // It has let in all readers, and others may have been faster.
            Some(Past { ended, holder, .. }) => {
                let free = split.free.max(end - ended).min(end - start);
                (Split { free, ended, is_known: true }, holder)
            }
            None if slot.ended.load(Relaxed) & READER != 0 => (split, NONE),
            None => (split, slot.released_by(address)),
        }
    }

    /// The thread is about to release a lock that threads have waited for, and perhaps do now. The role of
    /// the call: how it has it, if it has not noted that; `is_shared`: it is a read-write lock; `is_awaited`:
    /// a thread sleeps until this release, as one may whose wait is left out.
    #[inline(always)]
    pub fn hand_off(
        &self,
        own: &ThreadState,
        call: &LockCall,
        (is_shared, is_awaited): (bool, bool),
        releasing: &Releasing,
    ) -> Option<HandOff> {
        let is_awaited = is_awaited || self.has_waiters(call.address);
        if !is_awaited || matches!(releasing, Releasing::Again) {
            return None;
        }
        Some(self.hand_off_to_waiters(own, call, is_shared, releasing))
    }

    #[inline(never)]
    fn hand_off_to_waiters(
        &self,
        own: &ThreadState,
        call: &LockCall,
        is_shared: bool,
        releasing: &Releasing,
    ) -> HandOff {
        let (role, holder, end) = match releasing {
            Releasing::Last(release) => (release.role(), release.holder(own), release.end()),
            // No lock is held that others want meanwhile, and no record exists by which a thread's releases
            // are found.
            _ if call.role == Role::Wake => (call.role, HolderId::ReleasedAt(self.stack(own, call.site)), 0),
            // Nothing is unwound while others want the lock: a new stack is looked up after the release.
            _ => {
                let stack = self.known_stack(own, call.site);
                let holder = stack.map_or(HolderId::Table(own.number()), HolderId::ReleasedAt);
                (call.role, holder, 0)
            }
        };
        let now = if end == 0 { self.ticks.now() } else { end };
        let ended = now & !READER | if role == Role::Read { READER } else { 0 };
        let holder = holder.number();
        let (mut held_since, mut held) = (0, 0);
        if let Some(shared) = self.shared.get() {
            let slot = shared.slot(call.address);
            slot.note_release(call.address, holder);
            let (barged, since) = own.barged().get();
            if barged == call.address && since > slot.ended.load(Relaxed) {
                slot.taken(role, since);
            }
            slot.ended.store(ended, Relaxed);
            slot.is_free.store(1, Relaxed);
            let called = if let Releasing::Last(release) = releasing { release.call(own) } else { 0 };
            slot.call.store(called, Relaxed);
            // Those whose waits are left out are not counted.
            let is_counted = slot.queue.load(Relaxed) != 0;
            let since = slot.held_since.load(Relaxed);
            slot.held_since.store(now, Relaxed);
            held_since = if is_counted { since } else { 0 };
            held = if since == 0 { 0 } else { now.saturating_sub(since) };
            if is_shared && role != Role::Read {
                shared.remember_writer(call.address, Past { ended, holder, held });
            }
        }
        // A wake-up may turn out to have woken none.
        if let Some(shared) = self.shared.get().filter(|_| level(held) > 0 && call.role != Role::Wake) {
            shared.rings(call.address).remember(call.address, Past { ended, holder, held });
        }
        HandOff { ended, holder, held_since, held }
    }

    /// The thread has released it; `facts`: what it had noted.
    #[inline(never)]
    pub(super) fn handed_off(&self, own: &ThreadState, address: usize, facts: &Facts, hand_off: &HandOff) {
        self.remember(own, address, hand_off, hand_off.holder);
        // SAFETY: null, or an entry, which stays where it is.
        let stats = unsafe { facts.stats.as_ref() }.filter(|_| facts.since == 0);
        self.add_held(stats, hand_off, facts.times);
    }

    /// The same of a lock that it had not noted: where it was released stands in for where it was taken.
    #[cold]
    #[inline(never)]
    pub fn handed_off_unnoted(&self, own: &ThreadState, call: &LockCall, hand_off: &HandOff) {
        let role = if hand_off.ended & READER == 0 { Role::Write } else { Role::Read };
        let stack = match HolderId::from_number(hand_off.holder) {
            HolderId::ReleasedAt(stack) => stack,
            _ => self.stack(own, call.site),
        };
        let holder = HolderId::ReleasedAt(stack).number();
        self.remember(own, call.address, hand_off, holder);
        if let Some(shared) = self.shared.get().filter(|_| holder != hand_off.holder) {
            shared.name_writer(call.address, hand_off.ended, holder);
        }
        // The lock may be gone by now, and its memory: it is only looked up.
        let Some((lock, _)) = self.find_lock(call.address) else { return };
        if let Some(site) = self.site_stats(own, role, lock, stack) {
            add(&site.released, self.times().into());
        }
        let times = if self.is_light() { 0 } else { self.times() };
        self.add_held(self.lock_stats(own, role, lock), hand_off, times);
    }

    /// A wake-up has woken a thread: it is remembered as a release is.
    pub(super) fn remember_wake(&self, own: &ThreadState, address: usize, hand_off: &HandOff) {
        let Some(shared) = self.shared.get() else { return };
        let past = Past { ended: hand_off.ended, held: hand_off.held, holder: hand_off.holder };
        let now = hand_off.ended & !READER;
        if level(past.held) > 0 || self.ticks.ns(now.saturating_sub(own.handed_off().get())) >= EVERY {
            own.handed_off().set(now);
            shared.rings(address).remember(address, past);
        }
    }

    fn remember(&self, own: &ThreadState, address: usize, hand_off: &HandOff, holder: u32) {
        let now = hand_off.ended & !READER;
        let Some(shared) = self.shared.get() else { return };
        let past = Past { ended: hand_off.ended, held: hand_off.held, holder };
        if level(past.held) > 0 {
            // That was done before the release.
            if holder != hand_off.holder {
                shared.rings(address).name(address, past);
            }
        } else if self.ticks.ns(now.saturating_sub(own.handed_off().get())) >= EVERY {
            own.handed_off().set(now);
            shared.rings(address).remember(address, past);
        }
    }

    /// Adds the time that the lock was held while others waited, where the hold is not measured.
    fn add_held(&self, stats: Option<&LockStats>, hand_off: &HandOff, times: u32) {
        if let Some(stats) = stats.filter(|_| hand_off.held_since != 0) {
            let held = (hand_off.ended & !READER).saturating_sub(hand_off.held_since);
            add(&stats.held_waited, held * u64::from(times));
        }
    }

    /// The lock with this number, of [`Facts`].
    pub(super) fn lock_at(&self, lock: u32) -> Option<&Lock> {
        // SAFETY: such a record was claimed and written.
        (lock != NONE).then(|| unsafe { &*self.file.at::<Lock>(RegionId::Locks, lock) })
    }

    /// The release did not succeed.
    pub fn not_handed_off(&self, address: usize) {
        if let Some(shared) = self.shared.get() {
            shared.slot(address).is_free.store(0, Relaxed);
        }
    }
}
