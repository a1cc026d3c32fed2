//! What recording costs a thread: measured.
//!
//! One in [`TIMED`] of the recorder's calls, at random, reads the clock at its beginning and its end; its
//! time counts [`TIMED`] times. Rare, long operations (unwinding, new records) are always timed. The sums are
//! in the thread's table ([`Cost`](crate::format::Cost)). The cost of a record decides how many there may be
//! ([`Governor`](super::governor::Governor)).

use core::sync::atomic::Ordering::Relaxed;

use super::governor::Bounded;
use super::tally::add;
use super::thread_state::{here, ThreadState};
use super::Recorder;

/// One in 16 calls is timed.
const TIMED: u64 = 16;

/// A rare operation takes no longer, ns, if its thread has a CPU.
const LONGEST: u64 = 1_000_000;
/// The same for a call without a rare operation, which takes 0.1 to 2 µs, page faults of its table included.
/// The rest of a longer one is time without a CPU, and would count [`TIMED`] times.
const LONGEST_CALL: u64 = 20_000;

/// A call that may be timed.
#[derive(Clone, Copy)]
pub struct Meter(u64);

impl Meter {
    pub(crate) fn is_on(self) -> bool {
        self.0 != 0
    }

    /// When it began, ticks; 0 if it is not on.
    pub(crate) fn since(self) -> u64 {
        self.0
    }
}

impl Recorder {
    /// Whether the calling thread leaves out this acquisition of the hot lock at `address`. Not if it has
    /// noted that it holds it: then it is one more of those, which may count nothing.
    #[inline(always)]
    pub fn leaves_out(&self, address: usize) -> bool {
        let here = here();
        if here.skips.get() > 0 {
            here.skips.set(here.skips.get() - 1);
            return true;
        }
        // SAFETY: null, or memory that is never given back.
        let Some(own) = (unsafe { here.own.get().as_ref() }) else { return false };
        own.governor.leaves_out_acquisition(|| own.holds_anything() && own.find(address).is_some())
    }

    /// The calling thread leaves this acquisition of a glibc mutex out. The following ones are left out by
    /// [`SKIPS_AT`](Recorder::SKIPS_AT) alone.
    #[cold]
    #[inline(never)]
    pub fn skip_next(&self) {
        let here = here();
        if here.skips.get() > 0 {
            return; // this one was of those
        }
        // SAFETY: null, or memory that is never given back.
        if let Some(own) = unsafe { here.own.get().as_ref() }.filter(|own| !own.holds_anything()) {
            here.skips.set(own.governor.take() as i32);
        }
    }

    /// The acquisition that the calling thread [has asked for](Recorder::leaves_out) is none: the lock was
    /// not free.
    #[inline(always)]
    pub fn was_not_free(&self, was_drawn: bool) {
        // SAFETY: null, or memory that is never given back.
        if let Some(own) = unsafe { here().own.get().as_ref() } {
            own.governor.was_not_free(was_drawn);
        }
    }

    /// Every call is checked again.
    #[inline(always)]
    pub(crate) fn skip_no_more(&self, own: &ThreadState) {
        let here = here();
        here.passed.set(0);
        let left = here.skips.replace(0);
        if left > 0 {
            own.governor.give_back(left as u32);
        }
    }

    /// Whether the lock at `address` counts as free for those that wait for it. To be asked before it is
    /// acquired: reading what others write would prolong the hold.
    #[inline(always)]
    pub fn is_awaited_and_free(&self, address: usize) -> bool {
        self.shared.get().is_some_and(|shared| shared.slot(address).is_free.load(Relaxed) != 0)
    }

    /// Such a lock was acquired by the calling thread, which leaves that out. For others it stays free: they
    /// learn of this hold if the thread releases it to them ([`super::hand_off`]).
    #[cold]
    #[inline(never)]
    pub fn barged(&self, address: usize) {
        // SAFETY: null, or memory that is never given back.
        if let Some(own) = unsafe { here().own.get().as_ref() } {
            own.barged().set((address, self.now()));
        }
    }

