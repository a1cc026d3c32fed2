//! A read-write lock in one word: [`LockCore`] used in all its ways.
//!
//! Origin: Linux' rwsem as document 002 makes it (read the count before a compare-exchange, writers spin
//! before they queue, one waker, readers woken as a group) and as it became later (hand-off). State,
//! transitions, invariants and orderings: [`core`](crate::core) and [`word`](crate::word).
//!
//! # Policy
//!
//! Readers may recurse even while a writer waits, which is glibc's promise for its default kind; yet a stream
//! of readers cannot starve a writer. A writer that was passed over for `starvation_ns` sets `HANDOFF`; from
//! then on a reader waits behind it *unless that thread may hold a read lock on this very lock already*,
//! which the platform knows ([`Platform::may_hold_read`]). So recursion never waits. A reader inside may be
//! waiting for another thread's read, so the writer lets readers in again after a time, and tries again later
//! ([`slow_path`](crate::core)). If the writer's thread does not run, a reader that has queued for
//! `reader_patience_ns` joins readers all the same.
//!
//! Other readers that find a writer waiting awake alongside readers (`SPINNER`) let it pass for up to
//! `pass_ns`, unless that has not paid lately: readers that come back at once leave such a writer no moment
//! in which it could poll the word.

use core::num::NonZeroU32;

use spinpark_platform::{Deadline, Platform, Reader, SlotLeft};

use crate::bias::{Afterwards, ReaderBias};
use crate::core::{LockCore, Outcome};
use crate::policy::{Adaptive, Policy, Usual};
use crate::queue::{HasQueue, WaitQueue};
use crate::word::{self, Release, Want, UNIT, UPGRADE};

/// How a lock treats readers that come while there are waiters: the same in each call on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Preference {
    /// Readers join readers until a writer starves.
    #[default]
    Readers,
    /// Readers do not join readers while there is a waiter, and the last of those leaves the lock to a writer.
    Writers,
}

impl Preference {
    pub(crate) const fn read(self) -> Want {
        match self {
            Self::Readers => Want::Read,
            Self::Writers => Want::ReadBehindWaiters,
        }
    }

    const fn write(self) -> Want {
        match self {
            Self::Readers => Want::Write,
            Self::Writers => Want::WriteFirst,
        }
    }
}

/// A read-write lock: 24 bytes, zero is unlocked.
#[repr(C)]
pub struct RawRwLock<P: Platform, Q: Policy<P> = Usual> {
    pub(crate) core: LockCore<P, Q>,
    pub(crate) bias: ReaderBias<P>,
}

impl<P: Platform + Adaptive> RawRwLock<P> {
    /// An unlocked lock.
    pub fn new() -> Self {
        Self::from_parts(LockCore::default(), ReaderBias::default())
    }
}

impl<P: Platform, Q: Policy<P>> RawRwLock<P, Q> {
    /// An unlocked lock from an unlocked core and a revoked bias, for `const` initialisers.
    pub const fn from_parts(core: LockCore<P, Q>, bias: ReaderBias<P>) -> Self {
        Self { core, bias }
    }

    /// The queue, for the padding in it.
    #[inline(always)]
    pub fn queue(&self) -> &WaitQueue<P> {
        self.core.queue()
    }

    pub(crate) fn key(&self) -> usize {
        let address: *const Self = self;
        address as usize
    }

    /// Acquires for reading; waits as long as it takes. Acquire ordering.
    #[inline]
    pub fn read(&self, preference: Preference) {
        self.read_until(preference, None);
    }

    /// Acquires for reading, or returns `false` once `deadline` has passed.
    #[inline]
    pub fn read_until(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
        self.try_read_simply(preference) || self.read_contended(preference, deadline)
    }

    /// What remains of [`RawRwLock::read_until`] after [`RawRwLock::try_read_simply`].
    #[cold]
    #[inline(never)]
    pub fn read_contended(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
        let again = P::may_hold_read(self.key());
        let want = if again { Want::ReadAgain } else { preference.read() };
        if !again {
            self.core.let_spinner_pass();
        }
        self.note_read(self.core.acquire_ours(want, 0, deadline))
    }

    /// Acquires for reading without a word to the others, if the bias is enabled.
    #[inline]
    pub fn read_in_slot(&self) -> bool {
        P::slot_enter(self.bias.word(), self.key())
    }

