//! `ReaderSlots`: slots of readers, and the bias of a lock.

use std::sync::Arc;

use spinpark_platform::Ordering::{Acquire, Relaxed, Release};
use spinpark_platform::{
    AsymmetricBarrier, AtomicU32, Bias, ReadHolds, Reader, ReaderSlots, SlotLeft, Threads,
};
use spinpark_sim::Object;

use super::machine::{Contract, Machine, Word};

impl<M: Machine> Contract<M> {
    /// A bias that names the caller's table, and the lock that it is the bias of. None: this machine has no
    /// slots.
    fn bias() -> Option<(Arc<Object<Word<M>>>, usize)> {
        M::P::thread_token(); // decides whether there are any
        let table = M::P::slot_table();
        assert_eq!(table, M::P::slot_table(), "its name does not change");
        let bias = Object::arc(Word::<M>::new(table));
        let lock = Arc::as_ptr(&bias) as usize;
        if table == 0 {
            assert!(!M::P::slot_enter(&bias, lock), "a bias that is revoked");
            assert_eq!(M::P::slot_leave(&bias, lock), SlotLeft::Counted);
            return None;
        }
        Some((bias, lock))
    }

    /// It may fail at any time, but not for ever.
    fn enter(bias: &Word<M>, lock: usize) {
        while !M::P::slot_enter(bias, lock) {
            M::yield_now();
        }
    }

    /// Gives up a read lock whose bias is enabled; whether it was in a slot.
    fn leave(bias: &Word<M>, lock: usize) -> bool {
        let left = M::P::slot_leave(bias, lock);
        left == SlotLeft::Left
            || (left == SlotLeft::Revoked && M::P::slot_take_back(lock, Bias::Any) == Reader::InSlot)
    }

    pub(crate) fn a_slot_names_the_lock_until_its_reader_leaves() {
        assert!(M::P::reads_before_slots() > 0);
        assert!(M::P::MOST_SLOT_READERS <= 1 << 20, "the reserve of the count");
        let Some((bias, lock)) = Self::bias() else { return };
        let table = M::P::slot_table();
        assert!(!M::P::slot_enter(&Word::<M>::new(0), lock), "shut");
        assert!(!M::P::slot_enter(&Word::<M>::new(table - 1), lock), "another table");
        assert!(!M::P::has_slots(table, lock));
        Self::enter(&bias, lock);
        Self::enter(&bias, lock);
        assert!(M::P::may_hold_read(lock));
        assert!(Self::leave(&bias, lock));
        assert!(M::P::has_slots(table, lock) && M::P::may_hold_read(lock), "one of two");
        assert!(Self::leave(&bias, lock));
        assert!(!M::P::has_slots(table, lock) && !M::P::may_hold_read(lock));
        assert!(!Self::leave(&bias, lock), "no hold, no slot");
    }

    /// A reader that was moved learns it, also if the bias has been enabled again; one that was not, or is
    /// only marked, does not.
    pub(crate) fn revoking_a_bias_moves_its_readers() {
        let cases = [(true, true, true), (false, true, true), (true, false, false), (true, true, false)];
        for (shut_for_good, marks, settles) in cases {
            let Some((bias, lock)) = Self::bias() else { return };
            let table = M::P::slot_table();
            Self::enter(&bias, lock);
            bias.store(0, Relaxed);
            M::P::asymmetric_barrier();
            assert!(
                M::P::slots_mark(0, lock) == 0 && M::P::slots_settle(0, lock) == 0,
                "no table, no readers"
            );
            if marks {
                assert!(M::P::slots_mark(table, lock) == 1 && M::P::has_slots(table, lock));
            }
            if settles {
                assert!(M::P::slots_settle(table, lock) == 1 && !M::P::has_slots(table, lock));
                assert!(M::P::slots_mark(table, lock) == 0, "it is counted");
            }
            if !shut_for_good {
                bias.store(table, Release);
            }
            assert_eq!(M::P::slot_leave(&bias, lock), SlotLeft::Revoked);
            assert!(M::P::may_hold_read(lock));
            let reader = if settles { Reader::Counted } else { Reader::InSlot };
            assert_eq!(M::P::slot_take_back(lock, Bias::Any), reader);
            assert_eq!(M::P::slots_settle(table, lock), 0, "it has left");
            assert!(!M::P::may_hold_read(lock));
            assert_eq!(M::P::slot_leave(&bias, lock), SlotLeft::Counted);
        }
    }

    /// The reader of a lock whose memory is used again gives back nothing of the next lock's, and is not
    /// counted there.
    pub(crate) fn a_slot_of_a_lock_that_was_there_before_is_disowned() {
        for disowns in [true, false] {
            let Some((bias, lock)) = Self::bias() else { return };
            let table = M::P::slot_table();
            Self::enter(&bias, lock);
            bias.store(0, Relaxed); // the next lock
            if disowns {
                M::P::slots_disown(table, lock);
                assert!(!M::P::has_slots(table, lock) && M::P::slots_mark(table, lock) == 0);
                bias.store(table, Release);
            }
            assert_eq!(M::P::slot_leave(&bias, lock), SlotLeft::Revoked);
            let known = if disowns { Bias::Any } else { Bias::Revoked };
            assert_eq!(M::P::slot_take_back(lock, known), Reader::Gone);
            assert!(!M::P::may_hold_read(lock) && M::P::slots_mark(table, lock) == 0);
        }
    }

    pub(crate) fn a_slot_is_found_behind_counted_holds() {
        let Some((bias, lock)) = Self::bias() else { return };
        Self::enter(&bias, lock);
        M::P::read_acquired(lock);
        M::P::read_acquired(64);
        assert!(Self::leave(&bias, lock), "its slot");
        assert!(!Self::leave(&bias, lock), "no other");
        M::P::read_released(lock);
        assert!(!M::P::may_hold_read(lock));
        M::P::read_released(64);
        assert!(!M::P::may_hold_read(64));
    }

    /// A thread that has revoked the bias and fenced finds each reader that came in and has not left, and
    /// none comes or leaves in passing any more. One that leaves is counted, or has left uncounted, and both
    /// know it.
    pub(crate) fn no_reader_comes_or_leaves_after_a_asymmetric_barrier() {
        let Some((bias, lock)) = Self::bias() else { return };
        let counted = Object::arc(Word::<M>::new(0));
        let reader = {
            let (bias, counted) = (Arc::clone(&bias), Arc::clone(&counted));
            M::spawn(move || {
                if !M::P::slot_enter(&bias, lock) || M::P::slot_leave(&bias, lock) == SlotLeft::Left {
                    return;
                }
                if M::P::slot_take_back(lock, Bias::Any) == Reader::Counted {
                    counted.store(1, Release);
                }
            })
        };
        bias.store(0, Relaxed);
        M::P::asymmetric_barrier();
        let marked = M::P::slots_mark(M::P::slot_table(), lock);
        let settled = M::P::slots_settle(M::P::slot_table(), lock);
        M::join(reader);
        assert!(marked <= 1 && settled <= marked);
        assert_eq!(settled, counted.load(Acquire));
        assert!(!M::P::has_slots(M::P::slot_table(), lock));
    }
}
