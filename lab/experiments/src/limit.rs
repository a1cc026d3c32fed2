//! What limits a run: the answer that stands above all figures.
//!
//! It is found from where the threads' time went. A lock limits if a good part of their time is waiting for
//! it. Which part of it does is found from where the lock's own time went: if it is held for longer than it
//! is free although a thread wants it, the sections themselves are the limit, or waits for a CPU inside; if
//! not, what its next owner is kept by is.

use serde::Serialize;
use spinpark_measure::text::units::number;

use crate::formats::{ns, share};
use crate::summary::Summary;
use spinpark_sim::workload::{Gap, Place};

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
/// If this part of the acquisitions does not wait though others do, the threads that are awake keep the lock
/// to themselves.
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
    if is_shared(place) && lock.writers >= lock.readers {
        return Limit::Readers { place: place.name.clone(), held: lock.writers, contended, wait_ns };
    }
    Limit::Held { place: name, held, readers: lock.readers, contended, wait_ns, wanted, mostly, causes }
}

/// What the name of the place ends in where readers acquire a lock.
const SHARED: &str = " (read)";
/// What is most of something is this part of it, at least.
const MOST: f64 = 0.5;

/// Whether it is readers that acquire a lock there.
fn is_shared(place: &Place) -> bool {
    place.name.ends_with(SHARED)
}

/// What kept the next owner of a lock that was free: parts of that time, which add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Causes {
    /// It slept, was woken, and came to its CPU.
    pub wake_ups: f64,
    /// It waited for a CPU that others had.
    pub cpus: f64,
    /// It waited for cache lines, or could not see yet that the lock was free.
    pub lines: f64,
    /// It did not look: PAUSE, back-off.
    pub pauses: f64,
    /// Its own steps and system calls.
    pub steps: f64,
}

/// What of that was most of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mostly {
    /// Wake-ups.
    WakeUps,
    /// Waiting for a CPU.
    Cpus,
    /// Cache lines.
    Lines,
    /// PAUSE and back-off.
    Pauses,
    /// The lock's own steps.
    Steps,
    /// None of them: several.
    Several,
}

impl Causes {
    /// Of such times, as far as it is known.
    fn of(gap: &Gap) -> Self {
        let all = (gap.total_ns() - gap.others_ns).max(1e-9);
        Self {
            wake_ups: (gap.asleep_ns + gap.waking_ns) / all,
            cpus: gap.queued_ns / all,
            lines: (gap.lines_ns + gap.unseen_ns) / all,
            pauses: gap.pause_ns / all,
            steps: gap.steps_ns / all,
        }
    }

    /// Each part, and what it is called among several.
    fn parts(&self) -> [(f64, Mostly, &'static str); 5] {
        [
            (self.wake_ups, Mostly::WakeUps, "wake-ups"),
            (self.cpus, Mostly::Cpus, "CPUs"),
            (self.lines, Mostly::Lines, "cache lines"),
            (self.pauses, Mostly::Pauses, "pauses between polls"),
            (self.steps, Mostly::Steps, "steps"),
        ]
    }

    /// What was most of it.
    #[must_use]
    pub fn mostly(&self) -> Mostly {
        self.parts().into_iter().find(|(part, ..)| *part >= MOST).map_or(Mostly::Several, |(_, what, _)| what)
    }
}

/// A lock, or all of one name: shares of the time of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// What the workload calls it.
    pub name: String,
    /// Writers had it, or exclusive holders.
    pub writers: f64,
    /// Readers had it.
    pub readers: f64,
    /// Its owner could go on, and had no CPU.
    pub off_cpu: f64,
    /// No thread had it, and one wanted it.
    pub wanted: f64,
    /// What kept them.
    pub causes: Causes,
    /// The time of the runs, ns, and acquisitions in it.
    all_ns: f64,
    acquisitions: u64,
}