    /// The same in one attempt; on `false`, [`RawRwLock::read_in_slot_or_counted`] remains.
    #[inline(always)]
    pub fn read_in_slot_once(&self) -> bool {
        P::slot_enter_once(self.bias.word(), self.key())
    }

    /// [`RawRwLock::try_read_simply`] after [`RawRwLock::read_in_slot_once`].
    #[inline]
    pub fn read_in_slot_or_counted(&self, preference: Preference) -> bool {
        self.read_in_slot_again() || self.read_counted(preference)
    }

    /// After an attempt to be counted as a reader.
    #[inline]
    pub(crate) fn note_read(&self, acquired: bool) -> bool {
        self.note_readers(acquired.then_some(1))
    }

    /// The same, with the number of readers inside.
    #[inline]
    fn note_readers(&self, readers: Option<u32>) -> bool {
        if let Some(readers) = readers {
            P::read_acquired(self.key());
            self.bias.note_read(&self.core, self.key(), readers);
        }
        readers.is_some()
    }

    /// What a reader with a deadline does before it waits.
    pub fn read_at_once(&self, preference: Preference) -> bool {
        self.read_in_slot_again() || self.note_read_again(self.core.try_acquire(preference.read(), 0))
    }

    /// The same, of [`RawRwLock::read_recursive`]: such a reader heeds no waiter.
    #[inline]
    pub fn read_recursive_at_once(&self) -> bool {
        self.read_in_slot() || self.note_read(self.core.try_acquire(Want::ReadAgain, 0))
    }

    pub(crate) fn read_in_slot_again(&self) -> bool {
        P::slot_enter_seldom(self.bias.word(), self.key())
    }

    #[inline(never)] // for the drop-in's size
    pub(crate) fn note_read_again(&self, acquired: bool) -> bool {
        self.note_read(acquired)
    }

    /// Acquires for reading as a thread that holds a read lock already, whether the platform knows it or not:
    /// never waits behind a writer that waits. `false` once `deadline` has passed.
    #[inline]
    pub fn read_recursive(&self, deadline: Option<Deadline>) -> bool {
        self.read_in_slot() || self.note_read(self.core.acquire_ours(Want::ReadAgain, 0, deadline))
    }

    /// Acquires for reading if that delays no writer, without asking what this thread holds already; `false`
    /// says nothing.
    #[inline]
    pub fn try_read_simply(&self, preference: Preference) -> bool {
        self.read_in_slot() || self.read_counted(preference)
    }

    /// [`RawRwLock::try_read_simply`] after [`RawRwLock::read_in_slot`].
    #[inline]
    pub fn read_counted(&self, preference: Preference) -> bool {
        self.note_readers(self.core.enter_invited(preference.read()))
    }

    /// Gives back the slot of this thread's latest read lock, if it is in one; `false`: it is counted.
    #[inline]
    fn leave_slot(&self) -> bool {
        self.has_left(self.unlock_in_slot())
    }

    /// The same, after the restartable step.
    #[inline]
    fn has_left(&self, left: SlotLeft) -> bool {
        match left {
            SlotLeft::Left => true,
            SlotLeft::Counted => false,
            SlotLeft::Revoked => self.leave_revoked(),
        }
    }

    /// Out of the slot, or, if the reader was counted meanwhile, into this thread's memory of counted ones.
    #[cold]
    #[inline(never)]
    fn leave_revoked(&self) -> bool {
        match ReaderBias::take_back(&self.core, self.key()) {
            Reader::InSlot => true,
            // G7: an older hold than the one that it gives back.
            Reader::Gone => false,
            Reader::Counted | Reader::Unsure => {
                P::read_acquired(self.key());
                false
            }
        }
    }

    /// Whether the lock, which the calling thread holds, is held for writing.
    #[inline(always)]
    pub fn is_writing(&self) -> bool {
        self.bias.is_writing()
    }

    /// Releases a lock that the caller holds for reading, if it is in a slot; on anything but
    /// [`SlotLeft::Left`], [`RawRwLock::unlock_counted`] remains.
    #[inline(always)]
    pub fn unlock_in_slot(&self) -> SlotLeft {
        P::slot_leave(self.bias.word(), self.key())
    }

