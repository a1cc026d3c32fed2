//! What a recording says, read with the recorder's own view: as raw as it is, added up over threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use spinpark_recorder::format::{Entry, Held, Kind, LockStats, RegionId, Role, View};

/// Tests of `Fn(&Path, Configuration)`, each with glibc's locks and with spinpark's, and with a directory to
/// record into.
#[macro_export]
macro_rules! both_configurations {
    ($($name:ident = $body:expr;)*) => {$(
        mod $name {
            use super::*;
            fn check(configuration: $crate::Configuration) {
                let directory = tempfile::tempdir().expect("a directory");
                let body: fn(&std::path::Path, $crate::Configuration) = $body;
                body(directory.path(), configuration);
            }
            #[test] fn glibc() { check($crate::Configuration::Glibc); }
            #[test] fn spinpark() { check($crate::Configuration::Spinpark); }
        }
    )*};
}

/// How long something was held, in all threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holds {
    /// How many times.
    pub count: u64,
    /// ns.
    pub total: f64,
    /// ns.
    pub longest: f64,
    /// ns².
    pub squares: f64,
}

/// The use of a lock in a role, or of it at one place.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "see `LockStats`; times in ns")]
pub struct Use {
    pub acquisitions: u64,
    pub contended: u64,
    pub failed_tries: u64,
    pub waited: f64,
    pub longest_wait: f64,
    pub wake_ups: u64,
    pub longest_queue: u64,
    pub outcomes: [u64; 8],
    pub held_after_wait: Holds,
    pub held: Holds,
    pub waits: u64,
    pub holds: u64,
    pub hold_bins: Vec<u64>,
    /// µs.
    pub strip: u64,
    /// Non-critical sections before: how many, ns.
    pub non_critical: (u64, f64),
}

/// Waits for a holder: lock, role, waiter's and holder's stacks.
pub type Pair = (u32, u32, u32, u32);

/// A lock.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "see `Lock`")]
pub struct Lock {
    pub number: u32,
    pub kind: Kind,
    pub address: u64,
    pub is_created: bool,
    pub is_destroyed: bool,
    pub stack: u32,
}

/// A recording.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "see `Header`")]
pub struct Recording {
    pub pid: u32,
    /// ns since 1970.
    pub start_realtime: u64,
    pub exited: bool,
    pub dropped: u64,
    /// By region, in their order.
    pub dropped_by_region: Vec<u32>,
    pub nested: u64,
    pub cpus: u32,
    pub locks_of: u32,
    pub threads: Vec<(u32, String, u32)>,
    /// Acquisitions over time, all together.
    pub activity: u64,
    /// Of `threads`, those that had ended when the process exited.
    pub ended: usize,
    pub locks: Vec<Lock>,
    /// By lock and role.
    pub uses: BTreeMap<(u32, u32), Use>,
    /// By lock, role and stack.
    pub sites: BTreeMap<(u32, u32, u32), Use>,
    /// The number of waits, and their sum in ns.
    pub pairs: BTreeMap<Pair, (u64, f64)>,
    /// The same with another lock held: lock, role, the other lock; and for how long others waited for that
    /// one meanwhile, ns.
    pub held_waits: BTreeMap<(u32, u32, u32), (u64, f64, f64)>,
    /// Acquisitions with another lock held, by lock, role and outer lock: how many, ns held.
    pub nests: BTreeMap<(u32, u32, u32), (u64, f64)>,
    /// Return addresses.
    pub stacks: BTreeMap<u32, Vec<u64>>,
    pub maps: String,
}

/// The recordings in a directory.
///
/// # Panics
/// If it cannot be read.
pub fn recordings(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory of recordings");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "spinprof")).collect();
    paths.sort();
    paths
}

/// What the recordings in `directory` say.
///
/// # Panics
/// If one cannot be read.
pub fn read_all(directory: &Path) -> Vec<Recording> {
    recordings(directory).iter().map(|path| Recording::read(path)).collect()
}