impl Lock {
    /// That of this place.
    fn of(summary: &Summary, place: &Place) -> Self {
        let name = place.name.trim_end_matches(SHARED);
        let of_it = || summary.places.iter().filter(|place| place.name.trim_end_matches(SHARED) == name);
        let held = |shared: bool| of_it().filter(move |place| is_shared(place) == shared);
        let locks = of_it().map(|place| place.locks).max().unwrap_or(1);
        let all_ns = (summary.measured_ns as f64 * locks.max(1) as f64).max(1.0);
        let share = |shared: bool| held(shared).fold(0.0, |all, place| all + place.in_time.held_ns) / all_ns;
        let mut gap = Gap::default();
        of_it().for_each(|place| gap.add(&place.in_time.gap));
        Self {
            name: name.to_owned(),
            writers: share(false),
            readers: share(true),
            off_cpu: of_it().fold(0.0, |all, place| all + place.in_time.off_cpu_ns) / all_ns,
            wanted: gap.total_ns() / all_ns,
            causes: Causes::of(&gap),
            all_ns,
            acquisitions: of_it().map(|place| place.in_time.acquisitions).sum(),
        }
    }

    /// All of a run, in the order of its places.
    #[must_use]
    pub fn all(summary: &Summary) -> Vec<Self> {
        let mut all = Vec::<Self>::new();
        for place in &summary.places {
            let lock = Self::of(summary, place);
            if all.iter().all(|known| known.name != lock.name) {
                all.push(lock);
            }
        }
        all
    }

    /// A thread had it.
    #[must_use]
    pub fn held(&self) -> f64 {
        self.writers + self.readers
    }

    /// The mean time between two holds, ns.
    fn between_ns(&self) -> f64 {
        (1.0 - self.held()).max(0.0) * self.all_ns / self.acquisitions.max(1) as f64
    }
}

/// A part of the time from which on it is said what else there is besides the limit.
const WORTH_SAYING: f64 = 0.1;

/// A cause with less than this is not among several.
const LEAST_SAID: f64 = 0.005;

impl Mostly {
    /// In a word or two, for tables; that it limits; and how it keeps the next owner of a lock.
    fn told(self) -> [&'static str; 3] {
        match self {
            Self::WakeUps => ["wake-ups", "Wake-ups limit", "until its next owner is awake"],
            Self::Cpus => ["CPUs", "Waiting for CPUs limits", "while its next owner waits for a CPU"],
            Self::Lines => {
                ["lines", "The lock's cache lines limit", "while its cache lines are on their way"]
            }
            Self::Pauses => [
                "pauses",
                "Pauses between polls limit",
                "while its next owner does not poll (PAUSE, back-off)",
            ],
            Self::Steps => [
                "lock's steps",
                "The lock's own steps limit",
                "in its next owner's own steps and system calls",
            ],
            Self::Several => ["hand-over", "The way from one owner to the next limits", ""],
        }
    }
}

/// What the next owner is kept by.
fn why(mostly: Mostly, causes: &Causes) -> String {
    let mut parts = causes.parts();
    if let Some((part, ..)) = parts.iter().find(|(_, what, _)| *what == mostly) {
        let [.., how] = mostly.told();
        return format!("{} of that {how}", share(*part));
    }
    parts.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let said = parts.iter().filter(|(part, ..)| *part >= LEAST_SAID);
    let said: Vec<String> = said.map(|(part, _, name)| format!("{name} ({})", share(*part))).collect();
    format!("for {}", said.join(", "))
}