    /// The same in one attempt; on `false` nothing was done, and [`RawRwLock::unlock_in_slot`] remains.
    #[inline(always)]
    pub fn unlock_in_slot_once(&self) -> bool {
        P::slot_leave_once(self.bias.word(), self.key())
    }

    /// What remains of [`RawRwLock::unlock_in_slot`]; `false` if the lock is free.
    #[inline(always)]
    pub fn unlock_counted(&self, left: SlotLeft) -> bool {
        if self.has_left(left) {
            return true;
        }
        let seen = self.core.peek();
        if word::readers(seen) > 0 {
            P::read_released(self.key());
            self.core.release(Release::Read);
            return true;
        }
        word::has_slots(seen) && self.unlock_anothers()
    }

    /// Releases the read lock of another thread, which is in a slot: POSIX leaves that undefined, glibc lets
    /// it pass.
    #[cold]
    fn unlock_anothers(&self) -> bool {
        self.bias.revoke(&self.core, self.key(), u64::MAX, Afterwards::Never); // the other thread's slot stays taken
        let held = word::readers(self.core.peek()) > 0;
        if held {
            P::read_released(self.key());
            self.unlock_read_contended();
        }
        held
    }

    #[inline]
    fn release_counted(&self) {
        P::read_released(self.key());
        self.core.release(Release::Read);
    }

    /// Whether other code has written the word, as far as the word shows it: of a lock that is never held
    /// upgradably.
    pub fn is_overwritten(&self) -> bool {
        let seen = self.core.peek();
        word::is_glibc_owned(seen) || word::is_of_glibcs_readers(seen)
    }

    /// Whether a call that does not wait finds a writer inside. In a forked child, it asks on.
    #[inline]
    pub fn keeps_out_readers(&self) -> bool {
        word::is_write_held(self.core.peek()) && P::generation() == 0
    }

    /// The same for a writer: any thread inside that is counted.
    #[inline]
    pub fn keeps_out_writers(&self) -> bool {
        word::is_held(self.core.peek()) && P::generation() == 0
    }

    /// `try_write` of a lock without waiters, as a call that may be made again and again; `false` says nothing.
    #[inline]
    pub fn try_write_at_once(&self, token: u32) -> bool {
        let acquired = self.core.try_uncontended(token);
        if acquired {
            self.bias.note_write();
        }
        acquired
    }

    /// Whether no further reader fits: the largest count is reached.
    pub fn is_full(&self) -> bool {
        word::readers(self.core.peek()) >= word::MAX_READERS
    }

    /// Releases a read lock. Release ordering; the lock is not touched after the step that lets another
    /// thread in.
    #[inline]
    pub fn unlock_read(&self) {
        if !self.leave_slot() {
            self.release_counted();
        }
    }

    /// [`RawRwLock::unlock_read`] if no other thread needs to know; on `false` the hold is counted, and
    /// [`RawRwLock::unlock_read_contended`] remains.
    #[inline]
    pub fn unlock_read_uncontended(&self) -> bool {
        self.leave_slot() || {
            P::read_released(self.key());
            self.core.release_uncontended(Release::Read)
        }
    }

    /// What remains of [`RawRwLock::unlock_read`] after [`RawRwLock::unlock_read_uncontended`].
    pub fn unlock_read_contended(&self) {
        self.core.release_contended(Release::Read);
    }

    /// Acquires for writing; waits as long as it takes. Acquire ordering.
    #[inline]
    pub fn write(&self) {
        if !self.try_write_uncontended() {
            self.write_until(None);
        }
    }

    /// `try_write` of a lock without waiters; `false` says nothing.
    #[inline]
    pub fn try_write_uncontended(&self) -> bool {
        let acquired = self.core.enter_uncontended(P::thread_token());
        if acquired {
            self.bias.note_write();
        }
        acquired
    }

    /// `try_write_uncontended` for a thread that does not read first: one compare-exchange. `false` says nothing.
    ///
    /// `hold` is the calling thread's [`write_hold`](crate::write_hold).
    #[inline(always)]
    pub fn try_write_free(&self, hold: NonZeroU32) -> bool {
        let acquired = self.core.enter_free(hold.get()).is_ok();
        if acquired {
            self.bias.note_write();
        }
        acquired
    }