    /// Whether a release of the lock at `address` is skipped: the thread leaves out acquisitions, has noted
    /// none, and no thread sleeps until that release. `owner`: the thread that has the lock, if known;
    /// `is_awaited` returns for the calling thread, of which it gets the id, whether there is such a sleeper,
    /// if that is known.
    #[inline(always)]
    pub fn leaves_out_release(
        &self,
        address: usize,
        owner: Option<u32>,
        is_awaited: impl FnOnce(u32) -> Option<bool>,
    ) -> bool {
        // SAFETY: null, or memory that is never given back.
        let Some(own) = (unsafe { here().own.get().as_ref() }) else { return false };
        own.governor.is_short_of_time()
            && !own.holds_anything()
            && owner.is_none_or(|owner| owner == own.id())
            && !is_awaited(own.id()).unwrap_or_else(|| self.has_waiters(address))
    }

    /// The thread that has a lock is another one than the calling one, as far as that is known.
    #[inline(always)]
    pub fn is_another(&self, owner: u32) -> bool {
        // SAFETY: null, or memory that is never given back.
        owner != 0 && unsafe { here().own.get().as_ref() }.is_some_and(|own| own.id() != owner)
    }

    /// A call of the recorder begins; it is timed perhaps.
    #[inline(always)]
    pub fn meter(&self, own: &ThreadState) -> Meter {
        if u64::from(own.governor.next_lot() >> 16) % TIMED != 0 {
            return Meter(0);
        }
        own.governor.apart.set(0);
        Meter(self.now())
    }

    /// Another part of the same call begins.
    #[inline(always)]
    pub fn meter_again(&self, own: &ThreadState, meter: Meter) -> Meter {
        if meter.0 == 0 {
            return meter;
        }
        own.governor.apart.set(0);
        Meter(self.now())
    }

    /// The call, or a part of it, ends. `is_held`: the thread has a hot lock meanwhile.
    #[inline(always)]
    pub fn metered(&self, own: &ThreadState, meter: Meter, is_held: bool) {
        if meter.0 != 0 {
            self.note_cost(own, meter.0, is_held, Bounded::Acquisitions);
        }
    }

    /// As [`Recorder::metered`], of a wait that began at `start`.
    #[inline(always)]
    pub(crate) fn metered_wait(&self, own: &ThreadState, start: u64, is_held: bool) {
        self.note_cost(own, start, is_held, Bounded::Waits);
    }

    #[cold]
    #[inline(never)]
    fn note_cost(&self, own: &ThreadState, start: u64, is_held: bool, which: Bounded) {
        let took = self.now().saturating_sub(start);
        let took = took.saturating_sub(own.governor.apart.get());
        let cost = &own.table().cost;
        let without_reading = took.saturating_sub(self.ticks.reading());
        let took_at_most = without_reading.min(self.ticks.ticks(LONGEST_CALL));
        add(if is_held { &cost.calls_held } else { &cost.calls }, took_at_most * TIMED);
        // With it: what overlaps with reading the clock is not in the difference, and a bound rather counts too
        // much.
        own.governor.took(which, took, |ns| self.ticks.ticks(ns));
    }

    /// Runs a rare operation, and times it.
    #[inline(always)]
    pub(crate) fn rarely<T>(&self, own: &ThreadState, work: impl FnOnce() -> T) -> T {
        let start = self.now();
        let result = work();
        let took = self.now().saturating_sub(start);
        self.note_rare(own, took, took);
        result
    }

    /// A rare operation took `took` ticks, and cost `cost` of them, as far as is known. A time beyond
    /// [`LONGEST`] does not count: the thread had no CPU meanwhile, and would have waited.
    pub(crate) fn note_rare(&self, own: &ThreadState, took: u64, cost: u64) {
        let longest = self.ticks.ticks(LONGEST);
        let sums = &own.table().cost;
        add(if own.holds_anything() { &sums.rare_held } else { &sums.rare }, cost.min(longest));
        own.governor.apart.set(own.governor.apart.get() + took);
        own.aside().set(own.aside().get() + took.min(longest));
    }

    /// Counts a record.
    #[inline(always)]
    pub(crate) fn recorded(&self, own: &ThreadState, which: Bounded) {
        add(&own.table().cost.recorded, 1);
        if own.governor.recorded(which) {
            self.govern(own);
        }
    }

    /// Decides how many records there may be from now on.
    #[cold]
    #[inline(never)]
    fn govern(&self, own: &ThreadState) {
        self.skip_no_more(own);
        own.governor.decide(self.now(), self.is_contended(), |ns| self.ticks.ticks(ns));
        let cost = &own.table().cost;
        cost.left_out.store(own.governor.left_out(Bounded::Acquisitions), Relaxed);
        cost.waits_left_out.store(own.governor.left_out(Bounded::Waits), Relaxed);
    }
}
