//! The reader bias of a read-write lock: readers that note themselves in slots of their own instead of in the
//! lock.
//!
//! Origin: folly's SharedMutex (2015): deferred readers in a process-wide table, and a writer that pays for a
//! barrier on all CPUs. Here a slot is claimed and given back without any read-modify-write, each by one
//! restartable step ([`Platform::slot_enter`], [`Platform::slot_leave`]), and a lock enables its bias only
//! once it is *read-mostly*.
//!
//! Gives: readers that share no cache line; a write that costs a barrier and a scan of the slots once in
//! `reads_before_slots` reads at most, a quarter of them if they share the lock (bounded revocation: no
//! clock, no history). Does not give: cheap writes to a lock whose bias is enabled.
//!
//! # State
//!
//! | `SLOTS` in the word | `table`         | meaning                                                                    |
//! |---------------------|-----------------|----------------------------------------------------------------------------|
//! | 0                   | no name         | revoked: readers are counted in the word                                   |
//! | 1                   | a table's name  | enabled: readers may be in that table's slots, and in the word's count     |
//! | 1                   | no name         | being enabled, or being revoked: by the holder of the queue lock           |
//!
//! No name: 0; `PRIVATE`, once it is known that no other process has the lock's memory; or `NEVER`, if one
//! may, or that cannot be found out, or the lock is to have none: then the bias is not enabled. (A lock may lie in shared memory although
//! its attributes do not say so.) Nor is it once a thread has released another's read lock: each time, the
//! slot of that one stays taken.
//!
//! `SLOTS` keeps writers out (`word::fits`); upgradable holders and readers do not mind it.
//!
//! `reads` counts the reads since the last write, roughly, and those that share the lock as more: readers add
//! to it without a read-modify-write. While a writer holds the lock it is `WRITING`.
//!
//! # Invariants
//!
//! - **G1** Both change only under the queue lock; but a reader, before the first bias, notes in `table`
//!   whether the lock is private in one step from 0, which fails once there is a bias. `SLOTS` is set only on
//!   a word without flags and without a writer.
//! - **G2** A thread that revokes the bias moves each reader from its slot to the count, under the queue
//!   lock: it clears `table`, fences (from then on no reader enters, and none leaves in passing), *marks* the
//!   slots, adds their number to the count as it clears `SLOTS`, and *settles* them. A reader gives back its
//!   slot in one step, whatever is in it: if that is marked or not, it has left, and if it is settled, it is
//!   counted. The thread that settles takes those off the count that have left marked slots. So no reader
//!   that leaves waits for that thread, and the count is never too small. It is too large for a moment, in
//!   which the queue is locked and no thread has queued for an exclusive hold (G3): a writer waits for the
//!   thread that settles, as it does for the fence. A settled slot stays taken until its reader comes, so the
//!   bias may have been enabled again by then.
//! - **G3** (no lost wake-up) No thread that wants the lock alone waits in the queue while `SLOTS` is set: it
//!   revokes the bias before it queues, and G1 keeps the bias revoked while flags are set. So no thread waits
//!   for a reader in a slot.
//! - **G4** (free after unlock) Leaving a slot touches nothing after that step, but in a forked child (G6):
//!   that unlocks the queue. A writer cannot have got in, because it must revoke the bias first, which takes
//!   the queue lock.
//! - **G5** `reads` is written only by holders of the lock, and by the thread that revokes the bias while
//!   `SLOTS` keeps writers out. So a writer finds it as it left it.
//! - **G6** (fork) A child may find a bias that a thread of its parent was just revoking. `SLOTS` without
//!   `table`: no reader was counted yet; the thread that revokes the bias next does all of it. No `SLOTS`,
//!   but a slot that is marked and not settled: its reader is counted, and the thread that enables the bias
//!   next settles it first. A reader in such a slot is told that it is [`Unsure`](Reader::Unsure), and looks
//!   at `SLOTS` under the queue lock. (Readers that are no threads of the child are in no slots: the platform
//!   sees to that. Readers that have left marked slots, and are not taken off the count yet when a thread
//!   forks, are readers too many in the child.)
//! - **G7** (memory used again) A lock may be initialised anew, or its memory be mapped anew, while a slot
//!   names its address: POSIX leaves that undefined, glibc lets it pass. While the bias is revoked, and
//!   `SLOTS` is clear, all readers of the lock that are in slots are marked (G2). So the thread that enables
//!   the bias *disowns* slots without a mark, and a thread that gives back such a slot gives back the hold
//!   that it has on this lock instead, which is counted.
//! - **G8** (a bias that is forbidden) `NEVER` stays: it is stored under the queue lock, once the bias is revoked.
//!   A reader that has found the lock private before checks it again under that lock, before it enables the bias;
//!   and one that has just found out notes so only in a `table` that is 0 (G1).
//!
//! # Orderings
//!
//! | operation                 | order   | pairs with       | because                                                     |
//! |---------------------------|---------|------------------|-------------------------------------------------------------|
//! | enable: store of the name | Release | enter            | the enabling reader comes after every earlier writer        |
//! | enter: step               | Acquire | enable           | as above                                                    |
//! | leave: step               | Release | mark, settle     | the reader's section comes before the writer's              |
//! | take off the count: sub   | Release | writer's acquire | as above, for readers that left marked slots                |
//! | revoke: clear `SLOTS`, CAS| AcqRel  | writer's acquire | as above, for the writer that gets in, whichever revoked    |
//!
//! Checked by: `verify` (models with mutants: no fence, no move, a count that is added too late, slots that
//! are not settled, a reader that waits for the thread that revokes the bias), native stress.

