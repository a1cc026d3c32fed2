//! The read locks that a thread holds, in its thread-local memory: eight by address, the others by a hash of
//! it.
//!
//! A thread that may hold a lock passes the writers that wait for it. So a thread that holds many other locks
//! must not look like a holder of this one: the holds beyond eight are numbers in a table by hash, from which
//! each is taken away again (a counting filter: Fan, Cao, Almeida, Broder, "Summary Cache", 2000). While each
//! thread releases what it has acquired, a holder is always known; a thread is also taken for one if another
//! lock that it holds shares the number.

use core::sync::atomic::{compiler_fence, AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// Read locks that a thread remembers by address; more are only counted.
const REMEMBERED: usize = 8;

/// Numbers of the others, of two bits each: libraries that are opened late have little room for what is
/// thread-local. With 20 locks held, one other lock in 20 seems held, too.
const COUNTED: usize = 256;
/// The most that such a number counts; it stays.
const MOST: u8 = 3;

/// Whether a thread has released a read lock of another thread: then what threads remember of their own may
/// be wrong.
static GIVEN_BACK: AtomicBool = AtomicBool::new(false);

/// The read locks that a thread holds.
#[repr(C)]
pub(crate) struct Reads {
    /// How many of `held` are in use.
    remembered: u32,
    /// The state of the generator that `is_sample` draws from.
    draws: u32,
    held: [Held; REMEMBERED],
    /// The first line of the level of slots that the thread uses: see `slots`.
    pub(crate) first_line: u32,
    /// How many reads more are counted in their locks, without a search for a slot.
    passes: u32,
    /// How many were the last time.
    passed: u32,
    /// The read locks beyond those in `held`: how many have each hash.
    others: [u8; COUNTED / 4],
}

/// Which of the numbers counts the holds on `lock`: its byte, and the place in it. Multiplicative hashing:
/// Knuth, volume 3, 6.4.
fn share(lock: usize) -> (usize, u32) {
    let number = ((lock >> 3) as u32).wrapping_mul(0x9E37_79B1) >> (u32::BITS - COUNTED.ilog2());
    (number as usize / 4, number % 4 * 2)
}

/// The reads that are counted after a search for a slot, which takes up to 0.2 us.
const LEAST_PASSES: u32 = 16;
const MOST_PASSES: u32 = 4096;

/// A read lock that a thread holds.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Held {
    /// The address of the lock.
    pub(crate) lock: usize,
    /// The slot with this reader; null if the reader is counted in the lock.
    pub(crate) slot: *const AtomicUsize,
}

impl Reads {
    /// Whether the thread does without a slot, as it found no room a moment ago.
    #[inline(always)]
    pub(crate) fn passes_slots(&mut self) -> bool {
        self.passes != 0 && self.pass()
    }

    /// The same, without counting it.
    #[inline(always)]
    pub(crate) fn has_passes(&self) -> bool {
        self.passes != 0
    }

    /// Out of line: else each read would store.
    #[cold]
    #[inline(never)]
    fn pass(&mut self) -> bool {
        self.passes = self.passes.saturating_sub(1); // a handler may have taken the last one meanwhile
        true
    }

    /// All slots of the thread's CPU are taken, by holds that last.
    pub(crate) fn found_no_room(&mut self) {
        self.first_line = 0;
        self.passed = self.passed.saturating_mul(2).clamp(LEAST_PASSES, MOST_PASSES);
        self.passes = self.passed;
    }

    /// True for about one in `one_in` calls. Two locks that a thread takes alternately are both drawn.
    #[inline]
    pub(crate) fn is_sample(&mut self, one_in: u32) -> bool {
        // A linear congruential generator (Numerical Recipes), whose high bits are random; the address tells
        // threads apart.
        self.draws = self.draws.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let place = core::ptr::from_ref(self) as usize >> 6;
        ((self.draws >> 16) ^ place as u32) % one_in == 0
    }

    /// Remembers a read lock, as one that is counted in the lock itself; `None` if all entries are in use.
    #[inline(always)]
    pub(crate) fn add(&mut self, lock: usize) -> Option<&mut Held> {
        let held = self.held.get_mut(self.remembered as usize)?;
        // T4 in `slots`: an entry that is not in use has no slot, and a handler that runs from here on uses
        // those behind this one.
        self.remembered += 1;
        compiler_fence(SeqCst);
        held.lock = lock;
        Some(held)
    }

