//! The tables of all threads added up: still in ticks, and with numbers of records.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use spinpark_recorder::format::{
    self, BINS, Entry, HeldWaitStats, LockStats, NONE, PairStats, Role, STRIP, SiteStats, View,
};

use super::meaning::Meanings;
use super::sampled_time::SampledTime;
use crate::model::Activity;

/// A lock in a role.
pub(super) type Use = (u32, Role);

/// Everything that threads counted.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// By lock and role.
    pub(super) locks: BTreeMap<Use, LockSum>,
    /// By lock and role, and stack.
    pub(super) sites: BTreeMap<(Use, u32), SiteSum>,
    /// Waits and their time, by thread table, lock and role, and stack.
    pub(super) by_thread: BTreeMap<(u32, Use, u32), (u64, u64)>,
    /// By lock and role, and the stacks of waiter and holder.
    pub(super) pairs: BTreeMap<(Use, u32, u32), PairSum>,
    /// By lock and role, and the lock that the waiter had meanwhile, and how.
    pub(super) held_waits: BTreeMap<(Use, u32, How), HeldSum>,
    /// By lock and role, and the lock that its owner had meanwhile, and its role: acquisitions, ticks waited,
    /// ticks held.
    pub(super) nests: BTreeMap<(Use, Use), [u64; 3]>,
    /// By condition variable and table: signals sent, and those of them that were for all waiters.
    pub(super) signals: BTreeMap<(u32, u32), (u64, u64)>,
    /// By table: time waited for signals; and for the ends of threads, and what may be a lock or a signal.
    pub(super) not_locks: BTreeMap<u32, (u64, u64)>,
    /// By lock and table: stacks on which its threads released the lock to waiters without having noted where
    /// they took it, and how often.
    pub(super) released: BTreeMap<(u32, u32), BTreeMap<u32, u64>>,
    /// The same of those on which its threads took it.
    pub(super) taken: BTreeMap<(u32, u32), BTreeMap<u32, u64>>,
    /// Entries that make no sense, or name a lock that is not in the file.
    pub(super) junk: u64,
}

#[derive(Debug, Default)]
pub(super) struct LockSum {
    pub(super) acquisitions: u64,
    pub(super) contended: u64,
    pub(super) failed_tries: u64,
    pub(super) waited: u64,
    pub(super) longest_wait: u64,
    pub(super) wake_ups: u64,
    pub(super) longest_queue: u64,
    pub(super) outcomes: [u64; 8],
    /// Waits that had not ended.
    pub(super) still_waiting: u64,
    pub(super) held_after_wait: SampledTime,
    pub(super) held: SampledTime,
    pub(super) held_waited: u64,
    pub(super) free: u64,
    pub(super) unsplit: u64,
    pub(super) watched: u64,
    pub(super) no_cpu: u64,
    pub(super) waits: Vec<u64>,
    pub(super) holds: Vec<u64>,
    pub(super) non_critical: u64,
    pub(super) non_critical_lengths: Vec<u64>,
    pub(super) strip: StripSum,
    /// Variances of `acquisitions`, `contended` and `waited`.
    pub(super) spread: [f64; 3],
}

#[derive(Debug, Default)]
pub(super) struct SiteSum {
    pub(super) acquisitions: u64,
    pub(super) contended: u64,
    pub(super) waited: u64,
    pub(super) longest_wait: u64,
    pub(super) held: SampledTime,
}

/// In which role a lock was held, and whether the wait for another one had a deadline.
pub(super) type How = (Role, bool);

/// Waits while holding another lock, and the waiters' tables.
#[derive(Debug, Default)]
pub(super) struct HeldSum {
    pub(super) waits: PairSum,
    /// For how long others waited meanwhile.
    pub(super) blocked: u64,
    pub(super) tables: BTreeSet<u32>,
}

#[derive(Debug, Default)]
pub(super) struct PairSum {
    pub(super) count: u64,
    pub(super) waited: u64,
    pub(super) longest_wait: u64,
    pub(super) free: u64,
}

/// µs waited by part; part *n* starts at `n << shift` µs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StripSum {
    pub(super) shift: u32,
    pub(super) waited: Vec<u64>,
}

