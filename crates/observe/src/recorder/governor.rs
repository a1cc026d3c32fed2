//! What recording costs a thread: measured, and kept within a bound.
//!
//! **Measured.** Of the recorder's calls one in [`TIMED`], by lot, reads the clock at its beginning and its end; what it took
//! counts [`TIMED`] times. What is rare and long (unwinding, new records) is always timed. The sums are in the thread's table
//! ([`Cost`](crate::format::Cost)).
//!
//! **Bounded.** With the detail `Contended`, a thread records all acquisitions of hot locks, and all waits, as long as they take
//! less than a share of its time ([`SHARE`]). Where they come faster it records some of them, by lot, each with the same
//! chance 1 : *every*; such a record has the weight *every*. How many there must be is decided anew every [`WINDOW`] records.
//! A wait that is left out is still noted for readers while it lasts, and is recorded after all, with the weight 1, if it was
//! long: few long waits fit into a thread's time, and they are what matters.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use super::sampling::Gaps;
use super::tally::add;
use super::thread_state::{here, ThreadState};
use super::Recorder;

/// One in so many calls is timed.
const TIMED: u64 = 16;
/// Acquisitions may take so much of a thread's time, and waits as much: one part in so many.
const SHARE: f64 = 64.0;
/// Records after which it is decided anew how many there may be.
const WINDOW: u32 = 64;
/// The rarest that records get.
const RAREST: f64 = 4096.0;
/// What a record costs until one was timed, ns: an acquisition with its release, and a wait.
const FIRST_GUESS: [u64; 2] = [100, 400];

/// Which records are bounded apart.
#[derive(Clone, Copy)]
pub(crate) enum Bounded {
    Acquisitions,
    Waits,
}

/// A thread's. All zero is one that records everything.
#[repr(C)]
pub(crate) struct Governor {
    kinds: [Kind; 2],
    /// Which releases are looked at that recorded waiters wait for: as many as acquisitions.
    releases: Gaps,
    /// When the present window began, ticks; 0: it has not.
    since: Cell<u64>,
    records: Cell<u32>,
    lot: Cell<u32>,
    /// Of the call that is being timed: time for what is timed apart, ticks.
    apart: Cell<u64>,
    /// Acquisitions were left out since the last wait was noted for readers.
    has_left_out: Cell<bool>,
}

#[repr(C)]
struct Kind {
    gaps: Gaps,
    /// Records in the window.
    count: Cell<u32>,
    /// Ticks that one takes, a moving average; 0: not known.
    takes: Cell<u64>,
}

/// A call that may be timed.
#[derive(Clone, Copy)]
pub struct Meter(u64);

impl Meter {
    pub(crate) fn is_on(self) -> bool {
        self.0 != 0
    }
}

impl Governor {
    fn kind(&self, which: Bounded) -> &Kind {
        &self.kinds[which as usize]
    }

    /// A new thread.
    pub(crate) fn start(&self, seed: u32) {
        for kind in &self.kinds {
            kind.gaps.start(seed, 1);
            kind.count.set(0);
            kind.takes.set(0);
        }
        self.releases.start(seed, 1);
        self.since.set(0);
        self.records.set(0);
        self.lot.set(seed);
        self.has_left_out.set(false);
    }

    /// Each record stands for so many.
    pub(crate) fn weight(&self, which: Bounded) -> u32 {
        self.kind(which).gaps.every().max(1)
    }

    /// Whether the next one is left out.
    #[inline(always)]
    pub(crate) fn leaves_out(&self, which: Bounded) -> bool {
        let gaps = &self.kind(which).gaps;
        gaps.every() > 1 && !gaps.is_sample()
    }

    /// Whether anything is left out of the acquisitions.
    #[inline(always)]
    pub(crate) fn is_short_of_time(&self) -> bool {
        self.kind(Bounded::Acquisitions).gaps.every() > 1
    }

    pub(crate) fn has_left_out(&self) -> &Cell<bool> {
        &self.has_left_out
    }
}

impl Recorder {
    /// Whether the calling thread leaves out this acquisition of the hot lock at `address`. Not if it has noted that it holds
    /// it: then it is one more of those.
    #[inline(always)]
    pub fn leaves_out(&self, address: usize) -> bool {
        // SAFETY: null, or memory that is never given back.
        let Some(own) = (unsafe { here().own.get().as_ref() }) else { return false };
        own.governor.is_short_of_time()
            && !(own.holds_anything() && own.find(address).is_some())
            && own.governor.leaves_out(Bounded::Acquisitions)
    }

