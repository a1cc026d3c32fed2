//! How long a thread's sections and non-critical sections are: learnt from its own contended acquisitions.
//!
//! A waiter needs both to choose how it spins. If the threads that contend for a lock take turns, each
//! section costs a transfer of the lock and of its data to another CPU, and the owner's non-critical section
//! is not lost. If one of them goes on while the others stay away, it is the other way round. So turns pay
//! where the non-critical section is longer than a transfer, and by more than a small part of the section.
//! The waiter cannot see the owner's times. It uses its own, because threads that contend for one lock
//! usually run the same code.
//!
//! `notes/tuning.md` ("Taking turns, or one at a time") has the derivation and the planes.

use super::{Awake, Spinning};

/// Turns pay if they gain more than an eighth of a section.
const LEAST_GAIN: u64 = 8;
/// From this length of a section on, ns, a second thread that waits awake is not worth its CPU time ...
const LONG_SECTION_NS: u32 = 1_500;
/// ... if the non-critical section is no longer than two sections.
const NON_CRITICAL_IN_SECTIONS: u32 = 2;
/// From this length of a section on, ns, there is work for as many threads at a time as the non-critical
/// section is sections long, and one; more of them only wait. `notes/tuning.md` ("As many awake as keep a
/// lock busy") has the planes.
const MEDIUM_SECTION_NS: u32 = 560;
/// Three more stay awake: woken ones come too late for the moment in which all others are in non-critical
/// sections.
const RESERVE: u32 = 3;
/// With shorter non-critical sections, ns, threads do not take turns, and a section of a few nanoseconds
/// looks like a long one while others poll its line.
const LEAST_NON_CRITICAL_NS: u32 = 100;
/// One in 16 contended acquisitions is timed, and each one that was waited for in the queue; of a lock
/// without the contended bit only if a sample may set it ([`Acquisitions::may_set_contended`]).
const ACQUISITIONS_PER_SAMPLE: u32 = 16;
/// A thread remembers for this number of samples that it waited on a condition variable with a lock.
const WAITS_REMEMBERED: u32 = 16;
/// A thread that signals more often than this between two of its own waits continues after a signal.
const SIGNALS_PER_WAIT: u32 = 4;
/// Locks that a thread remembers, by address.
const REMEMBERED: usize = 4;

/// What a thread knows about the locks that it waited for lately. All zero in a new thread.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Acquisitions {
    known: [Known; REMEMBERED],
    /// The acquisition that is being timed.
    timed: Timed,
    /// Contended acquisitions since the last one that was timed.
    since_sample: u32,
    /// The lock whose contended bit was set for a sample, which has been taken.
    to_clear: usize,
    /// The lock of the last wait.
    waited_for: usize,
    /// The wait before that was for the same one.
    again: bool,
    /// The lock whose waiters were left asleep by the last release, as this thread was taken to come back for
    /// it; 0: none.
    unwoken: usize,
}

/// One lock: its latest two samples, ns. The smaller one counts, because preemption only ever adds.
#[derive(Debug, Default)]
#[repr(C)]
struct Known {
    lock: usize,
    /// From a release to the next attempt to acquire.
    non_critical: [u32; 2],
    /// From an acquisition to its release.
    inside: [u32; 2],
    /// After this number of samples the thread forgets that it released the lock to wait on a condition
    /// variable.
    waits: u32,
    /// The number of further signals after which the thread is expected to wait itself.
    signals: u32,
}

/// An acquisition that is being timed. Times are on the monotonic clock, ns.
#[derive(Debug, Default)]
#[repr(C)]
struct Timed {
    /// 0: none.
    lock: usize,
    acquired: u64,
    /// 0: the lock is held still.
    released: u64,
    /// The contended bit was set for this sample.
    set_contended: bool,
}

impl Acquisitions {
    fn known(&mut self, lock: usize) -> &mut Known {
        // Most locks lie in objects of 16 bytes or more.
        &mut self.known[(lock >> 4 ^ lock >> 10) % REMEMBERED]
    }