/// The record that counts of each lock, by number: that of a lock which has two. No recorder writes such a
/// thing, but files are not trusted.
pub(super) fn same_locks(view: View<'_>) -> HashMap<u32, u32> {
    let mut living: HashMap<(u64, u32), u32> = HashMap::new();
    let mut same = HashMap::new();
    for (number, lock) in view.locks() {
        let destroyed = lock.destroyed.load(Relaxed) != 0;
        let counts = if destroyed {
            number
        } else {
            *living.entry((lock.key, lock.kind.load(Relaxed))).or_insert(number)
        };
        same.insert(number, counts);
    }
    same
}

impl Tables {
    /// Adds up all entries of all threads.
    pub(super) fn new(view: View<'_>, same: &HashMap<u32, u32>, meanings: &Meanings) -> Self {
        let mut tables = Self::default();
        for (table, entry) in view.entries() {
            let head = match entry {
                Entry::Lock(stats) => &stats.head,
                Entry::Site(stats) => &stats.head,
                Entry::Pair(stats) => &stats.head,
                Entry::HeldWait(stats) => &stats.head,
                Entry::Nest(stats) => &stats.head,
            };
            let (Some(lock), Some(role)) = (same.get(&head.lock), Role::from_number(head.role)) else {
                tables.junk += 1;
                continue;
            };
            let role = meanings.role(head.lock, role);
            let which = (*lock, role);
            match entry {
                Entry::Lock(stats) => {
                    if role == Role::Signal {
                        let sums = tables.signals.entry((*lock, table)).or_default();
                        sums.0 = sums.0.saturating_add(stats.wake_ups.load(Relaxed));
                        sums.1 = sums.1.saturating_add(stats.broadcasts.load(Relaxed));
                    }
                    let sum = tables.locks.entry(which).or_default();
                    sum.add(stats);
                    if meanings.is_slept_for(head.lock) {
                        sum.never_free();
                    }
                    let (signals, others) = tables.not_locks.entry(table).or_default();
                    let sum = match role {
                        Role::Signal if !meanings.is_join(head.lock) => signals,
                        Role::Signal | Role::Wake => others,
                        _ => continue,
                    };
                    *sum = sum.saturating_add(stats.waited.load(Relaxed));
                }
                Entry::Site(stats) => {
                    let (released, taken) = (stats.released.load(Relaxed), stats.acquisitions.load(Relaxed));
                    for (sums, number) in [(&mut tables.released, released), (&mut tables.taken, taken)] {
                        if number > 0 {
                            let of = sums.entry((*lock, table)).or_default();
                            *of.entry(stats.stack).or_default() += number;
                        }
                    }
                    tables.sites.entry((which, stats.stack)).or_default().add(stats);
                    let sum = tables.by_thread.entry((table, which, stats.stack)).or_default();
                    sum.0 = sum.0.saturating_add(stats.contended.load(Relaxed));
                    sum.1 = sum.1.saturating_add(stats.waited.load(Relaxed));
                }
                // The time after the release is no one's there.
                Entry::Pair(stats) if meanings.is_slept_for(head.lock) => {
                    let mut sum = PairSum::default();
                    sum.add(stats);
                    let free = std::mem::take(&mut sum.free);
                    sum.waited = sum.waited.saturating_sub(free);
                    tables.pairs.entry((which, stats.waiter, stats.holder)).or_default().merge(&sum);
                    let rest = PairSum { waited: free, ..PairSum::default() };
                    tables.pairs.entry((which, stats.waiter, NONE)).or_default().merge(&rest);
                }
                Entry::Pair(stats) => {
                    tables.pairs.entry((which, stats.waiter, stats.holder)).or_default().add(stats);
                }
                Entry::HeldWait(stats) => {
                    let held_as = Role::from_number(stats.how & !HeldWaitStats::TIMED);
                    let (Some(outer), Some(held_as)) = (same.get(&stats.outer), held_as) else {
                        tables.junk += 1;
                        continue;
                    };
                    let how = (held_as, stats.how & HeldWaitStats::TIMED != 0);
                    let sum = tables.held_waits.entry((which, *outer, how)).or_default();
                    sum.waits.add_held_wait(stats);
                    sum.blocked = sum.blocked.saturating_add(stats.blocked.load(Relaxed));
                    sum.tables.insert(table);
                }
                Entry::Nest(stats) => {
                    let (Some(outer), Some(held_as)) =
                        (same.get(&stats.outer), Role::from_number(stats.outer_role))
                    else {
                        tables.junk += 1;
                        continue;
                    };
                    let sums = tables.nests.entry((which, (*outer, held_as))).or_default();
                    for (sum, number) in sums.iter_mut().zip([&stats.count, &stats.waited, &stats.held]) {
                        *sum = sum.saturating_add(number.load(Relaxed));
                    }
                }
            }
        }
        tables
    }
}