    /// Acquires for writing, or returns `false` once `deadline` has passed.
    #[inline]
    pub fn write_until(&self, deadline: Option<Deadline>) -> bool {
        self.write_until_as(Preference::Readers, deadline)
    }

    /// [`RawRwLock::write_until`]; whether readers wait behind this writer.
    #[inline]
    pub fn write_until_as(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
        self.acquire_alone(preference.write(), P::thread_token(), deadline)
    }

    /// Acquires for an exclusive hold; on the way revokes the bias as often as readers enable it.
    fn acquire_alone(&self, want: Want, token: u32, deadline: Option<Deadline>) -> bool {
        let mut span = Q::TIMES.probe_ns;
        loop {
            match self.core.acquire(want, token, deadline) {
                Outcome::Acquired => {
                    self.bias.note_write();
                    return true;
                }
                Outcome::GlibcOwned => P::overwritten(self.key()),
                Outcome::TimedOut if !word::has_slots(self.core.peek()) => return false,
                // At the deadline, too: the lock may be free.
                Outcome::TimedOut | Outcome::Biased => {
                    let left = deadline.map_or(u64::MAX, Deadline::left::<P>);
                    if !self.bias.revoke(&self.core, self.key(), span.min(left), Afterwards::Again) {
                        if left == 0 {
                            return false;
                        }
                        span = span.saturating_mul(2).min(Q::TIMES.longest_probe_ns);
                        // L3
                    }
                }
            }
        }
    }

    /// What a writer whose token is at hand does before it waits, or revokes a bias.
    #[inline]
    pub fn write_at_once(&self, token: u32) -> bool {
        let acquired = self.core.enter_uncontended(token);
        if acquired {
            self.bias.note_write();
        }
        acquired || self.write_if_admitted(token)
    }

    /// The same, of a lock that is probably not free.
    #[inline(never)] // for the drop-in's size
    pub fn write_if_admitted(&self, token: u32) -> bool {
        let acquired = self.core.try_acquire(Want::Write, token);
        if acquired {
            self.bias.note_write();
        }
        acquired
    }

    /// Revokes the bias, if that is enabled: while it lasts, a writer's wait is in vain.
    pub fn revoke_bias(&self) {
        if word::has_slots(self.core.peek()) {
            self.bias.revoke(&self.core, self.key(), 0, Afterwards::Again);
        }
    }

    /// Readers are counted from now on, and no bias is enabled any more. `false`: nothing is done, because another thread
    /// has the queue locked.
    #[cold]
    #[must_use]
    pub fn forbid_bias(&self) -> bool {
        self.bias.revoke(&self.core, self.key(), 0, Afterwards::Never)
    }

    /// Whether readers may be in slots: a writer has to revoke the bias. A hint.
    #[must_use]
    pub fn is_biased(&self) -> bool {
        word::has_slots(self.core.peek())
    }

    /// Releases the write lock. Release ordering.
    #[inline]
    pub fn unlock_write(&self) {
        self.bias.note_write_over();
        self.core.release(Release::Write);
    }

    /// [`RawRwLock::unlock_write`] of a lock without waiters; on `false` the lock is held still, and
    /// [`RawRwLock::unlock_write_contended`] remains.
    #[inline]
    pub fn unlock_write_uncontended(&self) -> bool {
        self.bias.note_write_over();
        self.core.release_uncontended(Release::Write)
    }

    /// What remains of [`RawRwLock::unlock_write`] after [`RawRwLock::unlock_write_uncontended`].
    pub fn unlock_write_contended(&self) {
        self.core.release_contended(Release::Write);
    }

    /// The token of the writer, or 0; a hint as soon as it is returned.
    pub fn owner(&self) -> u32 {
        word::owner(self.core.peek())
    }

    /// Makes the calling thread, which holds the lock for writing, release it by
    /// [`RawRwLock::unlock_write_contended`], for an observer. A hint: a waiter that leaves at its deadline
    /// may end it.
    pub fn force_slow_release(&self) {
        self.core.force_slow_release();
    }

    /// Releases a read lock, to the longest waiter if there is no other holder. For a thread with a real-time
    /// priority see [`RawMutex::unlock_fair`](crate::RawMutex::unlock_fair).
    pub fn unlock_read_fair(&self) {
        if !self.leave_slot() {
            P::read_released(self.key());
            self.core.release_fair(Release::Read);
        }
    }

