//! Counters of waiting, a bounded number of them.
//!
//! A series is a lock and a place where threads waited for it. Once it is there, it stays: a counter that goes and
//! comes again has lost what it had counted. So there is room for a number of series, which those get that are seen
//! first, of one interval those with the most waiting; the rest is added to the lock [`OTHER`]. The sum of all is right
//! in any case.

use std::cmp::Reverse;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

use crate::model::{Kind, Lock, Profile, RecordingEnd, Role, ThreadTime};

/// The lock of what has no series of its own.
const OTHER: &str = "other";
/// Characters of a label's value.
const LONGEST: usize = 200;
/// What was folded is counted up to this number; names of locks are remembered for as many.
const REMEMBERED: usize = 1 << 16;

/// Which series: the labels of a wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Wait {
    /// The kind of wait, [`class`].
    pub(super) class: &'static str,
    pub(super) lock: String,
    /// What it is: `mutex`.
    pub(super) kind: String,
    /// Where threads waited.
    pub(super) place: String,
}

/// The labels of what holders did.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Holder {
    pub(super) lock: String,
    pub(super) doing: String,
}

/// All counters of a process.
#[derive(Debug)]
pub struct Metrics {
    limit: usize,
    /// What each series has: the process, and what the user adds.
    pub(super) labels: Vec<(String, String)>,
    /// ns, and, of a recording, how many waits.
    pub(super) waits: BTreeMap<Wait, (u64, u64)>,
    pub(super) holders: BTreeMap<Holder, u64>,
    pub(super) time: ThreadTime,
    pub(super) threads: u64,
    pub(super) is_running: bool,
    /// There will be further figures.
    pub(super) is_sampled: bool,
    /// Snapshots, and CPU time of the sampler; of a process that is sampled.
    pub(super) sampler: Option<(u64, u64)>,
    /// Hashes of the labels of what was folded.
    folded: HashSet<u64>,
    /// Locks without a name are called by where threads wait most, which changes.
    names: HashMap<(u64, Kind), String>,
}

impl Metrics {
    /// Without any series yet. `limit`: their number, of waits and of what holders did together, besides those that
    /// are there in any case. `labels`: what all of them have besides.
    #[must_use]
    pub fn new(limit: usize, labels: Vec<(String, String)>) -> Self {
        Self {
            limit,
            labels,
            waits: BTreeMap::new(),
            holders: BTreeMap::new(),
            time: ThreadTime::default(),
            threads: 0,
            is_running: true,
            is_sampled: true,
            sampler: None,
            folded: HashSet::new(),
            names: HashMap::new(),
        }
    }

    /// How many combinations of lock and place have no series of their own.
    #[must_use]
    pub fn folded(&self) -> usize {
        self.folded.len()
    }

    /// Adds what was waited in an interval, or in a recording.
    pub fn add(&mut self, profile: &Profile) {
        let mut waits: HashMap<Wait, (u64, u64)> = HashMap::new();
        let mut names: HashMap<u32, String> = HashMap::new();
        for lock in &profile.locks {
            let name = self.name(lock);
            for stats in &lock.roles {
                for site in stats.sites.iter().filter(|site| site.wait_total > 0) {
                    let wait = Wait {
                        class: class(lock.kind, stats.role),
                        lock: name.clone(),
                        kind: cut(lock.noun()),
                        place: cut(&profile.call_site_label(site.call_site)),
                    };
                    let sum = waits.entry(wait).or_default();
                    *sum = (sum.0.saturating_add(site.wait_total), sum.1.saturating_add(site.contended));
                }
            }
            names.insert(lock.id, name);
        }
        let mut waits: Vec<(Wait, (u64, u64))> = waits.into_iter().collect();
        waits.sort_by(|one, other| (Reverse(one.1), &one.0).cmp(&(Reverse(other.1), &other.0)));
        for (wait, more) in waits {
            self.add_wait(wait, more);
        }
        for holder in profile.sampling.iter().flat_map(|sampling| &sampling.holders) {
            let Some(lock) = names.get(&holder.lock).filter(|_| holder.time > 0) else { continue };
            self.add_holder(Holder { lock: lock.clone(), doing: cut(&holder.doing) }, holder.time);
        }
        if let Some(observed) = &profile.observed {
            self.time.add(&observed.threads.time);
            self.time.add(&observed.threads.idle_time);
        }
        if let Some(sampling) = &profile.sampling {
            let (snapshots, cost) = self.sampler.unwrap_or_default();
            self.sampler =
                Some((snapshots.saturating_add(sampling.snapshots), cost.saturating_add(sampling.cost)));
        }
        self.is_running = profile.ended == RecordingEnd::Running;
        let living = profile.threads.iter().filter(|thread| !thread.has_ended).count() as u64;
        self.threads = if self.is_running { living } else { 0 };
    }

    /// These are the last figures of a process. Whether it runs, and how many threads it has, stays what it was then.
    pub fn end(&mut self) {
        self.is_sampled = false;
    }