fn sampled(held: &format::Held) -> SampledTime {
    SampledTime {
        count: held.count.load(Relaxed),
        total: held.total.load(Relaxed),
        longest: held.longest.load(Relaxed),
        squares: f64::from_bits(held.squares.load(Relaxed)),
    }
}

fn add_all(sums: &mut Vec<u64>, numbers: &[AtomicU32; BINS]) {
    sums.resize(BINS, 0);
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum = sum.saturating_add(u64::from(number.load(Relaxed)));
    }
}

impl LockSum {
    fn add(&mut self, stats: &LockStats) {
        let sums = [
            (&mut self.acquisitions, &stats.acquisitions),
            (&mut self.contended, &stats.contended),
            (&mut self.failed_tries, &stats.failed_tries),
            (&mut self.waited, &stats.waited),
            (&mut self.wake_ups, &stats.wake_ups),
            (&mut self.held_waited, &stats.held_waited),
            (&mut self.free, &stats.free),
            (&mut self.unsplit, &stats.unsplit),
            (&mut self.watched, &stats.watched),
            (&mut self.no_cpu, &stats.no_cpu),
            (&mut self.non_critical, &stats.non_critical),
        ];
        for (sum, number) in sums.into_iter().chain(self.outcomes.iter_mut().zip(&stats.outcomes)) {
            *sum = sum.saturating_add(number.load(Relaxed));
        }
        self.longest_wait = self.longest_wait.max(stats.longest_wait.load(Relaxed));
        self.longest_queue = self.longest_queue.max(stats.longest_queue.load(Relaxed));
        self.held_after_wait = self.held_after_wait.and(sampled(&stats.held_after_wait));
        self.held = self.held.and(sampled(&stats.held));
        add_all(&mut self.waits, &stats.waits);
        add_all(&mut self.holds, &stats.holds);
        add_all(&mut self.non_critical_lengths, &stats.non_critical_lengths);
        self.strip.add(&StripSum::new(&stats.strip));
        let spread = [&stats.spread.acquisitions, &stats.spread.contended, &stats.spread.waited];
        for (sum, bits) in self.spread.iter_mut().zip(spread) {
            // Files are not trusted.
            *sum += Some(f64::from_bits(bits.load(Relaxed)))
                .filter(|more| more.is_finite())
                .map_or(0.0, |more| more.max(0.0));
        }
    }
}

impl LockSum {
    /// Acquisitions without a wait are not seen: from a release on it is not known whether the lock is free.
    fn never_free(&mut self) {
        self.unsplit = self.unsplit.saturating_add(std::mem::take(&mut self.free));
    }

    /// A wait that had not ended at `end`, ns after the start.
    pub(super) fn still_waits(&mut self, ticks: u64, ns: u64, end: u64) {
        self.contended += 1;
        self.still_waiting += 1;
        self.waited = self.waited.saturating_add(ticks);
        self.longest_wait = self.longest_wait.max(ticks);
        self.waits.resize(BINS, 0);
        self.waits[((ns | 1).ilog2() as usize).min(BINS - 1)] += 1;
        self.strip.add(&StripSum::of_one(end / 1_000, ns / 1_000));
    }
}

impl SiteSum {
    pub(super) fn still_waits(&mut self, ticks: u64) {
        self.contended += 1;
        self.waited = self.waited.saturating_add(ticks);
        self.longest_wait = self.longest_wait.max(ticks);
    }

    fn add(&mut self, stats: &SiteStats) {
        self.acquisitions = self.acquisitions.saturating_add(stats.acquisitions.load(Relaxed));
        self.contended = self.contended.saturating_add(stats.contended.load(Relaxed));
        self.waited = self.waited.saturating_add(stats.waited.load(Relaxed));
        self.longest_wait = self.longest_wait.max(stats.longest_wait.load(Relaxed));
        self.held = self.held.and(sampled(&stats.held_after_wait)).and(sampled(&stats.held));
    }

    /// Nothing is known of it but that locks were released there.
    pub(super) fn is_empty(&self) -> bool {
        self.acquisitions == 0 && self.contended == 0
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.acquisitions += other.acquisitions;
        self.contended += other.contended;
        self.waited = self.waited.saturating_add(other.waited);
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.held = self.held.and(other.held);
    }
}