impl Limit {
    /// What limits, in a word or two, for tables.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match self {
            Self::Failure { .. } => "failed",
            Self::TooShort { .. } => "too short",
            Self::Held { .. } => "sections",
            Self::OffCpu { .. } => "owners' CPUs",
            Self::HandOver { mostly, .. } => mostly.told()[0],
            Self::Barging { .. } => "few awake",
            Self::Readers { .. } => "writers",
            Self::Lines { .. } => "lines",
            Self::Cpus { .. } => "CPUs",
            Self::WakeUps { .. } => "wake-ups",
            Self::Work { .. } => "work",
            Self::Sleep { .. } => "sleep",
        }
    }

    /// What limits, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Failure { seed, what } => format!("The run with seed {seed} failed: {what}."),
            Self::TooShort { for_ns } => format!(
                "Too short: no operation ended within {}. Use a longer --duration.",
                ns(*for_ns as f64)
            ),
            Self::Held { place, held, readers, contended, wait_ns, wanted, mostly, causes } => format!(
                "The sections under `{place}` limit: it is held for {} of the time{}; {} of the acquisitions find it taken or \
                 wanted, and an acquisition takes {} on the average.{}",
                share(*held),
                if *readers > 0.0 { format!(", by readers for {}", share(*readers)) } else { String::new() },
                share(*contended),
                ns(*wait_ns),
                if *wanted >= WORTH_SAYING {
                    format!(
                        " For {} of the time it is free although it is wanted, {}.",
                        share(*wanted),
                        why(*mostly, causes)
                    )
                } else {
                    String::new()
                }
            ),
            Self::OffCpu { place, held, off_cpu } => format!(
                "Owners without a CPU limit: `{place}` is held for {} of the time, and for {} of that its owner could go on, and \
                 waits for a CPU.",
                share(*held),
                share(*off_cpu)
            ),
            Self::HandOver { place, held, gap_ns, hold_ns, wanted, mostly, causes, .. } => format!(
                "{}: for {} of the time `{place}` is free although it is wanted, {}. It is held for {} of the time; a hold takes \
                 {}, and {} pass between two.",
                mostly.told()[1],
                share(*wanted),
                why(*mostly, causes),
                share(*held),
                ns(*hold_ns),
                ns(*gap_ns)
            ),
            Self::Barging { place, held, at_once, asleep } => format!(
                "Barging limits: running threads pass sleeping ones. Of the acquisitions of `{place}` that find others waiting, {} take it at \
                 once, and threads sleep for {} of their time; it is held for {} of the time.",
                share(*at_once),
                share(*asleep),
                share(*held)
            ),
            Self::Readers { place, held, contended, wait_ns } => format!(
                "Waiting for writers limits: they hold the lock for {} of the time; {} of the acquisitions of `{place}` find a \
                 writer, and an acquisition takes {} on the average.",
                share(*held),
                share(*contended),
                ns(*wait_ns)
            ),
            Self::Lines { place, wait_ns, moves } => format!(
                "Cache lines limit: `{place}` is seldom taken, but an acquisition takes {}, as {} lines move from core to core \
                 for each.",
                ns(*wait_ns),
                number(*moves)
            ),
            Self::Cpus { busy, runnable, spinning } => format!(
                "The CPUs limit: they are busy for {} of the time; threads wait for one for {} of theirs, and poll for {}.",
                share(*busy),
                share(*runnable),
                share(*spinning)
            ),
            Self::WakeUps { runnable, asleep, busy } => format!(
                "Wake-ups limit: threads are on their way to a CPU for {} of their time, and sleep for {}, while CPUs are busy for \
                 {} of theirs.",
                share(*runnable),
                share(*asleep),
                share(*busy)
            ),
            Self::Work { working } => {
                format!("Nothing limits but the work: threads do it for {} of their time.", share(*working))
            }
            Self::Sleep { asleep } => format!(
                "No lock limits: threads sleep for {} of their time, for other reasons than a lock.",
                share(*asleep)
            ),
        }
    }
}

/// Runs of which it is known what limits them.
#[cfg(test)]
mod tests {
    use super::*;
    use spinpark_sim::machine::Machine;
    use spinpark_sim::workload::Setting;

    fn limit_in(machine: Machine, lock: &str, workload: &str, threads: u32, for_ns: u64) -> Limit {
        let setting = Setting { for_ns, ..Setting::new(machine, lock, workload, threads) };
        Limit::of(&Summary::of_run(&setting))
    }

    fn limit(machine: Machine, lock: &str, workload: &str, threads: u32) -> Limit {
        limit_in(machine, lock, workload, threads, 3_000_000)
    }

