//! Readers: the read locks that a thread holds, and *slots*, in which readers note in memory of their CPU
//! which lock they read, and write no line that others use.

use crate::AsymmetricBarrier;

/// What the calling thread remembers of its read locks: a recursive reader must not wait for a writer that
/// waits for it.
///
/// `lock` is an address, which is only compared.
pub trait ReadHolds: Sized + Send + Sync + 'static {
    /// Notes that the calling thread holds one more read lock on the object at `lock`.
    fn read_acquired(lock: usize);

    /// Notes that the calling thread gave up one read lock on the object at `lock`.
    fn read_released(lock: usize);

    /// Whether the calling thread may hold a read lock on the object at `lock`. `true` is always a safe
    /// answer; `false` must be certain, unless a thread has given back another's read lock: for a thread that
    /// does hold one, it costs the time of a starved writer's request.
    fn may_hold_read(lock: usize) -> bool;

    /// Whether the calling thread may have two read locks on the object at `lock`, or one, and one on another
    /// that was there before. Of no more than it remembers.
    fn may_hold_two(lock: usize) -> bool;
}

/// How a reader found its slot, as it wanted to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotLeft {
    /// It has left: the lock is not touched any more.
    Left,
    /// It is in no slot: it is counted in the lock, if it holds it.
    Counted,
    /// The restartable step cannot free its slot: the bias is revoked, or is being revoked.
    Revoked,
}

/// Where a reader was that has given back its slot after [`SlotLeft::Revoked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// In the slot alone: it has left the lock.
    InSlot,
    /// In the lock's count, and it still is.
    Counted,
    /// In the slot, for a lock that was at the address before this one, and was not given back: the caller
    /// looks for its hold on this one.
    Gone,
    /// One or the other: the thread that was moving it does not exist in this forked child. The lock's state
    /// says which, while the caller keeps its bias as it is.
    Unsure,
}

/// What a reader that gives back its slot knows of its lock's bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// It may be enabled, or be revoked at this moment.
    Any,
    /// It was revoked: each reader in a slot was marked before the caller found that out (Acquire).
    Revoked,
    /// It stays as it is until the call has returned.
    Kept,
}

/// A table of slots, one line for each CPU, and the *reader bias* of a lock: a word that holds the name of
/// the table while readers may use slots.
///
/// A machine may have none: [`slot_table`](ReaderSlots::slot_table) is 0 then, and no reader enters.
pub trait ReaderSlots: AsymmetricBarrier + ReadHolds {
    /// The most readers that can be in slots at a time.
    const MOST_SLOT_READERS: u32;

    /// How many reads without a write in between enable a lock's bias.
    fn reads_before_slots() -> u32;

    /// True for about one in `one_in` calls of a thread, at random; or for all.
    fn is_sample(one_in: u32) -> bool {
        let _ = one_in;
        true
    }

    /// Notes how long a revocation took, ns: the reads before the next one have to save as much.
    fn bias_revoked(took: u64) {
        let _ = took;
    }

    /// Whether no other process has the memory of the lock at `lock`: slots, and the fence, are of one
    /// process. `None`: that cannot be found out yet. May make system calls.
    fn is_private(lock: usize) -> Option<bool> {
        let _ = lock;
        Some(true)
    }

    /// The name of the table in which the calling code has its slots, for the bias of a lock; 0 if there are
    /// no slots.
    fn slot_table() -> u32;

    /// Notes in a slot that the calling thread reads the lock at `lock` (Acquire ordering), if `bias` holds
    /// the name of the caller's table. `false` is always a safe answer. Looking at the bias and noting are a
    /// restartable step, as in
    /// [`AsymmetricBarrier::release_unless`].
    fn slot_enter(bias: &Self::AtomicU32, lock: usize) -> bool;

    /// The same, where it need not be inlined.
    fn slot_enter_seldom(bias: &Self::AtomicU32, lock: usize) -> bool {
        Self::slot_enter(bias, lock)
    }

    /// The same in one attempt and without a call, for a caller that goes on with [`Self::slot_enter_seldom`] if it
    /// fails.
    fn slot_enter_once(bias: &Self::AtomicU32, lock: usize) -> bool {
        Self::slot_enter(bias, lock)
    }

