//! What limits a run: the answer that stands above all figures.
//!
//! It is found from where the threads' time went. A lock limits if a good part of their time is waiting for
//! it. Which part of it does is found from where the lock's own time went: if it is held for longer than it
//! is free although a thread wants it, the sections themselves are the limit, or waits for a CPU inside; if
//! not, what its next owner is kept by is.

mod lock;

use serde::Serialize;
use spinpark_sim::workload::Place;

pub use self::lock::{Causes, Lock, Mostly};
use super::summary::Summary;

/// A thread that waits for less than this part of its time is not limited by locks.
const WAITS: f64 = 0.15;
/// A lock at which fewer acquisitions than this find it taken is not contended.
const CONTENDED: f64 = 0.1;
/// A lock that fewer find taken keeps no thread waiting.
const NEVER: f64 = 0.01;
/// With fewer moves of lines for each acquisition than this, they are not why it takes long.
const MOVES: f64 = 0.5;
/// The same where no thread finds the lock taken.
const FEW_MOVES: f64 = 0.02;
/// A lock that is held for this part of the time has hardly anything to gain.
const HELD: f64 = 0.75;
/// Owners that wait for a CPU for this part of the time of their holds are what limits.
const OFF_CPU: f64 = 0.5;
/// If so many acquisitions do not wait though others do, the threads that are awake keep the lock to
/// themselves.
const BARGING: f64 = 0.8;
/// Threads that are awake keep a lock to themselves only if others sleep for this part of the time.
const OTHERS_SLEEP: f64 = 0.1;
/// CPUs that are busy for this part of the time are the limit, if threads wait for them.
const BUSY: f64 = 0.9;

/// What limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    /// The run failed.
    Failure {
        /// Of which seed.
        seed: u64,
        /// How.
        what: String,
    },
    /// Nothing can be said: no operation ended within the run's time.
    TooShort {
        /// The run's time, ns.
        for_ns: u64,
    },
    /// A lock, by the sections under it.
    Held {
        /// Which place.
        place: String,
        /// For which part of the time it was held.
        held: f64,
        /// For which part of it by readers.
        readers: f64,
        /// Which part of the acquisitions found it taken, or others waiting for it.
        contended: f64,
        /// Mean wait, ns.
        wait_ns: f64,
        /// For which part of the time it was free, and wanted.
        wanted: f64,
        /// What its next owner was kept by then, for most of it.
        mostly: Mostly,
        /// All that it was kept by.
        causes: Causes,
    },
    /// Owners of a lock that could go on, and have no CPU.
    OffCpu {
        /// Which place.
        place: String,
        /// For which part of the time it was held.
        held: f64,
        /// Which part of that its owner waited for a CPU.
        off_cpu: f64,
    },
    /// A lock, by the way from one owner to the next.
    HandOver {
        /// Which place.
        place: String,
        /// For which part of the time it was held.
        held: f64,
        /// Which part of the acquisitions found it taken, or others waiting for it.
        contended: f64,
        /// Mean time between two holds, ns.
        gap_ns: f64,
        /// Mean hold, ns.
        hold_ns: f64,
        /// For which part of the time it was free, and wanted.
        wanted: f64,
        /// What its next owner was kept by then, for most of it.
        mostly: Mostly,
        /// All that it was kept by.
        causes: Causes,
    },
    /// Nothing but the few threads that are awake: they come back for a lock before the others have woken up.
    Barging {
        /// Which place.
        place: String,
        /// For which part of the time it was held.
        held: f64,
        /// Which part of the acquisitions took it at once, though others waited.
        at_once: f64,
        /// Which part of the threads' time they sleep.
        asleep: f64,
    },
    /// Readers wait for writers.
    Readers {
        /// Which place.
        place: String,
        /// For which part of the time writers held it.
        held: f64,
        /// Which part of the acquisitions found it taken, or others waiting for it.
        contended: f64,
        /// Mean wait, ns.
        wait_ns: f64,
    },
    /// The lock is free, but its cache lines have to come from other cores.
    Lines {
        /// Which place.
        place: String,
        /// Mean time of an acquisition, ns.
        wait_ns: f64,
        /// Lines moved for each acquisition.
        moves: f64,
    },
    /// The CPUs.
    Cpus {
        /// Which part of their time they are busy.
        busy: f64,
        /// Which part of the threads' time is waiting for a CPU.
        runnable: f64,
        /// Which part is polling.
        spinning: f64,
    },
    /// Threads that are on their way to a CPU that has time for them, and no lock: in a condition variable,
    /// for example.
    WakeUps {
        /// Which part of their time they are on their way.
        runnable: f64,
        /// Which part they sleep.
        asleep: f64,
        /// Which part of their time CPUs are busy.
        busy: f64,
    },
    /// Nothing but the work.
    Work {
        /// Which part of the threads' time is work.
        working: f64,
    },
    /// Threads sleep for other reasons than a lock: in a condition variable, for example.
    Sleep {
        /// Which part of the threads' time they sleep.
        asleep: f64,
    },
}

