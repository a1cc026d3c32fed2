//! Where the time of a lock goes: held, wanted although it is free, and why.

use serde::Serialize;
use spinpark_sim::workload::{Gap, Place};

use crate::simulate::summary::Summary;

/// What the name of the place ends in where readers acquire a lock.
const SHARED: &str = " (read)";
/// What is most of something is this part of it, at least.
const MOST: f64 = 0.5;

/// Whether it is readers that acquire a lock there.
pub(super) fn is_shared(place: &Place) -> bool {
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

    /// What was most of it.
    #[must_use]
    pub fn mostly(&self) -> Mostly {
        let Self { wake_ups, cpus, lines, pauses, steps } = *self;
        let all = [
            (wake_ups, Mostly::WakeUps),
            (cpus, Mostly::Cpus),
            (lines, Mostly::Lines),
            (pauses, Mostly::Pauses),
            (steps, Mostly::Steps),
        ];
        let most = all.into_iter().find(|(part, _)| *part >= MOST);
        most.map_or(Mostly::Several, |(_, what)| what)
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
    pub(super) fn of(summary: &Summary, place: &Place) -> Self {
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
    pub(super) fn between_ns(&self) -> f64 {
        (1.0 - self.held()).max(0.0) * self.all_ns / self.acquisitions.max(1) as f64
    }
}