    /// Gives back the latest slot in which the calling thread reads `lock` (Release ordering), if there is
    /// one, and `bias` still holds the name. A restartable step. Does not touch the lock after that.
    fn slot_leave(bias: &Self::AtomicU32, lock: usize) -> SlotLeft;

    /// Whether [`SlotLeft::Left`] comes of it in one attempt and without a call; on `false` nothing was done, and
    /// [`Self::slot_leave`] remains.
    fn slot_leave_once(bias: &Self::AtomicU32, lock: usize) -> bool {
        Self::slot_leave(bias, lock) == SlotLeft::Left
    }

    /// After [`SlotLeft::Revoked`]: gives back the slot, and says where the reader was. Release ordering.
    /// Waits for no thread that moves it, and does not touch the lock. On [`Reader::Unsure`] the slot is
    /// given back only if the `bias` is kept as it is. Otherwise the caller keeps it, and calls again.
    fn slot_take_back(lock: usize, bias: Bias) -> Reader;

    /// Whether a slot of `table` names `lock`, of a reader that is not counted; a hint.
    fn has_slots(table: u32, lock: usize) -> bool;

    /// Marks the slots of `table` that name `lock`, whose bias was revoked before a process-wide barrier;
    /// returns how many. The caller adds them to the lock's count, and then settles them. Acquire ordering.
    fn slots_mark(table: u32, lock: usize) -> u32;

    /// How many of the marked slots still have their readers: from now on these know that they are counted.
    /// The others have left, and the caller subtracts them from the count. Acquire ordering.
    fn slots_settle(table: u32, lock: usize) -> u32;

    /// Before a bias is enabled: settles the slots of `table` that name `lock` and are marked, and disowns the
    /// others. Those stand for no hold of this lock, but for one of another, which was at its address before.
    fn slots_disown(table: u32, lock: usize);
}

// ---- when slots pay
//
// How many reads in a row make slots worth while: as many as pay for the next writer's revocation.
//
// Origin: BRAVO (Dice and Kogan, 2019), which bounds the slow-down that revocation can cause by a multiple
// of the time that the last one took. Here the time is a running mean of the process, and is compared with
// what slots save. So the lock needs neither a clock nor a history, and slots come later where interrupts
// are slow (virtual machines).

/// What a read in a slot saves, compared with one that is counted in the lock, ns: a read-modify-write. Where
/// others read too, it saves a transfer of the lock's line as well; the lock counts such a read as several,
/// if there are CPUs to spare.
const READ_GAIN_NS: u32 = 16;
/// A longer revocation, ns, is taken for a preemption.
const MOST_NS: u32 = 200_000;

/// The mean time that it takes to revoke a lock's bias, ns; 0: not known.
#[derive(Debug, Default, Clone, Copy)]
pub struct ClosingCost(pub u32);

impl ClosingCost {
    /// Notes the time of a revocation, ns: the mean follows by an eighth.
    pub fn took(&mut self, took: u64) {
        let took = u32::try_from(took).unwrap_or(u32::MAX).min(MOST_NS);
        self.0 = if self.0 == 0 { took } else { self.0 - self.0 / 8 + took / 8 };
    }

    /// How many reads without a write in between enable the bias: `least`, and as many as pay for its
    /// revocation.
    #[must_use]
    pub const fn reads(self, least: u32) -> u32 {
        least.saturating_add(self.0 / READ_GAIN_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dear_closings_ask_for_more_reads() {
        let mut cost = ClosingCost::default();
        assert_eq!(cost.reads(32), 32);
        cost.took(16_000);
        assert_eq!(cost.reads(32), 1032);
        for _ in 0..100 {
            cost.took(160);
        }
        assert!(cost.reads(32) < 64, "{cost:?}");
    }

    #[test]
    fn a_preemption_counts_for_little() {
        let mut cost = ClosingCost::default();
        cost.took(u64::MAX);
        assert!(cost.reads(0) <= MOST_NS / READ_GAIN_NS);
    }
}