    /// How a wait for `lock` is to be spent, if it takes `transfer` ns to move it to another CPU.
    #[inline(never)]
    pub(super) fn spinning(&mut self, lock: usize, transfer: u64) -> Spinning {
        let known = self.known(lock);
        let least = |samples: [u32; 2]| u64::from(samples[0].min(samples[1]));
        let gain = least(known.non_critical).saturating_sub(transfer);
        if known.lock == lock && known.waits == 0 && gain * LEAST_GAIN <= least(known.inside) {
            Spinning::BackOff
        } else {
            Spinning::Eager
        }
    }

    /// How many threads that wait awake for `lock` are enough.
    #[inline(never)]
    pub(super) fn awake(&mut self, lock: usize) -> Awake {
        let known = self.known(lock);
        if known.lock != lock {
            return Awake::Briefly;
        }
        let least = |samples: [u32; 2]| samples[0].min(samples[1]);
        let (inside, non_critical) = (least(known.inside), least(known.non_critical));
        if known.waits > 0 || inside < MEDIUM_SECTION_NS {
            Awake::All
        } else if inside >= LONG_SECTION_NS && non_critical / NON_CRITICAL_IN_SECTIONS <= inside {
            Awake::AtMost(1)
        } else if non_critical < LEAST_NON_CRITICAL_NS {
            Awake::All
        } else {
            Awake::AtMost(RESERVE + non_critical / inside)
        }
    }

    /// Whether a thread that releases `lock` comes back for it so soon that a waiter with a timer is better
    /// left asleep. A thread without samples of it is expected to: its waiters have measured that.
    pub(super) fn returns_soon(&mut self, lock: usize, transfer: u64) -> bool {
        let returns = self.known(lock).lock != lock || self.spinning(lock, transfer) == Spinning::BackOff;
        if returns {
            self.unwoken = lock;
        } else if self.unwoken == lock {
            self.unwoken = 0;
        }
        returns
    }

    /// The thread is about to sleep in a wait for `lock`: the other lock whose waiters it has left asleep, if
    /// it did not come back for that one.
    pub(super) fn unwoken_elsewhere(&mut self, lock: usize) -> Option<usize> {
        Some(core::mem::take(&mut self.unwoken)).filter(|&unwoken| unwoken != 0 && unwoken != lock)
    }

    /// Whether the thread has lately released `lock` to wait on a condition variable. Each call counts as one
    /// signal.
    pub(super) fn waits_next(&mut self, lock: usize) -> bool {
        let known = self.known(lock);
        let waits = known.lock == lock && known.signals > 0;
        known.signals -= u32::from(waits);
        waits
    }

    /// Whether the acquisition of `lock` just now is to be timed.
    pub(super) fn wants_time(&mut self, lock: usize, queued: bool) -> bool {
        self.since_sample = self.since_sample.saturating_add(1); // a thread that may not set the bit takes none
        let known = self.known(lock);
        // While the thread waits on conditions, its samples decide nothing.
        let news = known.lock != lock || (queued && known.waits == 0);
        news || self.since_sample >= ACQUISITIONS_PER_SAMPLE
    }

    /// `lock` was acquired `now`, and its release will be seen.
    #[inline(never)]
    pub(super) fn acquired(&mut self, lock: usize, set_contended: bool, now: u64) {
        self.since_sample = 0;
        // An acquisition may be noted twice, and its contended bit ends once.
        let set_contended = set_contended || (self.times_release(lock) && self.timed.set_contended);
        self.timed = Timed { lock, acquired: now, released: 0, set_contended };
    }

    /// Whether the release of `lock` is to be timed.
    pub(super) fn times_release(&self, lock: usize) -> bool {
        self.timed.lock == lock && self.timed.released == 0
    }

    /// `lock` was released just now.
    pub(super) fn released(&mut self, lock: usize, clock: impl FnOnce() -> u64) {
        if self.times_release(lock) {
            self.timed.released = clock();
        }
    }