use spinpark_platform::{
    AtomicU32, Bias, Clock, Event, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release as ReleaseOrder, Platform, Reader,
};

use crate::core::LockCore;
use crate::policy::Policy;
use crate::queue::HasQueue;
use crate::word::{self, UNIT};

/// In `table`: the lock is this process' alone. (No table is at the address that these would name.)
pub const PRIVATE: u32 = 1;
/// In `table`: there is no bias, as the lock may be another process', too, or is to have none.
const NEVER: u32 = 2;

/// What comes after a bias that is revoked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// Readers may enable it again.
    Again,
    /// The lock has no bias any more.
    Never,
}

/// In `reads`: a writer holds the lock.
const WRITING: u32 = u32::MAX;

/// The bias: 8 bytes, zero is revoked.
#[repr(C)]
pub struct ReaderBias<P: Platform> {
    table: P::AtomicU32,
    reads: P::AtomicU32,
}

impl<P: Platform> ReaderBias<P> {
    /// What `table` begins with in a lock that is to have no bias, in the place of 0.
    pub const NEVER: u32 = NEVER;

    /// A revoked bias from two zeros, for `const` initialisers.
    pub const fn from_parts(table: P::AtomicU32, reads: P::AtomicU32) -> Self {
        Self { table, reads }
    }

    /// The word that readers load first.
    #[inline]
    pub(crate) fn word(&self) -> &P::AtomicU32 {
        &self.table
    }

    /// After an acquisition for reading by count. `readers`: how many there are then; 1 also if that is not
    /// known. Enables the bias once the lock is read-mostly.
    #[inline]
    pub(crate) fn note_read<Q: Policy<P>>(&self, core: &LockCore<P, Q>, lock: usize, readers: u32) {
        let Some(counts) = Q::reads(readers) else { return };
        let reads = self.reads.load(Relaxed);
        let most = WRITING - 1;
        if reads < counts.enough.min(most) {
            // Not a read-modify-write, which waits for the line; others may overwrite this.
            self.reads.store(reads.saturating_add(counts.weight).min(most), Relaxed);
        } else if word::may_enable_bias(core.peek()) {
            self.enable(core, lock);
        }
    }

    /// After an acquisition for writing.
    #[inline]
    pub(crate) fn note_write(&self) {
        self.reads.store(WRITING, Relaxed);
    }

    /// Before the writer gives up the lock, or a part of it.
    #[inline]
    pub(crate) fn note_write_over(&self) {
        self.reads.store(0, Relaxed);
    }

    /// Whether the holder that the caller knows of is a writer. (The lock word says so, too; but a load of
    /// what a read-modify-write has just written costs 5 ns.)
    #[inline]
    pub(crate) fn is_writing(&self) -> bool {
        self.reads.load(Relaxed) == WRITING
    }

    /// By a reader. Not while there are waiters: the next read tries again.
    #[cold]
    #[inline(never)]
    fn enable<Q: Policy<P>>(&self, core: &LockCore<P, Q>, lock: usize) {
        let table = P::slot_table();
        if table == 0 || !self.is_private(lock) {
            self.reads.store(0, Relaxed); // asks again after as many reads
            return;
        }
        let Some(queue) = core.try_lock_queue() else { return };
        if self.table.load(Relaxed) == NEVER {
            return; // it has been revoked for good meanwhile
        }
        let mut seen = core.peek();
        if word::may_enable_bias(seen) {
            P::slots_disown(table, lock); // G6, G7
        }
        while word::may_enable_bias(seen) {
            match core.word().compare_exchange_weak(seen, seen | word::SLOTS, Relaxed, Relaxed) {
                Ok(_) => {
                    self.table.store(table, ReleaseOrder);
                    P::event(Event::EnabledBias);
                    break;
                }
                Err(now) => seen = now,
            }
        }
        drop(queue);
    }

