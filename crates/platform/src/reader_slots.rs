//! Reader slots: readers note in memory of their CPU which lock they read, and write no line that others use.

use crate::{AsymmetricBarrier, ReadHolds};

/// How a reader found its slot, as it wanted to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotLeft {
    /// It has left: the lock is not touched any more.
    Left,
    /// It is in no slot: it is counted in the lock, if it holds it.
    Counted,
    /// Its slot cannot be given back in passing: the bias is revoked, or is being revoked.
    Revoked,
}

/// A table of slots, one line for each CPU, and the *reader bias* of a lock: a word that holds the name of the table while readers
/// may use slots.
///
/// A machine may have none: [`slot_table`](ReaderSlots::slot_table) is 0 then, and no reader enters.
pub trait ReaderSlots: AsymmetricBarrier + ReadHolds {
    /// The most readers that can be in slots at a time.
    const MOST_SLOT_READERS: u32;

    /// So many reads without a write in between make a lock one whose readers use slots.
    fn reads_before_slots() -> u32;

    /// True for about one in so many calls of a thread, as it draws; or for all.
    fn is_sample(one_in: u32) -> bool {
        let _ = one_in;
        true
    }

    /// Notes that revoking a lock's bias took so long, ns: what the reads before the next time have to be worth.
    fn bias_revoked(took: u64) {
        let _ = took;
    }

    /// The name of the table in which the calling code has its slots, for the bias of a lock; 0 if there are no slots.
    fn slot_table() -> u32;

    /// Notes in a slot that the calling thread reads the lock at `lock` (Acquire ordering), if `bias` holds the name of the
    /// caller's table. `false` is always a safe answer. Looking at the bias and noting are a restartable step, as in
    /// [`AsymmetricBarrier::release_unless`](crate::AsymmetricBarrier::release_unless).
    fn slot_enter(bias: &Self::AtomicU32, lock: usize) -> bool;

    /// Gives back the latest slot in which the calling thread reads `lock` (Release ordering), if there is one, and `bias`
    /// still holds the name. A restartable step. Does not touch the lock after that.
    fn slot_leave(bias: &Self::AtomicU32, lock: usize) -> SlotLeft;

    /// After [`SlotLeft::Revoked`], with the bias kept as it is by the caller: gives back the slot; returns whether that
    /// reader was moved.
    fn slot_take_back(lock: usize) -> bool;

    /// How many slots of `table` name `lock` and are not marked as moved. Acquire ordering. A hint, unless the bias was
    /// revoked, and then a heavy fence made.
    fn slots_count(table: u32, lock: usize) -> u32;

    /// Marks those slots as moved.
    fn slots_move(table: u32, lock: usize);
}