impl Limit {
    /// What limits these runs.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        if let Some((seed, failure)) = &summary.failure {
            return Self::Failure { seed: *seed, what: failure.to_string() };
        }
        if summary.throughput.high == 0.0 {
            return Self::TooShort { for_ns: summary.for_ns };
        }
        let threads_ns = summary.measured_ns as f64 * f64::from(summary.threads);
        let waits = |place: &Place| place.in_time.wait_ns / threads_ns.max(1.0);
        let worst = summary.places.iter().max_by(|a, b| a.in_time.wait_ns.total_cmp(&b.in_time.wait_ns));
        let time = &summary.time;
        let has_no_cpus = summary.utilisation >= BUSY && time.runnable >= CONTENDED;
        if let Some(place) = worst.filter(|place| waits(place) >= WAITS) {
            let limit = of_place(summary, place);
            // The next owner is kept by nothing but a lack of CPUs; or CPUs have work enough of the threads
            // that are awake. Then no lock limits.
            let works = time.spinning < CONTENDED * (1.0 - time.asleep);
            let is_of_cpus = match limit {
                Some(Self::HandOver { mostly: Mostly::Cpus, .. }) => has_no_cpus,
                Some(Self::Barging { .. }) => has_no_cpus && works,
                _ => false,
            };
            if let Some(limit) = limit.filter(|_| !is_of_cpus) {
                return limit;
            }
        }
        if has_no_cpus {
            let (runnable, spinning) = (time.runnable, time.spinning);
            return Self::Cpus { busy: summary.utilisation, runnable, spinning };
        }
        // If it is a lock on which they sleep, they have no other reason.
        let is_why = |place: &&Place| time.asleep >= 0.5 && waits(place) >= time.asleep / 2.0;
        if let Some(place) = worst.filter(is_why) {
            return of_owners(summary, place);
        }
        if time.working < 0.5 && time.runnable >= WAITS && time.runnable + time.asleep >= time.working {
            let (runnable, asleep) = (time.runnable, time.asleep);
            return Self::WakeUps { runnable, asleep, busy: summary.utilisation };
        }
        match time.asleep < 0.5 {
            true => Self::Work { working: time.working },
            false => Self::Sleep { asleep: time.asleep },
        }
    }
}

fn of_place(summary: &Summary, place: &Place) -> Option<Limit> {
    let acquisitions = place.acquisitions.max(1) as f64;
    let contended = place.contended as f64 / acquisitions;
    let wait_ns = place.wait_ns / acquisitions;
    let name = place.name.clone();
    if contended < CONTENDED {
        // Few have to wait, but for long.
        if let Some(limit) = of_preempted(&Lock::of(summary, place)) {
            return Some(limit);
        }
        let moves = summary.per_acquisition(summary.counts.moves());
        // If no thread finds it taken, what an acquisition takes for long is its lines; a few that move by
        // turns are enough.
        let least = if contended < NEVER { FEW_MOVES } else { MOVES };
        return (moves >= least).then_some(Limit::Lines { place: name, wait_ns, moves });
    }
    Some(of_owners(summary, place))
}

/// A lock whose owners wait for a CPU most of the time that they have it.
fn of_preempted(lock: &Lock) -> Option<Limit> {
    let held = lock.held();
    let limits = held >= lock.wanted && held > 0.0 && lock.off_cpu >= OFF_CPU * held;
    limits.then(|| Limit::OffCpu { place: lock.name.clone(), held, off_cpu: lock.off_cpu / held })
}

/// A lock that limits, by what its owners do or by what passes between two.
fn of_owners(summary: &Summary, place: &Place) -> Limit {
    let acquisitions = place.acquisitions.max(1) as f64;
    let contended = place.contended as f64 / acquisitions;
    let wait_ns = place.wait_ns / acquisitions;
    let lock = Lock::of(summary, place);
    let (name, held) = (lock.name.clone(), lock.held());
    let at_once = place.in_time.part_at_once();
    let asleep = summary.time.asleep;
    if held < HELD && at_once >= BARGING && asleep >= OTHERS_SLEEP {
        return Limit::Barging { place: name, held, at_once, asleep };
    }
    if let Some(limit) = of_preempted(&lock) {
        return limit;
    }
    let (wanted, mostly, causes) = (lock.wanted, lock.causes.mostly(), lock.causes);
    if held < wanted {
        let hold_ns = place.hold_ns / acquisitions;
        let gap_ns = lock.between_ns();
        return Limit::HandOver { place: name, held, contended, gap_ns, hold_ns, wanted, mostly, causes };
    }
    if lock::is_shared(place) && lock.writers >= lock.readers {
        return Limit::Readers { place: place.name.clone(), held: lock.writers, contended, wait_ns };
    }
    Limit::Held { place: name, held, readers: lock.readers, contended, wait_ns, wanted, mostly, causes }
}

#[cfg(test)]
mod tests;
