//! What recording costs a thread, kept within a bound. How that is measured is in [`super::cost`].
//!
//! With the detail `Contended`, a thread records all acquisitions of hot locks, and all waits, as long as
//! they take less than a share of its time without these waits ([`SHARE`]). Where they come faster it records
//! a random sample, each with the same chance 1 : *every*; such a record has the weight *every*. The chance
//! is set anew every [`WINDOW`] records.
//!
//! A wait that is left out is still noted for readers while it lasts. If it was [long](LONG), its chance
//! grows with its length, to 1 at *every* times [`LONG`], and its weight is 1 ÷ the chance: few long waits
//! fit into a thread's time, and they are most of it. A chance in proportion to the summed quantity gives the
//! narrowest interval.

use core::cell::Cell;

use super::clock::LONG;
use super::sampling::Gaps;

/// Acquisitions may take one part in 64 of a thread's time, and waits as much.
const SHARE: f64 = 64.0;
/// Records after which it is decided anew how many there may be.
const WINDOW: u32 = 64;
/// The rarest that records get.
const RAREST: f64 = 4096.0;
/// An average is kept in this many parts of a tick: some CPUs have ticks of 40 ns.
const PARTS: u64 = 256;
/// What a record costs until one was timed, ns: an acquisition with its release, and a wait.
const FIRST_GUESS: [u64; 2] = [100, 400];

/// The kinds of records that have a bound each.
#[derive(Clone, Copy)]
pub(crate) enum Bounded {
    Acquisitions,
    Waits,
}

/// A thread's. All zero is one that records everything.
#[repr(C)]
pub(crate) struct Governor {
    kinds: [Kind; 2],
    /// When the present window began, ticks; 0: it has not.
    since: Cell<u64>,
    records: Cell<u32>,
    /// Time waited in the window, ticks.
    waited: Cell<u64>,
    /// The acquisition that is about to be noted was not drawn: it counts nothing.
    is_weightless: Cell<bool>,
    /// An acquisition that was drawn was none: the lock was not free. The next one is drawn for it.
    is_owed: Cell<bool>,
    /// The last of a sequence of random numbers.
    last_random: Cell<u32>,
    /// Of the call that is being timed: time for what is timed apart, ticks.
    pub(crate) apart: Cell<u64>,
}