    /// The process has ended; or there is a recording of it, which does not tell what it does now.
    pub fn end_process(&mut self) {
        (self.is_sampled, self.is_running, self.threads) = (false, false, 0);
    }

    /// The name of a lock: without the number that tells locks of one place apart, which is given by their order.
    fn name(&mut self, lock: &Lock) -> String {
        let name = cut(&lock.class());
        if lock.name.is_some() || lock.address == 0 || self.names.len() >= REMEMBERED {
            return name;
        }
        self.names.entry((lock.address, lock.kind)).or_insert(name).clone()
    }

    fn has_room(&self) -> bool {
        self.waits.len() + self.holders.len() < self.limit
    }

    fn add_wait(&mut self, wait: Wait, (time, waits): (u64, u64)) {
        let wait = match self.waits.contains_key(&wait) || self.has_room() {
            true => wait,
            false => {
                self.fold(&wait);
                Wait { lock: OTHER.to_owned(), kind: OTHER.to_owned(), place: OTHER.to_owned(), ..wait }
            }
        };
        let sum = self.waits.entry(wait).or_default();
        *sum = (sum.0.saturating_add(time), sum.1.saturating_add(waits));
    }

    fn add_holder(&mut self, holder: Holder, time: u64) {
        // They leave most of the room to waits.
        let has_room = self.has_room() && self.holders.len() < self.limit / 4;
        let holder = match self.holders.contains_key(&holder) || has_room {
            true => holder,
            false => {
                self.fold(&holder);
                Holder { lock: OTHER.to_owned(), doing: OTHER.to_owned() }
            }
        };
        let sum = self.holders.entry(holder).or_default();
        *sum = sum.saturating_add(time);
    }

    fn fold(&mut self, labels: &impl Hash) {
        let mut hasher = DefaultHasher::new();
        labels.hash(&mut hasher);
        if self.folded.len() < REMEMBERED {
            self.folded.insert(hasher.finish());
        }
    }
}

/// What kind of wait it is: for a lock, for the mutex after a signal, for a signal, for the end of a thread, or for
/// what may be a lock or a signal.
fn class(kind: Kind, role: Role) -> &'static str {
    match role {
        Role::Write | Role::Read => "lock",
        Role::Back | Role::Late => "reacquire",
        Role::Signal if kind == Kind::Join => "thread-end",
        Role::Signal => "signal",
        Role::Wake => "unclear",
    }
}

/// Not longer than a label may be.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallSite, Frame, RoleStats, SiteStats};

    /// A process with one wait of each length for a lock of its own.
    fn profile(waits: &[u64]) -> Profile {
        let frame = |at| Frame { function: Some(format!("f{at}")), ..Frame::default() };
        let site = |at| CallSite { frames: vec![frame(at)], is_cut: false };
        let lock = |(at, wait_total): (usize, &u64)| {
            let site = SiteStats { call_site: at, wait_total: *wait_total, ..SiteStats::default() };
            let stats = RoleStats { sites: vec![site], ..RoleStats::default() };
            Lock { id: at as u32, label: format!("lock{at}x"), roles: vec![stats], ..Lock::default() }
        };
        Profile {
            call_sites: (0..waits.len()).map(site).collect(),
            locks: waits.iter().enumerate().map(lock).collect(),
            ended: RecordingEnd::Running,
            ..Profile::default()
        }
    }

    fn of(metrics: &Metrics, lock: &str) -> Option<u64> {
        metrics.waits.iter().find(|(wait, _)| wait.lock == lock).map(|(_, (time, _))| *time)
    }

    #[test]
    fn the_number_of_series_is_bounded_and_none_goes() {
        let mut metrics = Metrics::new(2, Vec::new());
        metrics.add(&profile(&[1, 20, 300]));
        assert_eq!([of(&metrics, "lock2x"), of(&metrics, "lock1x")], [Some(300), Some(20)]);
        assert_eq!((of(&metrics, OTHER), metrics.folded()), (Some(1), 1));
        // It comes late, and is large: those that are there keep their series.
        metrics.add(&profile(&[5_000, 0, 1]));
        assert_eq!([of(&metrics, "lock2x"), of(&metrics, "lock1x")], [Some(301), Some(20)]);
        assert_eq!((of(&metrics, OTHER), metrics.folded()), (Some(5_001), 1));
        assert_eq!(metrics.waits.values().map(|(time, _)| time).sum::<u64>(), 5_322);
    }

    #[test]
    fn a_lock_without_a_name_keeps_what_it_was_called_first() {
        let mut first = profile(&[5]);
        first.locks[0].address = 0x40;
        let mut second = first.clone();
        second.locks[0].label = String::from("in g");
        let mut metrics = Metrics::new(10, Vec::new());
        metrics.add(&first);
        metrics.add(&second);
        assert_eq!((of(&metrics, "lock0x"), metrics.waits.len()), (Some(10), 1));
    }

    #[test]
    fn labels_are_cut() {
        assert_eq!(cut(&"ä".repeat(LONGEST)).chars().count(), LONGEST);
        assert_eq!(cut(&"ä".repeat(LONGEST + 5)).chars().count(), LONGEST + 1);
    }
}