    /// The limit's name in JSON, and what kept the next owner of a lock for most of the time.
    fn name(limit: &Limit) -> (String, Option<Mostly>) {
        let json = serde_json::to_value(limit).unwrap();
        let mostly = match limit {
            Limit::HandOver { mostly, .. } => Some(*mostly),
            _ => None,
        };
        (json["limit"].as_str().unwrap().to_owned(), mostly)
    }

    #[test]
    fn limits_of_plain_cases() {
        let is = |cpus, lock, workload, threads, expected: &str| {
            let limit = limit(Machine::plain(cpus), lock, workload, threads);
            assert_eq!(name(&limit).0, expected, "{limit:?}");
        };
        is(4, "spinpark", "long", 1, "work");
        is(4, "classic-mutex-fixed", "long", 4, "held");
        // Sections of some 70 ns: the owner does not wait for its stores.
        is(8, "classic-mutex-2.6.34", "hot-lock", 8, "hand_over");
        is(8, "classic-tas", "saturated", 8, "hand_over");
        is(64, "classic-rwsem-3.12", "readers", 64, "lines");
        is(1, "classic-mutex-nospin", "long", 8, "cpus");
        is(4, "classic-condvar-orig", "condvar-ping-pong", 2, "wake_ups");
        // Some sleep, but the others have all CPUs' time.
        is(2, "spinpark", "creat", 8, "cpus");
    }

    /// Most readers find the line near them, and those that do not come one after the other: fewer operations
    /// than of one thread.
    #[test]
    fn lines_that_seldom_move() {
        let machine = Machine::load("nehalem-ex-64").unwrap();
        let limit = limit(machine, "classic-rwsem-3.12", "readers", 128);
        let Limit::Lines { moves, wait_ns, .. } = limit else { panic!("{limit:?}") };
        assert!(moves < 0.5 && wait_ns > 100.0, "{moves} {wait_ns}");
    }

    /// One thing of a machine is made dear, so that it limits.
    #[test]
    fn what_passes_between_owners_is_told() {
        let is = |machine: &Machine, lock, workload, threads, mostly| {
            let limit = limit(machine.clone(), lock, workload, threads);
            assert_eq!(
                name(&limit),
                (String::from("hand_over"), Some(mostly)),
                "{lock}, {workload}: {limit:?}"
            );
        };
        let mut sleepy = Machine::plain(8);
        sleepy.kernel.idle_exit_ns = 50_000.0;
        sleepy.kernel.deep_idle = None;
        // Most of the waiting is done by readers, which wait for each other's wake-ups and not for writers.
        for workload in ["mixed-1", "mixed-10"] {
            is(&sleepy, "classic-rwsem-3.12", workload, 8, Mostly::WakeUps);
        }
        let mut far = Machine::plain(8);
        far.memory.near_ns *= 20.0;
        is(&far, "classic-tas", "saturated", 8, Mostly::Lines);
        is(&far, "classic-rwsem-full", "mixed-50", 8, Mostly::Lines);
        let mut drowsy = Machine::plain(8);
        drowsy.cpu.pause_ns = 100_000.0;
        is(&drowsy, "classic-ttas", "five-lines", 8, Mostly::Pauses);
    }

    /// Spinners take the CPUs of the lock's owners.
    #[test]
    fn owners_that_are_preempted() {
        let limit = limit_in(Machine::plain(2), "classic-ttas", "long", 16, 200_000_000);
        let Limit::OffCpu { held, off_cpu, .. } = limit else { panic!("{limit:?}") };
        assert!(held > 0.9 && (0.5..1.0).contains(&off_cpu), "{held} {off_cpu}");
    }

