//! What a thread has learnt about waiting awake: plain data that a platform keeps for each thread.
//!
//! Whether spinning pays depends on the program: on how long it holds its locks, on whether owners sleep or
//! yield, on how many threads want the CPUs. So each thread learns it for itself, in the same way on every
//! platform.

use spinpark_platform::NS_PER_US;

use super::acquisitions::Acquisitions;
use super::tries::LatestTries;
use super::{Awake, Spin, Spinning, Timing, TransferCost, Tries, Try};

/// Spin statistics of one thread. All zero in a new thread.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SpinStats {
    /// How spinning has gone lately, for each kind of [`Spin`].
    spins: [Spins; 6],
    passed: Passed,
    acquisitions: Acquisitions,
    tries: LatestTries,
    /// Releases of locks with the contended bit for which no thread waited.
    quiet_releases: u32,
    /// Locks that it found taken, and then acquired awake.
    moves: u32,
    /// Waits in which it was to back off.
    back_offs: u32,
}

/// How often spins of one kind have paid lately.
#[derive(Debug, Default)]
#[repr(C)]
struct Spins {
    /// Spins in a row that did not pay.
    misses: u32,
    /// How many chances to spin the thread still skips.
    pause: u32,
}

/// How often and since when a thread has barged past a woken waiter.
#[derive(Debug, Default)]
#[repr(C)]
struct Passed {
    times: u32,
    /// Not after a promise, which ends it: the thread has most likely waited since.
    has_begun: bool,
    /// On the monotonic clock, ns.
    since: u64,
}

/// The most misses that count: after eight in a row, one chance in 256 is taken.
const MOST_MISSES: u32 = 8;

/// One in 16 times that a thread would back off, it spins: on two CPUs for `spin_ns` at most, where the
/// others sleep for `repark_ns` or more. If each spin acquires, 256 waits of all threads make a series of
/// samples.
const BACK_OFFS_PER_SPIN: u32 = 16;

/// The number of releases between two readings of the clock; a reading costs as much as a release.
const PASSES_PER_LOOK: u32 = 16;
/// How long threads barge past a woken waiter before a release promises it the lock; `notes/tuning.md` has
/// the planes. It may need the CPU of a thread that barges, and the lock is idle until it comes.
const LATE_NS: u64 = 4_000 * NS_PER_US;
/// Barging that began this number of times as long ago is forgotten.
const FORGOTTEN: u64 = 4;

impl SpinStats {
    fn spins(&mut self, kind: Spin) -> &mut Spins {
        let [locks, woken, signals, hand_overs, writers, readers] = &mut self.spins;
        match kind {
            Spin::Lock => locks,
            Spin::Woken => woken,
            Spin::Signal => signals,
            Spin::HandOver => hand_overs,
            Spin::Writer => writers,
            Spin::Readers => readers,
        }
    }

    /// Whether this thread's spins have paid lately. Counts a chance that it skips.
    ///
    /// A thread that misses tries again after 1, 3, 7, … 255 chances.
    pub fn spins_pay(&mut self, kind: Spin) -> bool {
        let spins = self.spins(kind);
        let pays = spins.pause == 0;
        spins.pause = spins.pause.saturating_sub(1);
        pays
    }

    /// Notes whether a spin paid. A spin for a lock has not paid if the lock's owner was off its CPU; in the
    /// queue of spinners also if the time was up, at its head or before (not by the caller's deadline). Any
    /// other has: to sleep and be woken costs more. With more than two CPUs, a spinner outside that queue
    /// that did not announce itself, and failed, notes nothing.
    pub fn spun(&mut self, kind: Spin, paid: bool) {
        let spins = self.spins(kind);
        let most = match kind {
            // To sleep and be woken costs more than such a spin.
            Spin::Woken => 0,
            Spin::Lock | Spin::Signal | Spin::HandOver | Spin::Writer | Spin::Readers => MOST_MISSES,
        };
        spins.misses = if paid { 0 } else { most.min(spins.misses + 1) };
        spins.pause = (1 << spins.misses) - 1;
    }