    /// Releases the write lock to the longest waiter. For a thread with a real-time priority see
    /// [`RawMutex::unlock_fair`](crate::RawMutex::unlock_fair).
    pub fn unlock_write_fair(&self) {
        self.bias.note_write_over();
        self.core.release_fair(Release::Write);
    }

    /// Whether the lock is held, in any way; a hint as soon as it is returned.
    #[inline]
    pub fn is_locked(&self) -> bool {
        let seen = self.core.peek();
        word::is_held(seen) || (word::has_slots(seen) && self.bias.has_readers(self.key()))
    }

    /// Whether a writer holds the lock; certain for the writer itself and for readers.
    #[inline]
    pub fn is_write_locked(&self) -> bool {
        word::is_write_held(self.core.peek())
    }

    /// Whether the calling thread holds the lock for writing. Certain: no other thread can make it so.
    #[inline]
    pub fn is_write_locked_by_me(&self) -> bool {
        let word = self.core.peek();
        word::is_write_held(word) && word::owner(word) == P::thread_token()
    }
}

// ---- upgradable holds, and the ways from one hold to another
//
// An upgradable holder is alongside readers, but alone among the upgradable: so there is never a second one
// that waits for the first one to leave as it wants to be alone.

impl<P: Platform, Q: Policy<P>> RawRwLock<P, Q> {
    /// Acquires upgradably: alongside readers, but alone among the upgradable. `false` once `deadline` has
    /// passed. Acquire ordering.
    pub fn upgradable(&self, deadline: Option<Deadline>) -> bool {
        self.note_upgradable(self.core.acquire_ours(Want::Upgradable, P::thread_token(), deadline))
    }

    /// What a thread does before it waits: as [`TryRwLock::try_upgradable`](crate::TryRwLock), but it heeds a
    /// promise.
    pub fn upgradable_at_once(&self) -> bool {
        self.note_upgradable(self.core.try_acquire(Want::Upgradable, P::thread_token()))
    }

    /// An upgradable holder may read the lock as well, also while a writer waits.
    pub(crate) fn note_upgradable(&self, acquired: bool) -> bool {
        if acquired {
            P::read_acquired(self.key());
        }
        acquired
    }

    /// Releases an upgradable lock. Release ordering.
    pub fn unlock_upgradable(&self) {
        P::read_released(self.key());
        self.core.release(Release::Upgradable);
    }

    /// Turns an upgradable lock into the write lock; on `false`, at the deadline, it is still upgradable.
    pub fn upgrade(&self, deadline: Option<Deadline>) -> bool {
        self.note_upgrade(self.acquire_alone(Want::Upgrade, P::thread_token(), deadline))
    }

    /// What a thread does before it waits for an upgrade: that heeds no waiter.
    pub fn upgrade_at_once(&self) -> bool {
        let upgraded = self.core.try_acquire(Want::Upgrade, P::thread_token());
        if upgraded {
            self.bias.note_write();
        }
        self.note_upgrade(upgraded)
    }

    pub(crate) fn note_upgrade(&self, upgraded: bool) -> bool {
        if upgraded {
            P::read_released(self.key());
        }
        upgraded
    }

    /// Turns the write lock into a read lock; readers that wait come in.
    pub fn downgrade(&self) {
        P::read_acquired(self.key());
        self.bias.note_write_over();
        self.core.downgrade(|word| (word & word::FLAGS) + UNIT);
    }

    /// Turns the write lock into an upgradable one; readers that wait come in.
    pub fn downgrade_to_upgradable(&self) {
        P::read_acquired(self.key());
        self.bias.note_write_over();
        self.core.downgrade(|word| word & word::FLAGS | UPGRADE);
    }

    /// Turns an upgradable lock into a read lock.
    pub fn downgrade_upgradable(&self) {
        self.core.downgrade(|word| (word & !UPGRADE) + UNIT);
    }

    /// Releases an upgradable lock, to the longest waiter if there is no other holder.
    pub fn unlock_upgradable_fair(&self) {
        P::read_released(self.key());
        self.core.release_fair(Release::Upgradable);
    }
}

impl<P: Platform + Adaptive> Default for RawRwLock<P> {
    fn default() -> Self {
        Self::new()
    }
}