    /// An attempt to acquire `lock`.
    #[inline(never)]
    pub(super) fn returned(&mut self, lock: usize, clock: impl FnOnce() -> u64) {
        if self.unwoken == lock {
            self.unwoken = 0;
        }
        if self.timed.lock != lock || self.timed.released == 0 {
            return;
        }
        let Timed { acquired, released, set_contended, .. } = core::mem::take(&mut self.timed);
        let non_critical = span(released, clock());
        let inside = span(acquired, released);
        if set_contended {
            self.to_clear = lock;
        }
        let known = self.known(lock);
        if known.lock == lock {
            known.non_critical = [non_critical, known.non_critical[0]];
            known.inside = [inside, known.inside[0]];
            known.waits = known.waits.saturating_sub(1);
        } else {
            *known = Known { lock, non_critical: [non_critical; 2], inside: [inside; 2], ..Known::default() };
        }
    }

    /// Whether a lock's contended bit may be set only for a sample. Not if the thread waits for one lock
    /// after the other: the releases of all of them would be slow.
    pub(super) fn may_set_contended(&self) -> bool {
        self.again
    }

    /// A wait for `lock` begins. If the last one was for another lock, an acquisition of that is not timed to
    /// its end: the thread's next attempt to acquire it may not be seen.
    pub(super) fn waits_for(&mut self, lock: usize) {
        self.again = self.waited_for == lock;
        self.waited_for = lock;
        if self.timed.lock != lock {
            let Timed { lock: other, set_contended, .. } = core::mem::take(&mut self.timed);
            if set_contended {
                self.to_clear = other;
            }
        }
    }

    /// `lock` is released to wait on a condition variable: whatever the samples say, its threads do not come
    /// back for it by themselves.
    #[inline(never)]
    pub(super) fn releases_to_wait(&mut self, lock: usize) {
        let known = self.known(lock);
        if known.lock != lock {
            *known = Known { lock, non_critical: [u32::MAX; 2], ..Known::default() };
        }
        known.waits = WAITS_REMEMBERED;
        known.signals = SIGNALS_PER_WAIT;
    }

    /// Whether the contended bit of `lock` was set only for a sample that has been taken. True once.
    pub(super) fn clears_contended(&mut self, lock: usize) -> bool {
        let clears_contended = self.to_clear == lock;
        if clears_contended {
            self.to_clear = 0;
        }
        clears_contended
    }
}