    /// See [`Adaptive::spinning`](super::Adaptive::spinning). `transfer`: what it costs to move a lock, ns.
    ///
    /// One in [`BACK_OFFS_PER_SPIN`] of these answers is to spin instead of backing off, and to time the
    /// move: only spins measure its cost, and a wrong cost that is too high would otherwise stay.
    pub fn spinning(&mut self, lock: usize, transfer: u64) -> Spinning {
        let spinning = self.acquisitions.spinning(lock, transfer);
        if spinning == Spinning::Eager {
            return spinning;
        }
        self.back_offs = self.back_offs.wrapping_add(1);
        if self.back_offs % BACK_OFFS_PER_SPIN != 0 {
            return spinning;
        }
        self.moves = TransferCost::before_sample();
        Spinning::Eager
    }

    /// See [`Adaptive::awake`](super::Adaptive::awake).
    pub fn awake(&mut self, lock: usize) -> Awake {
        self.acquisitions.awake(lock)
    }

    /// See [`Note::Waits`](super::Note::Waits).
    pub fn waits_for(&mut self, lock: usize) {
        self.acquisitions.waits_for(lock);
    }

    /// See [`Adaptive::tries`](super::Adaptive::tries).
    #[inline(always)]
    pub fn tries(&self) -> Tries {
        self.tries.went()
    }

    /// See [`Note::Tried`](super::Note::Tried).
    pub fn tried(&mut self, found: Try) {
        self.tries.tried(found);
    }

    /// See [`Note::Moved`](super::Note::Moved): whether this move is to be timed, for `cost`.
    pub fn wants_sample(&mut self, cost: TransferCost) -> bool {
        self.moves = self.moves.wrapping_add(1);
        cost.wants_sample(self.moves)
    }

    /// See [`Adaptive::wants_time`](super::Adaptive::wants_time).
    pub fn wants_time(&mut self, lock: usize, queued: bool) -> Option<Timing> {
        let may_set_contended = self.acquisitions.may_set_contended();
        self.acquisitions.wants_time(lock, queued).then_some(Timing { may_set_contended })
    }

    /// See [`Note::Acquired`](super::Note::Acquired). `now` is on the monotonic clock, ns, as in the others.
    pub fn acquired(&mut self, lock: usize, set_contended: bool, now: u64) {
        self.acquisitions.acquired(lock, set_contended, now);
    }

    /// See [`Note::Released`](super::Note::Released). Reads the clock (ns) if the release is timed.
    pub fn released(&mut self, lock: usize, clock: impl FnOnce() -> u64) {
        self.acquisitions.released(lock, clock);
    }

    /// See [`Note::ReleasesToWait`](super::Note::ReleasesToWait).
    pub fn releases_to_wait(&mut self, lock: usize) {
        self.acquisitions.releases_to_wait(lock);
    }

    /// See [`Adaptive::waits_next`](super::Adaptive::waits_next).
    pub fn waits_next(&mut self, lock: usize) -> bool {
        self.acquisitions.waits_next(lock)
    }

    /// See [`Adaptive::returns_soon`](super::Adaptive::returns_soon).
    pub fn returns_soon(&mut self, lock: usize, transfer: u64) -> bool {
        self.acquisitions.returns_soon(lock, transfer)
    }

    /// For [`Note::Sleeps`](super::Note::Sleeps): the other lock whose sleeper is to be woken early.
    #[inline(always)]
    pub fn unwoken_elsewhere(&mut self, lock: usize) -> Option<usize> {
        self.acquisitions.unwoken_elsewhere(lock)
    }

    /// See [`Note::Returns`](super::Note::Returns).
    pub fn returns_to(&mut self, lock: usize, clock: impl FnOnce() -> u64) {
        self.acquisitions.returned(lock, clock);
    }