#[repr(C)]
struct Kind {
    gaps: Gaps,
    /// Records in the window.
    count: Cell<u32>,
    /// What one takes, in [parts](PARTS) of a tick, a moving average; 0: not known.
    takes: Cell<u64>,
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
        self.since.set(0);
        self.records.set(0);
        self.waited.set(0);
        self.is_weightless.set(false);
        self.is_owed.set(false);
        self.last_random.set(seed);
    }

    /// How many events each record stands for.
    pub(crate) fn weight(&self, which: Bounded) -> u32 {
        self.kind(which).gaps.every().max(1)
    }

    /// Whether the next one is left out.
    #[inline(always)]
    pub(crate) fn leaves_out(&self, which: Bounded) -> bool {
        let gaps = &self.kind(which).gaps;
        gaps.every() > 1 && !gaps.is_sample()
    }

    /// Whether the next acquisition is left out. One that `is_noted` all the same counts nothing then: all
    /// have the same chance.
    #[inline(always)]
    pub(crate) fn leaves_out_acquisition(&self, is_noted: impl FnOnce() -> bool) -> bool {
        let is_left_out =
            self.is_short_of_time() && !self.is_owed.replace(false) && self.leaves_out(Bounded::Acquisitions);
        let is_weightless = is_left_out && is_noted();
        self.is_weightless.set(is_weightless);
        is_left_out && !is_weightless
    }

    /// What the acquisition that is about to be noted stands for.
    #[inline(always)]
    pub(crate) fn weight_of_acquisition(&self) -> u32 {
        if self.is_weightless.get() {
            0
        } else {
            self.weight(Bounded::Acquisitions)
        }
    }

    /// The acquisition that [was asked for](Governor::leaves_out_acquisition) is none, since the lock is not
    /// free. Only acquisitions count, so that one that takes longer because it was drawn has the same chance.
    pub(crate) fn was_not_free(&self, was_drawn: bool) {
        if !was_drawn {
            self.give_back(1);
        } else if self.is_short_of_time() && !self.is_weightless.get() {
            self.is_owed.set(true);
        }
    }

    /// The acquisitions that are left out until the next record of one: from now on the caller counts them.
    pub(crate) fn take(&self) -> u32 {
        self.kind(Bounded::Acquisitions).gaps.take()
    }

    /// The caller stops counting them, and `left` have not come.
    pub(crate) fn give_back(&self, left: u32) {
        self.kind(Bounded::Acquisitions).gaps.give_back(left);
    }

    /// Whether anything is left out of the acquisitions.
    #[inline(always)]
    pub(crate) fn is_short_of_time(&self) -> bool {
        self.kind(Bounded::Acquisitions).gaps.every() > 1
    }

    /// Calls so far that recorded nothing, up to the latest record.
    pub(crate) fn left_out(&self, which: Bounded) -> u64 {
        self.kind(which).gaps.left_out()
    }

    /// The thread has waited for `ticks` ticks.
    #[inline(always)]
    pub(crate) fn add_waited(&self, ticks: u64) {
        self.waited.set(self.waited.get().wrapping_add(ticks));
    }

    /// The next random number, 32 bits.
    #[inline(always)]
    pub(crate) fn next_lot(&self) -> u32 {
        let drawn = self.last_random.get().wrapping_mul(0x915F_77F5).wrapping_add(1);
        self.last_random.set(drawn);
        drawn
    }

    /// The weight of a wait of `ns` ns, [`LONG`] at least; none if it is left out. `is_drawn`: it was drawn
    /// before its length was known.
    pub(crate) fn weight_of_long(&self, ns: u64, is_drawn: bool) -> Option<u32> {
        let every = self.weight(Bounded::Waits);
        if every == 1 {
            return Some(1);
        }
        let every = f64::from(every);
        let chance = (ns as f64 / (LONG as f64 * every)).min(1.0);
        let random = || f64::from(self.next_lot() >> 8) / f64::from(1 << 24);
        // It had one chance already.
        let rest = (chance - 1.0 / every) / (1.0 - 1.0 / every);
        (is_drawn || random() < rest).then(|| (1.0 / chance + random()) as u32)
    }

    /// The same of a wait that was not drawn for: it began in a light span ([`super::spans`]).
    pub(crate) fn weight_of_any(&self, ns: u64) -> Option<u32> {
        let chance = (ns as f64 / (LONG as f64 * f64::from(self.weight(Bounded::Waits)))).min(1.0);
        let random = || f64::from(self.next_lot() >> 8) / f64::from(1 << 24);
        (random() < chance).then(|| (1.0 / chance + random()) as u32)
    }

    /// One was recorded; whether it is time to [decide](Governor::decide).
    #[inline(always)]
    pub(crate) fn recorded(&self, which: Bounded) -> bool {
        let count = &self.kind(which).count;
        count.set(count.get() + 1);
        self.records.set(self.records.get() + 1);
        self.records.get() >= WINDOW
    }

    /// A part of a record took `took` ticks; `ticks_of` converts ns to ticks. A record has two to three such
    /// parts; interrupted ones do not count.
    pub(crate) fn took(&self, which: Bounded, took: u64, ticks_of: impl FnOnce(u64) -> u64) {
        let takes = &self.kind(which).takes;
        let guess = ticks_of(PARTS * FIRST_GUESS[which as usize]);
        let before = if takes.get() == 0 { guess } else { takes.get() };
        // An average near 0 must be able to rise again.
        let most = 8 * before.max(guess);
        takes.set((7 * before + (3 * took).saturating_mul(PARTS).min(most)) / 8);
    }

    /// Decides at `now` how many records there may be from then on: all, unless it `is_bounded`.
    pub(crate) fn decide(&self, now: u64, is_bounded: bool, ticks_of: impl Fn(u64) -> u64) {
        let since = self.since.replace(now);
        self.records.set(0);
        let passed = now.saturating_sub(since).saturating_sub(self.waited.replace(0)).max(1) as f64;
        for (kind, guess) in self.kinds.iter().zip(FIRST_GUESS) {
            let count = f64::from(kind.count.replace(0));
            if !is_bounded {
                kind.gaps.set_every(1);
                continue;
            }
            if since == 0 {
                continue;
            }
            let takes = if kind.takes.get() == 0 { ticks_of(PARTS * guess) } else { kind.takes.get() };
            let takes = takes as f64 / PARTS as f64;
            let every = f64::from(kind.gaps.every().max(1));
            let wanted = every * (count * takes / passed * SHARE).clamp(0.25, 16.0);
            kind.gaps.set_every(wanted.clamp(1.0, RAREST) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_in(every: u32) -> Governor {
        // SAFETY: all zero is one.
        let governor: Governor = unsafe { core::mem::zeroed() };
        governor.start(7);
        governor.kinds.iter().for_each(|kind| kind.gaps.set_every(every));
        governor
    }

    #[test]
    fn what_is_noted_anyway_has_the_same_chance() {
        let governor = one_in(16);
        let sum: u32 = (0..200_000)
            .map(|_| {
                assert!(!governor.leaves_out_acquisition(|| true));
                governor.weight_of_acquisition()
            })
            .sum();
        assert!((f64::from(sum) / 200_000.0 - 1.0).abs() < 0.05, "{sum}");
    }

    #[test]
    fn what_is_drawn_and_not_free_is_made_up_for() {
        // An acquisition that is drawn comes later, and loses the lock more often.
        let governor = one_in(16);
        let (mut sum, mut taken, mut drawn) = (0, 0, 0_u32);
        while taken < 200_000 {
            let is_drawn = !governor.leaves_out_acquisition(|| false);
            drawn = drawn.wrapping_mul(0x915F_77F5).wrapping_add(1);
            if drawn >> 16 & 7 < if is_drawn { 5 } else { 2 } {
                governor.was_not_free(is_drawn);
                continue;
            }
            taken += 1;
            sum += if is_drawn { governor.weight_of_acquisition() } else { 0 };
        }
        assert!((f64::from(sum) / f64::from(taken) - 1.0).abs() < 0.05, "{sum} of {taken}");
    }

    #[test]
    fn weights_end_with_the_bound() {
        let governor = one_in(16);
        governor.decide(1, false, |ns| ns);
        assert_eq!(governor.weight(Bounded::Acquisitions), 1);
        assert_eq!(governor.weight(Bounded::Waits), 1);
    }

    #[test]
    fn a_cost_that_was_too_small_for_the_clock_is_learned_all_the_same() {
        let governor = one_in(16);
        let takes = || governor.kind(Bounded::Acquisitions).takes.get() / PARTS;
        let note = |took| governor.took(Bounded::Acquisitions, took, |ns| 3 * ns);
        for _ in 0..200 {
            note(0);
            if takes() < 2 {
                break;
            }
        }
        assert!(takes() < 2);
        (0..100).for_each(|_| note(60));
        assert!((170..=180).contains(&takes()), "{}", takes());
        // One with an interrupt.
        note(3_000_000);
        assert!(takes() < 1_000, "{}", takes());
    }

    #[test]
    fn weights_of_long_waits_add_up() {
        let governor = one_in(16);
        for ns in [LONG, 3 * LONG, 15 * LONG, 16 * LONG, 100 * LONG] {
            let mut sum = 0.0;
            for _ in 0..200_000 {
                let is_drawn = !governor.leaves_out(Bounded::Waits);
                sum += governor.weight_of_long(ns, is_drawn).map_or(0.0, f64::from);
            }
            assert!((sum / 200_000.0 - 1.0).abs() < 0.05, "{ns}: {sum}");
        }
    }
}