    /// The latest hold on `lock` that is in a slot; it is the last one then. It need not be the latest hold:
    /// an upgradable one is noted as counted, and may be younger than the slot.
    #[inline(always)]
    pub(crate) fn last_if_in_slot(&mut self, lock: usize) -> Option<&mut Held> {
        let last = (self.remembered as usize).checked_sub(1)?;
        match self.held.get(last) {
            Some(held) if held.lock == lock && !held.slot.is_null() => self.held.get_mut(last),
            _ if last == 0 => None,
            _ => self.bring_last(lock),
        }
    }

    /// The last hold, if it is on `lock` and in a slot.
    #[inline(always)]
    pub(crate) fn the_last_if_in_slot(&mut self, lock: usize) -> Option<&mut Held> {
        let last = (self.remembered as usize).checked_sub(1)?;
        self.held.get_mut(last).filter(|held| held.lock == lock && !held.slot.is_null())
    }

    /// For a lock that was not read-locked last: makes the latest hold on `lock` that is in a slot the last
    /// one.
    #[cold]
    #[inline(never)]
    fn bring_last(&mut self, lock: usize) -> Option<&mut Held> {
        let held = self.remembered_mut();
        let found = held.iter().rposition(|held| held.lock == lock && !held.slot.is_null())?;
        if let Some(last) = held.len().checked_sub(1) {
            held.swap(found, last);
        }
        held.last_mut()
    }

    #[inline(always)]
    pub(crate) fn removed_last(&mut self) {
        self.remembered = self.remembered.saturating_sub(1);
    }

    fn remembered_mut(&mut self) -> &mut [Held] {
        let remembered = (self.remembered as usize).min(REMEMBERED);
        &mut self.held[..remembered]
    }

    /// Notes a read lock that is counted in the lock itself.
    #[inline(always)]
    pub(crate) fn acquired(&mut self, lock: usize) {
        if self.add(lock).is_none() {
            self.overflow(lock);
        }
    }

    /// All entries are in use.
    #[cold]
    #[inline(never)]
    fn overflow(&mut self, lock: usize) {
        if !GIVEN_BACK.load(Relaxed) {
            self.count(lock);
            return;
        }
        // Holds that other threads have released stay here for good. Only slots must be remembered.
        self.others.fill(0);
        let mut kept = 0;
        for index in 0..REMEMBERED {
            let Held { lock: of, slot } = self.held[index];
            // SAFETY: a hold's pointer, if it is not null, is to a slot of a table.
            if !slot.is_null() && !unsafe { crate::slot::free_if_counted(slot, of) } {
                self.held.swap(kept, index);
                kept += 1;
            }
        }
        self.held[kept..].fill(Held { lock: 0, slot: core::ptr::null() });
        self.remembered = kept as u32;
        if self.add(lock).is_none() {
            self.count(lock);
        }
    }

    fn count(&mut self, lock: usize) {
        let (byte, place) = share(lock);
        if self.others(lock) < MOST {
            self.others[byte] += 1 << place;
        }
    }

    /// How many holds have the hash of `lock`.
    fn others(&self, lock: usize) -> u8 {
        let (byte, place) = share(lock);
        self.others[byte] >> place & MOST
    }

    /// Takes a hold on `lock` out of the numbers; false if it is not in there.
    fn uncount(&mut self, lock: usize) -> bool {
        let (byte, place) = share(lock);
        let number = self.others(lock);
        if (1..MOST).contains(&number) {
            self.others[byte] -= 1 << place;
        }
        number > 0
    }

    /// Forgets a read lock that is counted in the lock itself.
    #[inline(always)]
    pub(crate) fn released(&mut self, lock: usize) {
        match self.held.get((self.remembered as usize).wrapping_sub(1)) {
            Some(last) if last.lock == lock && last.slot.is_null() => self.remembered -= 1,
            _ => self.forget(lock),
        }
    }

    /// For a lock that was not read-locked last.
    #[inline(never)]
    fn forget(&mut self, lock: usize) {
        let held = self.remembered_mut();
        match held.iter().rposition(|held| held.lock == lock && held.slot.is_null()) {
            Some(found) => {
                let last = held.len() - 1;
                held.swap(found, last);
                self.removed_last();
            }
            None if self.uncount(lock) => {}
            // Acquired by another thread, which still remembers it. POSIX leaves that undefined; glibc allows
            // it.
            None => GIVEN_BACK.store(true, Relaxed),
        }
    }

    /// Whether a hold is noted in `slot`.
    pub(crate) fn is_in(&mut self, slot: &AtomicUsize) -> bool {
        self.remembered_mut().iter().any(|held| core::ptr::eq(held.slot, slot))
    }