    /// Writers compute for long under the lock, and readers hardly.
    #[test]
    fn readers_that_wait_for_writers() {
        let summary = |held: [f64; 2]| {
            let setting = Setting::new(Machine::plain(4), "classic-rwsem-full", "mixed-50", 4);
            let mut summary = Summary::of_run(&setting);
            let all = summary.measured_ns as f64;
            for place in &mut summary.places {
                let is_read = place.name.ends_with("(read)");
                place.in_time.held_ns = held[usize::from(is_read)] * all;
                place.in_time.gap = Gap::default();
                place.in_time.wait_ns = if is_read { 2.0 * all } else { 0.0 };
            }
            summary
        };
        let limit = Limit::of(&summary([0.9, 0.05]));
        assert!(matches!(limit, Limit::Readers { held, .. } if held == 0.9), "{limit:?}");
        let limit = Limit::of(&summary([0.05, 0.9]));
        assert!(matches!(limit, Limit::Held { readers, .. } if readers == 0.9), "{limit:?}");
    }

    /// Where a lock's time goes adds up to what there is.
    #[test]
    fn shares_of_a_lock() {
        for (lock, workload, threads) in [
            ("spinpark", "mixed-10", 16),
            ("classic-mutex-nospin", "hot-lock", 4),
            ("classic-tas", "random-32", 8),
        ] {
            let summary = Summary::of_run(&Setting::new(Machine::plain(8), lock, workload, threads));
            let [lock] = &Lock::all(&summary)[..] else { panic!("one lock") };
            assert!(lock.held() > 0.0 && lock.held() + lock.wanted <= 1.0 + 1e-9, "{lock:?}");
            let Causes { wake_ups, cpus, lines, pauses, steps } = lock.causes;
            assert!((wake_ups + cpus + lines + pauses + steps - 1.0).abs() < 1e-6, "{lock:?}");
        }
    }

    /// At the end sleepers are woken one by one, which takes as long as the run: that is no time in which the
    /// lock could have been held.
    #[test]
    fn what_comes_after_the_run_is_in_no_share() {
        let machine = Machine::choose("big-512:64").unwrap();
        let limit = |for_ns| {
            let mut setting = Setting::new(machine.clone(), "spinpark", "long", 64);
            setting.for_ns = for_ns;
            let report = setting.run().unwrap();
            let outcome = &report.outcome;
            assert!(outcome.measured_ns == for_ns && outcome.elapsed_ns > for_ns, "{}", outcome.elapsed_ns);
            for times in &outcome.threads {
                let all = times.on_cpu_ns + times.runnable_ns + times.asleep_ns;
                assert!(times.spinning_ns <= times.on_cpu_ns && all <= for_ns, "{times:?}");
            }
            assert!(outcome.busy_ns.iter().all(|busy| *busy <= for_ns));
            Limit::of(&Summary::of(&machine, &[report]).unwrap())
        };
        for for_ns in [5_000_000, 20_000_000] {
            let Limit::Held { held, .. } = limit(for_ns) else { panic!("{:?}", limit(for_ns)) };
            assert!((0.75..=1.0).contains(&held), "{held}");
        }
    }

    /// Where there is nothing but a lock to sleep on, it is said; and no thread is awake alone if none
    /// sleeps.
    #[test]
    fn sleep_has_a_reason() {
        let limit = |machine: &str, lock: &str, threads, for_ns| {
            limit_in(Machine::choose(machine).unwrap(), lock, "hot-lock", threads, for_ns)
        };
        let many = limit("big-512", "spinpark", 2048, 300_000);
        assert!(!matches!(many, Limit::Sleep { .. } | Limit::Work { .. }), "{many:?}");
        let two = limit("this-2", "classic-mutex-2003", 2, 5_000_000);
        assert!(!matches!(two, Limit::Barging { .. } | Limit::Sleep { .. }), "{two:?}");
        assert_eq!(limit("this-2", "spinpark", 2, 1), Limit::TooShort { for_ns: 1 });
    }

    #[test]
    fn a_failure_comes_first() {
        let setting = Setting::new(Machine::plain(2), "spinpark", "saturated", 2);
        let limit = Limit::of(&Summary::of_run(&Setting { most_steps: 100, ..setting }));
        assert!(matches!(limit, Limit::Failure { seed: 0, .. }), "{limit:?}");
    }
}