    /// See [`Adaptive::ends_contended`](super::Adaptive::ends_contended); one in `quiet_releases` does, if
    /// `may` allows it.
    pub fn ends_contended(&mut self, lock: usize, quiet_releases: u32, may: impl FnOnce() -> bool) -> bool {
        if self.acquisitions.times_release(lock) {
            return false;
        }
        if self.acquisitions.clears_contended(lock) {
            return true;
        }
        self.quiet_releases = self.quiet_releases.wrapping_add(1);
        self.quiet_releases % quiet_releases == 0 && may()
    }

    /// See [`Adaptive::has_passed_woken`](super::Adaptive::has_passed_woken). Reads the clock (ns) now and
    /// then.
    ///
    /// The waiter is runnable, and usually needs this very CPU: the kernel had put it there when both were
    /// busy. It lets it run at the end of a time slice, even if another CPU became idle meanwhile.
    pub fn has_passed_for_long(&mut self, clock: impl FnOnce() -> u64) -> bool {
        let passed = &mut self.passed;
        passed.times += 1;
        if passed.times < PASSES_PER_LOOK {
            return false;
        }
        passed.times = 0;
        let now = clock();
        let since = now.saturating_sub(passed.since);
        let is_known = passed.has_begun && since <= FORGOTTEN * LATE_NS;
        if is_known && since <= LATE_NS {
            return false;
        }
        (passed.has_begun, passed.since) = (!is_known, now);
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinpark_platform::Tuning;

    #[test]
    fn a_thread_that_misses_lets_more_and_more_chances_pass() {
        let mut spin_stats = SpinStats::default();
        for pause in [1, 3, 7] {
            assert!(spin_stats.spins_pay(Spin::Signal));
            spin_stats.spun(Spin::Signal, false);
            assert_eq!((0..pause).filter(|_| spin_stats.spins_pay(Spin::Signal)).count(), 0);
        }
        assert!(spin_stats.spins_pay(Spin::HandOver), "another kind");
        assert!(spin_stats.spins_pay(Spin::Signal));
        spin_stats.spun(Spin::Signal, true);
        assert!(spin_stats.spins_pay(Spin::Signal));
    }

    #[test]
    fn a_woken_waiters_spin_is_never_given_up_for_those_before_it() {
        let mut spin_stats = SpinStats::default();
        for _ in 0..10 {
            spin_stats.spun(Spin::Woken, false);
            assert!(spin_stats.spins_pay(Spin::Woken));
        }
    }

    #[test]
    fn the_contended_bit_stays_for_many_quiet_releases() {
        const LOCK: usize = 1 << 4;
        let mut spin_stats = SpinStats::default();
        let most = Tuning::LINUX.quiet_releases;
        let ends = (0..10 * most).filter(|_| spin_stats.ends_contended(LOCK, most, || true)).count();
        assert_eq!(ends, 10);
    }

    /// A promise makes the thread wait; when it has the lock again, another waiter may have been woken just
    /// before.
    #[test]
    fn after_a_promise_passing_begins_anew() {
        let mut spin_stats = SpinStats::default();
        let mut passes_for = |begun: u64| {
            let mut now = begun;
            while !spin_stats.has_passed_for_long(|| now) {
                now += LATE_NS / 1000;
            }
            now - begun
        };
        let first = passes_for(0);
        // Before the earlier barging would be forgotten.
        let second = passes_for(first + 2 * LATE_NS);
        assert!(first > LATE_NS && second > LATE_NS, "{first} and {second} ns");
    }

    #[test]
    fn a_waiter_that_is_passed_for_long_is_let_run() {
        // A clock may begin at zero: the simulator's does, and that of a namespace may.
        for start in [10_000 * NS_PER_US, 0, LATE_NS + 1] {
            let mut spin_stats = SpinStats::default();
            let passes = (0..8_000).map(|passed| start + passed * NS_PER_US);
            let lets_run = passes.filter(|now| spin_stats.has_passed_for_long(|| *now)).count();
            assert_eq!(lets_run, 1, "from {start} on");
        }
    }
}