impl PairSum {
    pub(super) fn still_waits(&mut self, ticks: u64) {
        self.merge(&Self { count: 1, waited: ticks, longest_wait: ticks, free: 0 });
    }

    fn add(&mut self, stats: &PairStats) {
        self.merge(&Self {
            count: stats.count.load(Relaxed),
            waited: stats.waited.load(Relaxed),
            longest_wait: stats.longest_wait.load(Relaxed),
            free: stats.free.load(Relaxed),
        });
    }

    fn add_held_wait(&mut self, stats: &HeldWaitStats) {
        self.merge(&Self {
            count: stats.count.load(Relaxed),
            waited: stats.waited.load(Relaxed),
            longest_wait: stats.longest_wait.load(Relaxed),
            free: 0,
        });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.waited = self.waited.saturating_add(other.waited);
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.free = self.free.saturating_add(other.free);
    }
}

impl StripSum {
    /// The strip of one wait: `us` µs, ended `at` µs after the start.
    fn of_one(at: u64, us: u64) -> Self {
        let shift = (0..36).find(|shift| at >> shift < STRIP as u64).unwrap_or(36);
        let mut waited = vec![0; STRIP];
        waited[((at >> shift) as usize).min(STRIP - 1)] = us;
        Self { shift, waited }
    }

    pub(super) fn new(strip: &format::Strip) -> Self {
        let waited = strip.waited.iter().map(|waited| u64::from(waited.load(Relaxed))).collect();
        // A strip of 64 parts of 2^36 µs is a century long.
        Self { shift: strip.shift.load(Relaxed).min(36), waited }
    }

    /// Adds another one; the one with the finer parts is made coarser.
    pub(super) fn add(&mut self, other: &Self) {
        if other.waited.iter().all(|waited| *waited == 0) {
            return;
        }
        if self.waited.is_empty() {
            *self = other.clone();
            return;
        }
        let shift = self.shift.max(other.shift);
        let mut sum = Self { shift, waited: vec![0; STRIP] };
        for strip in [&*self, other] {
            for (part, waited) in strip.waited.iter().enumerate() {
                sum.waited[part >> (shift - strip.shift)] += waited;
            }
        }
        *self = sum;
    }

    /// Numbers of acquisitions, as the model has them; without the empty parts at the end.
    pub(super) fn activity(&self) -> Activity {
        let used = self.waited.iter().rposition(|number| *number > 0).map_or(0, |last| last + 1);
        Activity { part: 1_000 << self.shift, acquisitions: self.waited[..used].to_vec() }
    }

    /// The same back.
    pub(super) fn of_activity(activity: &Activity) -> Self {
        let mut waited = activity.acquisitions.clone();
        waited.resize(STRIP, 0);
        Self { shift: (activity.part / 1_000).max(1).ilog2(), waited }
    }

    /// Both together.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    /// As the model has it; without the empty parts at the end.
    pub(super) fn shown(&self) -> crate::model::Strip {
        let used = self.waited.iter().rposition(|waited| *waited > 0).map_or(0, |last| last + 1);
        let waited = self.waited[..used].iter().map(|waited| waited * 1_000).collect();
        crate::model::Strip { part: 1_000 << self.shift, waited }
    }

    /// The start of the last part with waiting: ns after the start of the recording.
    pub(super) fn until(&self) -> u64 {
        let last = self.waited.iter().rposition(|waited| *waited > 0).unwrap_or(0) as u64;
        last * (1_000 << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(shift: u32, numbers: &[u64]) -> StripSum {
        let mut waited = numbers.to_vec();
        waited.resize(STRIP, 0);
        StripSum { shift, waited }
    }

    #[test]
    fn strips_of_different_parts() {
        let mut sum = strip(1, &[1, 2, 3, 4, 5]);
        sum.add(&strip(3, &[10, 20]));
        assert_eq!(sum, strip(3, &[20, 25]));
        sum.add(&strip(7, &[]));
        assert_eq!(sum.shift, 3, "an empty one changes nothing");
        let shown = sum.shown();
        assert_eq!((shown.part, shown.waited), (8_000, vec![20_000, 25_000]));
        assert_eq!(sum.until(), 8_000);
        let mut nothing = StripSum::default();
        nothing.add(&sum);
        assert_eq!(nothing, sum);
        assert!(StripSum::default().shown().waited.is_empty());
    }
}