impl Recording {
    /// Reads a recording; its file may be in use.
    ///
    /// # Panics
    /// If it is none.
    pub fn read(path: &Path) -> Recording {
        let file = std::fs::File::open(path).expect("a recording");
        let bytes = usize::try_from(file.metadata().expect("a file").len()).expect("a length");
        // SAFETY: a new mapping, of a file that recorders only make longer.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::SHARED,
                &file,
                0,
            )
        }
        .expect("it can be mapped");
        // SAFETY: mapped, at the start of a page, until the end of this function.
        let view = unsafe { View::new(start.cast(), bytes) }.expect("a profile");
        let recording = Recording::of(view);
        // SAFETY: mapped above, and not used any more.
        unsafe { rustix::mm::munmap(start, bytes) }.expect("a mapping");
        recording
    }

    fn of(view: View<'_>) -> Recording {
        let header = view.header();
        let tick = header.tick as f64 / 4_294_967_296.0;
        let mut all = Recording {
            pid: header.pid,
            start_realtime: header.start_realtime,
            exited: header.exited.load(Relaxed) != 0,
            dropped: header.dropped(),
            dropped_by_region: header.regions.iter().map(|region| region.dropped.load(Relaxed)).collect(),
            nested: header.nested.load(Relaxed),
            cpus: header.cpus,
            locks_of: header.locks,
            maps: String::from_utf8_lossy(&view.maps().collect::<Vec<_>>().concat()).into_owned(),
            ..Recording::default()
        };
        for (_, thread) in view.threads() {
            let name = thread.name.iter().take_while(|byte| **byte != 0);
            let name = name.map(|byte| char::from(*byte)).collect();
            all.ended += thread.ended.load(Relaxed) as usize;
            all.activity +=
                thread.activity.waited.iter().map(|part| u64::from(part.load(Relaxed))).sum::<u64>();
            all.threads.push((thread.id.load(Relaxed), name, thread.users.load(Relaxed)));
        }
        for (number, lock) in view.locks() {
            all.locks.push(Lock {
                number,
                kind: Kind::from_number(lock.kind.load(Relaxed)).expect("a kind"),
                address: lock.address,
                is_created: lock.is_created != 0,
                is_destroyed: lock.destroyed.load(Relaxed) != 0,
                stack: lock.stack.load(Relaxed),
            });
        }
        for (number, stack) in view.stacks() {
            all.stacks.insert(number, stack.frames[..stack.depth as usize].to_vec());
        }
        assert!(header.regions[RegionId::Stacks as usize].used.load(Relaxed) >= all.stacks.len() as u32);
        for (_, entry) in view.entries() {
            match entry {
                Entry::Lock(stats) => all.add_lock(stats, tick),
                Entry::Site(stats) => {
                    let key = (stats.head.lock, stats.head.role, stats.stack);
                    let all = all.sites.entry(key).or_default();
                    all.acquisitions += stats.acquisitions.load(Relaxed);
                    all.contended += stats.contended.load(Relaxed);
                    all.waited += stats.waited.load(Relaxed) as f64 * tick;
                    all.longest_wait = all.longest_wait.max(stats.longest_wait.load(Relaxed) as f64 * tick);
                    all.held_after_wait.add(&stats.held_after_wait, tick);
                    all.held.add(&stats.held, tick);
                }
                Entry::Pair(stats) => {
                    let key = (stats.head.lock, stats.head.role, stats.waiter, stats.holder);
                    let pair = all.pairs.entry(key).or_default();
                    pair.0 += stats.count.load(Relaxed);
                    pair.1 += stats.waited.load(Relaxed) as f64 * tick;
                }
                Entry::HeldWait(stats) => {
                    let key = (stats.head.lock, stats.head.role, stats.outer);
                    let waits = all.held_waits.entry(key).or_default();
                    waits.0 += stats.count.load(Relaxed);
                    waits.1 += stats.waited.load(Relaxed) as f64 * tick;
                    waits.2 += stats.blocked.load(Relaxed) as f64 * tick;
                }
                Entry::Nest(stats) => {
                    let key = (stats.head.lock, stats.head.role, stats.outer);
                    let nest = all.nests.entry(key).or_default();
                    nest.0 += stats.count.load(Relaxed);
                    nest.1 += stats.held.load(Relaxed) as f64 * tick;
                }
            }
        }
        all
    }

    fn add_lock(&mut self, stats: &LockStats, tick: f64) {
        let all = self.uses.entry((stats.head.lock, stats.head.role)).or_default();
        all.acquisitions += stats.acquisitions.load(Relaxed);
        all.contended += stats.contended.load(Relaxed);
        all.failed_tries += stats.failed_tries.load(Relaxed);
        all.waited += stats.waited.load(Relaxed) as f64 * tick;
        all.longest_wait = all.longest_wait.max(stats.longest_wait.load(Relaxed) as f64 * tick);
        all.wake_ups += stats.wake_ups.load(Relaxed);
        all.longest_queue = all.longest_queue.max(stats.longest_queue.load(Relaxed));
        for (all, one) in all.outcomes.iter_mut().zip(&stats.outcomes) {
            *all += one.load(Relaxed);
        }
        all.held_after_wait.add(&stats.held_after_wait, tick);
        all.held.add(&stats.held, tick);
        all.waits += stats.waits.iter().map(|bin| u64::from(bin.load(Relaxed))).sum::<u64>();
        all.hold_bins.resize(stats.holds.len(), 0);
        for (all, one) in all.hold_bins.iter_mut().zip(&stats.holds) {
            *all += u64::from(one.load(Relaxed));
        }
        all.holds = all.hold_bins.iter().sum();
        all.non_critical.0 +=
            stats.non_critical_lengths.iter().map(|bin| u64::from(bin.load(Relaxed))).sum::<u64>();
        all.non_critical.1 += stats.non_critical.load(Relaxed) as f64 * tick;
        all.strip += stats.strip.waited.iter().map(|part| u64::from(part.load(Relaxed))).sum::<u64>();
    }

    /// The use of the living lock at `address` in a role; zeros if there is none.
    pub fn use_of(&self, address: u64, role: Role) -> Use {
        let lock = self.locks.iter().find(|lock| lock.address == address && !lock.is_destroyed);
        lock.and_then(|lock| self.uses.get(&(lock.number, role as u32))).cloned().unwrap_or_default()
    }
}

impl Holds {
    fn add(&mut self, held: &Held, tick: f64) {
        self.count += held.count.load(Relaxed);
        self.total += held.total.load(Relaxed) as f64 * tick;
        self.longest = self.longest.max(held.longest.load(Relaxed) as f64 * tick);
        self.squares += f64::from_bits(held.squares.load(Relaxed)) * tick * tick;
    }
}