    /// Whether a release of the lock at `address` is not looked at: the thread leaves out acquisitions, and has none noted; no
    /// recorded waiter is there, or it is none of the sample. `owner`: the thread that has the lock, if that can be told.
    #[inline(always)]
    pub fn leaves_out_release(&self, address: usize, owner: Option<u32>) -> bool {
        // SAFETY: null, or memory that is never given back.
        let Some(own) = (unsafe { here().own.get().as_ref() }) else { return false };
        let is_left_out = own.governor.is_short_of_time()
            && !own.holds_anything()
            && owner.is_none_or(|owner| owner == own.id())
            && (self.shared.get().is_some_and(|shared| shared.slot(address).queue.load(Relaxed) == 0)
                || !own.governor.releases.is_sample());
        if is_left_out {
            own.governor.has_left_out.set(true);
        }
        is_left_out
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
        let lot = own.governor.lot.get().wrapping_mul(0x915F_77F5).wrapping_add(1);
        own.governor.lot.set(lot);
        if u64::from(lot >> 16) % TIMED != 0 {
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
        let took = took.saturating_sub(own.governor.apart.get()).saturating_sub(self.ticks.reading());
        let cost = &own.table().cost;
        add(if is_held { &cost.calls_held } else { &cost.calls }, took * TIMED);
        // A record has two to three such parts; an interrupted one is no example.
        let kind = own.governor.kind(which);
        let takes = &kind.takes;
        let before = if takes.get() == 0 { self.first_guess(which) } else { takes.get() };
        takes.set((7 * before + (3 * took).min(8 * before)) / 8);
    }

    fn first_guess(&self, which: Bounded) -> u64 {
        self.ticks.ticks(FIRST_GUESS[which as usize])
    }

    /// Does what is rare, and times it.
    #[inline(always)]
    pub(crate) fn rarely<T>(&self, own: &ThreadState, work: impl FnOnce() -> T) -> T {
        let start = self.now();
        let result = work();
        self.note_rare(own, self.now().saturating_sub(start));
        result
    }

    /// So many ticks went into what is rare.
    pub(crate) fn note_rare(&self, own: &ThreadState, took: u64) {
        let cost = &own.table().cost;
        add(if own.holds_anything() { &cost.rare_held } else { &cost.rare }, took);
        own.governor.apart.set(own.governor.apart.get() + took);
        own.aside().set(own.aside().get() + took);
    }

    /// One was recorded.
    #[inline(always)]
    pub(crate) fn recorded(&self, own: &ThreadState, which: Bounded) {
        let governor = &own.governor;
        add(&own.table().cost.recorded, 1);
        let count = &governor.kind(which).count;
        count.set(count.get() + 1);
        governor.records.set(governor.records.get() + 1);
        if governor.records.get() >= WINDOW {
            self.govern(own, self.now());
        }
    }

    /// Decides how many records there may be from now on.
    #[cold]
    #[inline(never)]
    pub(crate) fn govern(&self, own: &ThreadState, now: u64) {
        let governor = &own.governor;
        let since = governor.since.replace(now);
        governor.records.set(0);
        let passed = now.saturating_sub(since).max(1) as f64;
        for which in [Bounded::Acquisitions, Bounded::Waits] {
            let kind = governor.kind(which);
            let count = f64::from(kind.count.replace(0));
            if since == 0 || !self.is_contended() {
                continue;
            }
            let takes = if kind.takes.get() == 0 { self.first_guess(which) } else { kind.takes.get() };
            let every = f64::from(kind.gaps.every().max(1));
            let wanted = every * (count * takes as f64 / passed * SHARE).clamp(0.25, 16.0);
            kind.gaps.set_every(wanted.clamp(1.0, RAREST) as u32);
        }
        governor.releases.set_every(governor.weight(Bounded::Acquisitions));
        let cost = &own.table().cost;
        let left_out = |which| governor.kind(which).gaps.left_out();
        cost.left_out.store(left_out(Bounded::Acquisitions), Relaxed);
        cost.waits_left_out.store(left_out(Bounded::Waits), Relaxed);
    }
}