    /// Whether readers of the lock may be in slots: asked until that is known.
    fn is_private(&self, lock: usize) -> bool {
        let known = self.table.load(Relaxed);
        if known == 0 {
            let Some(private) = P::is_private(lock) else { return false };
            let found = if private { PRIVATE } else { NEVER };
            // It fails if another thread has enabled the bias meanwhile, which may have been revoked since.
            let _ = self.table.compare_exchange(0, found, Relaxed, Relaxed);
            return private;
        }
        known != NEVER
    }

    /// G2: revokes the bias, if it is enabled, and counts in the word the readers in slots of the lock at
    /// `lock`. `false`: nothing is done, because another thread has had the queue locked while this one slept
    /// for `span` ns (0: it does not sleep; `u64::MAX`: as long as it takes).
    #[cold]
    #[inline(never)]
    pub(crate) fn revoke<Q: Policy<P>>(
        &self,
        core: &LockCore<P, Q>,
        lock: usize,
        span: u64,
        then: Afterwards,
    ) -> bool {
        P::queues();
        let queue = if span == 0 { core.try_lock_queue() } else { core.lock_queue_within(&|| span) };
        let Some(queue) = queue else {
            P::has_left_queues();
            return false;
        };
        if word::has_slots(core.peek()) {
            let table = match self.table.load(Relaxed) {
                0 | PRIVATE => P::slot_table(), // G6
                NEVER => P::overwritten(lock), // by glibc's readers, of another process: there was never a bias
                table => table,
            };
            self.table.store(PRIVATE, Relaxed);
            self.reads.store(0, Relaxed); // G5: before writers are let in
            let began = P::now(Clock::Monotonic);
            P::asymmetric_barrier();
            P::bias_revoked(P::now(Clock::Monotonic).saturating_sub(began));
            let marked = P::slots_mark(table, lock);
            let mut seen = core.peek();
            let counted = |seen: u32| (seen & !word::SLOTS) + marked * UNIT;
            while let Err(now) = core.word().compare_exchange_weak(seen, counted(seen), AcqRel, Relaxed) {
                seen = now;
            }
            let left = if marked == 0 { 0 } else { marked - P::slots_settle(table, lock) };
            if left > 0 {
                core.word().fetch_sub(left * UNIT, ReleaseOrder);
            }
            P::event(Event::RevokedBias);
        }
        if then == Afterwards::Never {
            // Only now: with `SLOTS`, in a child forked before this, it would say that the lock was overwritten.
            self.table.store(NEVER, Relaxed);
        }
        drop(queue);
        P::has_left_queues();
        true
    }

    /// Gives back a reader's slot, which could not be given back in passing: where the reader was. Not
    /// [`Reader::Unsure`].
    #[cold]
    #[inline(never)]
    pub(crate) fn take_back<Q: Policy<P>>(core: &LockCore<P, Q>, lock: usize) -> Reader {
        loop {
            // G7. Acquire: the marks of the thread that has cleared `SLOTS` come before.
            let revoked = P::may_hold_two(lock) && !word::has_slots(core.word().load(Acquire));
            match P::slot_take_back(lock, if revoked { Bias::Revoked } else { Bias::Any }) {
                Reader::Unsure => {}
                reader => return reader,
            }
            // The thread that has it locked may settle the slot meanwhile, and then be stopped.
            let Some(mut queue) = core.lock_queue_within(&|| Q::TIMES.probe_ns) else { continue };
            queue.releases(); // the slot is this reader's hold
            return match P::slot_take_back(lock, Bias::Kept) {
                // G6: the bias stays as it is.
                Reader::Unsure if word::has_slots(core.peek()) => Reader::InSlot,
                Reader::Unsure => Reader::Counted,
                reader => reader,
            };
        }
    }

    /// Whether a slot names the lock; a hint.
    #[cold]
    pub(crate) fn has_readers(&self, lock: usize) -> bool {
        match self.table.load(Relaxed) {
            0 | PRIVATE | NEVER => true, // on the move
            table => P::has_slots(table, lock),
        }
    }
}

impl<P: Platform> Default for ReaderBias<P> {
    fn default() -> Self {
        Self::from_parts(AtomicU32::new(0), AtomicU32::new(0))
    }
}