    /// Whether two holds on `lock` are remembered.
    #[cold]
    #[inline(never)] // for the drop-in's size
    pub(crate) fn holds_two(&mut self, lock: usize) -> bool {
        self.remembered_mut().iter().filter(|held| held.lock == lock).count() > 1
    }

    /// In a process whose threads release each other's read locks, that is not known.
    pub(crate) fn may_hold(&mut self, lock: usize) -> bool {
        !GIVEN_BACK.load(Relaxed)
            && (self.others(lock) > 0 || self.remembered_mut().iter().any(|held| held.lock == lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;

    const OUTER: usize = 64;
    const INNER: usize = 128;

    fn none() -> Reads {
        Reads {
            remembered: 0,
            draws: 0,
            held: [Held { lock: 0, slot: ptr::null() }; REMEMBERED],
            first_line: 0,
            passes: 0,
            passed: 0,
            others: [0; COUNTED / 4],
        }
    }

    /// A signal handler reads `lock` in `slot`, and gives it up.
    fn handler(reads: &mut Reads, lock: usize, slot: &AtomicUsize) {
        if let Some(held) = reads.add(lock) {
            held.slot = slot;
        }
        let held = reads.last_if_in_slot(lock).expect("its own");
        assert!(ptr::eq(held.slot, slot));
        held.slot = ptr::null();
        reads.removed_last();
    }

    #[test]
    fn a_handler_leaves_a_hold_alone_whose_slot_is_being_claimed() {
        let slots = [AtomicUsize::new(0), AtomicUsize::new(0)];
        for lock in [INNER, OUTER] {
            let mut reads = none();
            assert!(reads.add(OUTER).is_some());
            handler(&mut reads, lock, &slots[1]); // the slot is claimed, and not in the entry yet
            reads.held[0].slot = &slots[0];
            let held = reads.last_if_in_slot(OUTER).expect("the hold is remembered");
            assert!(held.lock == OUTER && ptr::eq(held.slot, &slots[0]));
            assert!(reads.last_if_in_slot(INNER).is_none(), "nothing of the handler's is left");
        }
    }

    #[test]
    fn a_handler_does_not_take_a_slot_that_is_being_given_back() {
        let mut reads = none();
        let slot = AtomicUsize::new(0);
        reads.add(OUTER).expect("a free entry").slot = &slot;
        let held = reads.last_if_in_slot(OUTER).expect("the hold is remembered");
        held.slot = ptr::null(); // as `leave` does, before the slot may be another thread's
        reads.acquired(OUTER); // the handler's, counted in the lock
        assert!(reads.last_if_in_slot(OUTER).is_none(), "it is in no slot");
        reads.released(OUTER);
        reads.removed_last();
        assert_eq!(reads.remembered, 0);
    }

    #[test]
    fn a_thread_that_holds_many_locks_holds_no_other() {
        let locks = |count: usize| (1..=count).map(|number| number * 56);
        let mut reads = none();
        locks(20).for_each(|lock| reads.acquired(lock));
        assert!(locks(20).all(|lock| reads.may_hold(lock)));
        let others = || locks(1020).skip(20);
        let taken = others().filter(|other| reads.may_hold(*other)).count();
        assert!(taken < 100, "{taken} of 1000");
        // In any order, once each.
        locks(20).for_each(|lock| reads.released(lock));
        assert!(!locks(1020).any(|lock| reads.may_hold(lock)));
    }

    #[test]
    fn a_lock_that_is_held_very_often_is_never_forgotten() {
        let mut reads = none();
        (0..1000).for_each(|_| reads.acquired(OUTER));
        (0..999).for_each(|_| reads.released(OUTER));
        assert!(reads.may_hold(OUTER));
    }

    #[test]
    fn a_thread_without_room_for_slots_seldom_looks_for_one() {
        let mut reads = none();
        let searches = (0..100_000).filter(|_| {
            let searches = !reads.passes_slots();
            if searches {
                reads.found_no_room();
            }
            searches
        });
        assert!(searches.count() < 40);
    }

    #[test]
    fn a_sample_is_drawn_as_often_as_asked_for() {
        let mut reads = none();
        let drawn = |reads: &mut Reads, of: u32| (0..of).filter(|_| reads.is_sample(8)).count();
        assert!((900..1100).contains(&drawn(&mut reads, 8000)));
        // The same holds for every second call, which may be for one of two locks.
        let alternating = (0..8000).map(|_| (reads.is_sample(8), reads.is_sample(8)));
        assert!((900..1100).contains(&alternating.filter(|(first, _)| *first).count()));
    }
}
