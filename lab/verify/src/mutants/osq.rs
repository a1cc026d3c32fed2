//! The spinner queue of `spinpark_classics::osq`: how threads enter it, leave it and pass it on.

use spinpark_platform::{
    AtomicU32 as _, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform,
};

const NONE: u32 = 0;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Nothing.
    None,
    /// Step A does not ask whether the position has arrived meanwhile.
    StepAWithoutHead,
    /// Step B does not wait for a successor that has not linked itself yet.
    StepBWithoutWait,
    /// Step A does not take this slot out of its predecessor.
    NoStepA,
}

struct Slot<P: Platform> {
    claimed: P::AtomicU32,
    next: P::AtomicU32,
    prev: P::AtomicU32,
    head: P::AtomicU32,
}

/// The queue, with three slots.
pub struct Osq<P: Platform> {
    tail: P::AtomicU32,
    slots: [Slot<P>; 3],
    error: Error,
}

impl<P: Platform> Osq<P> {
    /// Empty.
    pub fn new(error: Error) -> Self {
        let word = || P::AtomicU32::new(0);
        let slot = |_| Slot { claimed: word(), next: word(), prev: word(), head: word() };
        Self { tail: word(), slots: std::array::from_fn(slot), error }
    }

    fn slot(&self, number: u32) -> &Slot<P> {
        &self.slots[number as usize - 1]
    }

    /// As `Osq::enter`, then `section` as the head, then as the drop of `Spot`.
    pub fn enter(&self, mut keep_spinning: impl FnMut() -> bool, section: impl FnOnce()) {
        let free = |slot: &Slot<P>| {
            slot.claimed.load(Relaxed) == 0 && slot.claimed.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
        };
        let Some(index) = self.slots.iter().position(free) else { return };
        let me = index as u32 + 1;
        let slot = self.slot(me);
        slot.next.store(NONE, Relaxed);
        slot.head.store(0, Relaxed);
        let prev = self.tail.swap(me, AcqRel);
        if prev != NONE {
            slot.prev.store(prev, Relaxed);
            self.slot(prev).next.store(me, Release);
            while slot.head.load(Acquire) == 0 {
                if !keep_spinning() {
                    if self.leave(me) {
                        return;
                    }
                    break;
                }
                P::spin_hint();
            }
        }
        section();
        let next = self.take_next(me, NONE);
        if next != NONE {
            self.slot(next).head.store(1, Release);
        }
        slot.claimed.store(0, Release);
    }

    /// `false` if the position arrived first.
    fn leave(&self, me: u32) -> bool {
        let slot = self.slot(me);
        let prev = loop {
            let prev = slot.prev.load(Acquire);
            if self.error == Error::NoStepA
                || self.slot(prev).next.compare_exchange(me, NONE, AcqRel, Relaxed).is_ok()
            {
                break prev;
            }
            if self.error != Error::StepAWithoutHead && slot.head.load(Acquire) != 0 {
                return false;
            }
            P::spin_hint();
        };
        let next = self.take_next(me, prev);
        if next != NONE {
            self.slot(next).prev.store(prev, Release);
            self.slot(prev).next.store(next, Release);
        }
        slot.claimed.store(0, Release);
        true
    }

    fn take_next(&self, me: u32, new_tail: u32) -> u32 {
        loop {
            if self.tail.load(Relaxed) == me
                && self.tail.compare_exchange(me, new_tail, AcqRel, Relaxed).is_ok()
            {
                return NONE;
            }
            if self.slot(me).next.load(Relaxed) != NONE {
                let next = self.slot(me).next.swap(NONE, AcqRel);
                if next != NONE {
                    return next;
                }
            }
            if self.error == Error::StepBWithoutWait {
                return NONE;
            }
            P::spin_hint();
        }
    }
}