fn span(from: u64, to: u64) -> u32 {
    u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: usize = 1 << 4;
    const OTHER: usize = 2 << 4;
    const TRANSFER: u64 = 250;

    /// The knowledge of a thread that has waited for one lock twice.
    fn on_one_lock() -> Acquisitions {
        let mut acquisitions = Acquisitions::default();
        acquisitions.waits_for(LOCK);
        acquisitions.waits_for(LOCK);
        acquisitions
    }

    /// A timed acquisition: a section, then a non-critical section, ns.
    fn acquisition(acquisitions: &mut Acquisitions, lock: usize, inside: u64, outside: u64) {
        acquisitions.acquired(lock, false, 1000);
        acquisitions.released(lock, || 1000 + inside);
        acquisitions.returned(lock, || 1000 + inside + outside);
    }

    #[test]
    fn threads_take_turns_until_they_know_better() {
        assert_eq!(Acquisitions::default().spinning(LOCK, TRANSFER), Spinning::Eager);
    }

    #[test]
    fn a_short_time_outside_keeps_waiters_away() {
        let mut acquisitions = Acquisitions::default();
        acquisition(&mut acquisitions, LOCK, 20, 50);
        assert_eq!(acquisitions.spinning(LOCK, TRANSFER), Spinning::BackOff);
        assert_eq!(acquisitions.spinning(OTHER, TRANSFER), Spinning::Eager, "another lock");
    }

    #[test]
    fn the_same_time_outside_pays_where_a_lock_moves_fast() {
        let mut acquisitions = Acquisitions::default();
        acquisition(&mut acquisitions, LOCK, 20, 150);
        assert_eq!(
            (acquisitions.spinning(LOCK, 250), acquisitions.spinning(LOCK, 80)),
            (Spinning::BackOff, Spinning::Eager)
        );
    }

    #[test]
    fn a_time_outside_that_is_small_beside_the_section_does_so_too() {
        let mut acquisitions = Acquisitions::default();
        acquisition(&mut acquisitions, LOCK, 10_000, 1_000);
        assert_eq!(acquisitions.spinning(LOCK, TRANSFER), Spinning::BackOff);
        acquisition(&mut acquisitions, OTHER, 1_000, 1_000);
        assert_eq!(acquisitions.spinning(OTHER, TRANSFER), Spinning::Eager);
    }

    #[test]
    fn one_preemption_changes_nothing_and_two_samples_do() {
        let mut acquisitions = Acquisitions::default();
        acquisition(&mut acquisitions, LOCK, 20, 50);
        acquisition(&mut acquisitions, LOCK, 20, 4_000_000);
        assert_eq!(acquisitions.spinning(LOCK, TRANSFER), Spinning::BackOff);
        acquisition(&mut acquisitions, LOCK, 20, 3_000);
        assert_eq!(acquisitions.spinning(LOCK, TRANSFER), Spinning::Eager);
    }

    #[test]
    fn as_many_wait_awake_as_keep_the_lock_busy() {
        let knows = |inside, outside| {
            let mut acquisitions = Acquisitions::default();
            acquisition(&mut acquisitions, LOCK, inside, outside);
            acquisitions.awake(LOCK)
        };
        assert_eq!([knows(2_000, 0), knows(2_000, 4_000)], [Awake::AtMost(1); 2]);
        assert_eq!(
            knows(2_000, 8_000),
            Awake::AtMost(RESERVE + 4),
            "that number is in non-critical sections"
        );
        assert_eq!(knows(600, 600), Awake::AtMost(RESERVE + 1));
        assert_eq!(knows(600, 0), Awake::All, "one after the other goes on for long");
        assert_eq!(knows(200, 200), Awake::All, "a wake-up takes as long as many sections");
        let mut acquisitions = Acquisitions::default();
        assert_eq!(acquisitions.awake(LOCK), Awake::Briefly, "it knows nothing");
        acquisition(&mut acquisitions, LOCK, 2_000, 0);
        assert_eq!(acquisitions.awake(OTHER), Awake::Briefly, "another lock");
        acquisitions.releases_to_wait(LOCK);
        assert_eq!(acquisitions.awake(LOCK), Awake::All, "it waits on conditions");
    }

    #[test]
    fn one_turn_in_many_is_timed_and_the_first_of_each_lock() {
        let mut acquisitions = on_one_lock();
        assert!(acquisitions.wants_time(LOCK, false));
        acquisition(&mut acquisitions, LOCK, 20, 50);
        let timed = (0..10 * ACQUISITIONS_PER_SAMPLE).filter(|_| {
            let wants = acquisitions.wants_time(LOCK, false);
            if wants {
                acquisition(&mut acquisitions, LOCK, 20, 50);
            }
            wants
        });
        assert_eq!(timed.count(), 10);
    }

    /// A thread that backs off has few acquisitions, and each comes after a wait in the queue: 16 of them
    /// take many milliseconds.
    #[test]
    fn each_acquisition_after_a_wait_in_the_queue_is_timed() {
        let mut acquisitions = on_one_lock();
        acquisition(&mut acquisitions, LOCK, 20, 50);
        assert!(!acquisitions.wants_time(LOCK, false) && acquisitions.wants_time(LOCK, true));
        acquisitions.releases_to_wait(LOCK);
        assert!(!acquisitions.wants_time(LOCK, true), "its samples decide nothing now");
    }

    #[test]
    fn a_thread_that_waits_for_one_lock_after_the_other_marks_none() {
        let mut acquisitions = on_one_lock();
        acquisitions.acquired(LOCK, true, 1000);
        acquisitions.released(LOCK, || 1020);
        acquisitions.waits_for(OTHER);
        assert!(
            acquisitions.wants_time(OTHER, true) && !acquisitions.may_set_contended(),
            "the last wait was for another lock"
        );
        acquisitions.returned(LOCK, || 5_000);
        assert_eq!(
            acquisitions.spinning(LOCK, TRANSFER),
            Spinning::Eager,
            "that acquisition is not timed to its end"
        );
        assert!(acquisitions.clears_contended(LOCK), "its contended bit is not left behind");
        acquisitions.waits_for(OTHER);
        assert!(acquisitions.may_set_contended(), "it waits for this one again");
    }

    #[test]
    fn threads_that_wait_on_conditions_do_not_come_back_by_themselves() {
        let mut acquisitions = Acquisitions::default();
        assert!(acquisitions.returns_soon(LOCK, TRANSFER), "it has never waited for the lock");
        acquisition(&mut acquisitions, LOCK, 20, 50);
        acquisitions.releases_to_wait(LOCK);
        assert_eq!(
            (acquisitions.spinning(LOCK, TRANSFER), acquisitions.returns_soon(LOCK, TRANSFER)),
            (Spinning::Eager, false)
        );
        for _ in 0..WAITS_REMEMBERED {
            acquisition(&mut acquisitions, LOCK, 20, 50);
        }
        assert_eq!(
            (acquisitions.spinning(LOCK, TRANSFER), acquisitions.returns_soon(LOCK, TRANSFER)),
            (Spinning::BackOff, true)
        );
    }

    #[test]
    fn a_thread_that_sleeps_elsewhere_first_has_left_waiters_asleep() {
        let mut acquisitions = Acquisitions::default();
        assert_eq!(acquisitions.unwoken_elsewhere(OTHER), None, "it has left none");
        assert!(acquisitions.returns_soon(LOCK, TRANSFER));
        assert_eq!(
            (acquisitions.unwoken_elsewhere(OTHER), acquisitions.unwoken_elsewhere(OTHER)),
            (Some(LOCK), None),
            "once"
        );
        assert!(acquisitions.returns_soon(LOCK, TRANSFER));
        acquisitions.returned(LOCK, || 1000);
        assert_eq!(acquisitions.unwoken_elsewhere(OTHER), None, "it came back first");
        assert!(acquisitions.returns_soon(LOCK, TRANSFER));
        assert_eq!(acquisitions.unwoken_elsewhere(LOCK), None, "it sleeps there itself");
        acquisition(&mut acquisitions, OTHER, 20, 5_000);
        assert!(acquisitions.returns_soon(LOCK, TRANSFER) && !acquisitions.returns_soon(OTHER, TRANSFER));
        assert_eq!(acquisitions.unwoken_elsewhere(OTHER), Some(LOCK), "its waiters still sleep");
    }

    #[test]
    fn a_thread_that_signals_often_goes_on_after_it() {
        let mut acquisitions = Acquisitions::default();
        assert!(!acquisitions.waits_next(LOCK), "it has never waited");
        acquisitions.releases_to_wait(LOCK);
        assert!((0..SIGNALS_PER_WAIT).all(|_| acquisitions.waits_next(LOCK)));
        assert!(!acquisitions.waits_next(LOCK) && !acquisitions.waits_next(OTHER));
        acquisitions.releases_to_wait(LOCK);
        assert!(acquisitions.waits_next(LOCK));
    }

    #[test]
    fn a_mark_made_for_a_sample_ends_with_it() {
        let mut acquisitions = Acquisitions::default();
        acquisitions.acquired(LOCK, true, 1000);
        assert!(!acquisitions.clears_contended(LOCK));
        acquisitions.released(LOCK, || 2000);
        acquisitions.returned(LOCK, || 3000);
        assert!(acquisitions.clears_contended(LOCK));
        assert!(!acquisitions.clears_contended(LOCK), "once");
    }
}
