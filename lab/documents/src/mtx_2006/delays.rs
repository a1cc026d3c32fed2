//! Maps of the riddle: at which place of FreeBSD's mutex does a delay make a hot lock faster, of which
//! length, and under which load?
//!
//! The ingredients of the profiler of 2006 are run under the same loads: which of them is such a delay?
//!
//! A map is throughput with the delay ÷ throughput without, over the length of the delay and the time
//! between two sections; one map for each [`Place`]. Measured on this machine, or simulated.

use serde::{Deserialize, Serialize};
pub use spinpark_classics::mtx_2006::delays::Place;
use spinpark_classics::mtx_2006::delays::{Delays, LOCK};
use spinpark_lockbench::locks::definitions::{Definitions, Implementation};
use spinpark_lockbench::locks::experiment::{Cell as LockCell, Measured};
use spinpark_lockbench::locks::implementations::parse;
use spinpark_lockbench::locks::load::{Load, Placement, Section};
use spinpark_lockbench::locks::result::CellResult;
use spinpark_platform::Event;
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting, SettingError};

use crate::simulated::{Progress, ratios, run_seeds};

/// The gain of the document, as a ratio, and its standard deviation.
pub const GAIN: (f64, f64) = (1.38, 0.03);

/// The document's own patch and the ingredients of its profiling, by the names of their locks.
const INGREDIENTS: [&str; 10] = [
    "classic-mtx-backoff",
    "classic-mtx-profiled",
    "classic-mtx-profiled-no-add",
    "classic-mtx-profiled-apart",
    "classic-mtx-gutted",
    "classic-mtx-accesses",
    "classic-mtx-counter",
    "classic-mtx-add",
    "classic-mtx-add-apart",
    "classic-mtx-larger",
];

/// What is varied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes {
    pub places: Vec<Place>,
    pub delays_ns: Vec<u32>,
    /// Between two sections of a thread.
    pub between_ns: Vec<u32>,
}

impl Axes {
    /// The locks that are compared with the one without delays: with a delay at each place, of each length,
    /// then the ingredients.
    fn locks(&self) -> impl Iterator<Item = String> {
        let of = |place| self.delays_ns.iter().map(move |&ns| lock(Delays::NONE.with(place, ns)));
        let delayed = self.places.iter().flat_map(move |&place| of(place));
        delayed.chain(INGREDIENTS.map(str::to_owned))
    }

    /// The cells of all maps from those of each load: one for each of [`Axes::locks`], in that order.
    fn maps(&self, by_load: &[Vec<Option<Cell>>]) -> Vec<Map> {
        let row = |place: usize, number: usize| Row {
            delay_ns: self.delays_ns[number],
            cells: by_load.iter().map(|cells| cells[place * self.delays_ns.len() + number].clone()).collect(),
        };
        let map = |(number, place): (usize, &Place)| Map {
            place: place.name().to_owned(),
            rows: (0..self.delays_ns.len()).map(|delay| row(number, delay)).collect(),
        };
        self.places.iter().enumerate().map(map).collect()
    }

    /// Those of the ingredients.
    fn ingredients(&self, by_load: &[Vec<Option<Cell>>]) -> Vec<Ingredient> {
        let first = self.places.len() * self.delays_ns.len();
        let one = |(number, lock): (usize, &&str)| Ingredient {
            lock: (*lock).to_owned(),
            cells: by_load.iter().map(|cells| cells[first + number].clone()).collect(),
        };
        INGREDIENTS.iter().enumerate().map(one).collect()
    }
}

/// The name of the lock with these delays.
fn lock(delays: Delays) -> String {
    format!("{LOCK}+{delays}")
}

/// The maps of all places, over the same loads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Maps {
    /// The simulated machine; none: this one.
    pub machine: Option<String>,
    pub threads: usize,
    /// Seeds of the simulation, or rounds.
    pub runs: usize,
    /// Length of a run.
    pub run_ns: u64,
    /// Without a delay.
    pub loads: Vec<Plain>,
    pub maps: Vec<Map>,
    pub ingredients: Vec<Ingredient>,
}

/// The lock without delays under a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plain {
    pub between_ns: u32,
    /// Sections a second.
    pub throughput: f64,
    /// How far chance goes, as a part of 1: of the same lock measured twice, or of the seeds from their mean.
    /// None: too little was measured; then no effect is decided.
    pub noise: Option<f64>,
    /// Of a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
}

/// The map of a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Map {
    pub place: String,
    pub rows: Vec<Row>,
}

/// A lock with an ingredient of the profiler, or with all of them, or with the document's own patch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ingredient {
    pub lock: String,
    /// By load.
    pub cells: Vec<Option<Cell>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub delay_ns: u32,
    /// By load; none: not measured, since the run was interrupted.
    pub cells: Vec<Option<Cell>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Throughput ÷ without the delay.
    pub ratio: f64,
    /// Its 95 % interval; of a simulation, the lowest and the highest seed.
    pub low: f64,
    pub high: f64,
    pub effect: Effect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The whole interval is above 1 by more than the noise.
    Gain,
    /// It is below by more than that.
    Loss,
    /// Neither.
    Undecided,
}

impl Effect {
    pub fn name(self) -> &'static str {
        match self {
            Self::Gain => "gain",
            Self::Loss => "loss",
            Self::Undecided => "undecided",
        }
    }
}

impl Cell {
    fn new([ratio, low, high]: [f64; 3], noise: Option<f64>, counters: Option<Counters>) -> Self {
        let effect = match noise {
            Some(noise) if low > 1.0 + noise => Effect::Gain,
            Some(noise) if high < 1.0 / (1.0 + noise) => Effect::Loss,
            _ => Effect::Undecided,
        };
        Self { ratio, low, high, effect, counters }
    }
}

/// What a simulation counted, for each section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Compare-exchanges that found another value.
    pub failed: f64,
    /// Cache lines that moved from CPU to CPU.
    pub lines: f64,
    /// Threads that went to sleep.
    pub parked: f64,
    /// The lock was held, from the return of its acquisition to the call of its release, ns.
    pub held_ns: f64,
    /// It was free, or on its way from one owner to the next, although a thread waited, ns.
    pub free_ns: f64,
    /// Of that, its next owner waited for a cache line, or could not see yet that the lock was free.
    pub lines_ns: f64,
    /// Of that, its next owner slept, or was on its way from sleep to a CPU.
    pub asleep_ns: f64,
    /// Threads waited for it, ns.
    pub wait_ns: f64,
}

impl Counters {
    fn of(reports: &[Report]) -> Self {
        let places = || reports.iter().flat_map(|report| &report.places);
        let sections = places().map(|place| place.acquisitions).sum::<u64>().max(1) as f64;
        let in_time = places().map(|place| place.in_time.acquisitions).sum::<u64>().max(1) as f64;
        let counted = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>() as f64 / sections;
        let of_places = |of: fn(&spinpark_sim::workload::InTime) -> f64| {
            places().map(|place| of(&place.in_time)).sum::<f64>() / in_time
        };
        Self {
            failed: counted(|report| report.outcome.counts.failed_exchanges),
            lines: counted(|report| report.outcome.counts.moves()),
            parked: counted(|report| report.outcome.counts.of(Event::Parked)),
            held_ns: of_places(|place| place.held_ns),
            free_ns: of_places(|place| place.gap.total_ns()),
            lines_ns: of_places(|place| place.gap.lines_ns + place.gap.unseen_ns),
            asleep_ns: of_places(|place| place.gap.asleep_ns + place.gap.waking_ns + place.gap.queued_ns),
            wait_ns: of_places(|place| place.wait_ns),
        }
    }
}

/// Sections of an operation of the workload `select`.
const SECTIONS_OF_SELECT: f64 = 4.0;

/// Simulates the maps with the load of document 004, on as many threads as the machine has CPUs, each run
/// `run_ns` long.
///
/// # Errors
///
/// It was interrupted, or there is no memory.
pub fn simulate(
    axes: &Axes,
    machine: &Machine,
    seeds: usize,
    run_ns: u64,
    progress: Progress<'_>,
) -> Result<Maps, SettingError> {
    let threads = machine.cpus();
    let settings: Vec<Setting> = axes
        .between_ns
        .iter()
        .flat_map(|&between| {
            let workload = format!("select-{:.0}", f64::from(between) * machine.ghz);
            let locks = std::iter::once(LOCK.to_owned()).chain(axes.locks());
            locks.map(move |lock| Setting {
                for_ns: run_ns,
                ..Setting::new(machine.clone(), &lock, &workload, threads)
            })
        })
        .collect();
    let reports = run_seeds(&settings, seeds as u64, progress)?;
    let mut loads = Vec::new();
    let mut by_load = Vec::new();
    let of_load = reports.chunks(1 + axes.locks().count());
    for (reports, &between_ns) in of_load.zip(&axes.between_ns) {
        let (plain, delayed) = reports.split_first().expect("a load has the lock without delays");
        let all: Vec<f64> = plain.iter().map(Report::throughput).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let noise = Some(all.iter().map(|one| (one / mean - 1.0).abs()).fold(0.0, f64::max));
        let counters = Some(Counters::of(plain));
        loads.push(Plain { between_ns, throughput: mean * SECTIONS_OF_SELECT, noise, counters });
        let cell = |of: &Vec<Report>| {
            let all = ratios(of, plain, Report::throughput);
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let low = all.iter().copied().fold(f64::INFINITY, f64::min);
            let high = all.iter().copied().fold(0.0, f64::max);
            Some(Cell::new([mean, low, high], noise, Some(Counters::of(of))))
        };
        by_load.push(delayed.iter().map(cell).collect());
    }
    let (maps, ingredients) = (axes.maps(&by_load), axes.ingredients(&by_load));
    let machine = Some(machine.name.clone());
    Ok(Maps { machine, threads: threads as usize, runs: seeds, run_ns, loads, maps, ingredients })
}

/// Iterations of work under the lock: those of the workload `hot-lock`.
const INSIDE: u32 = 20;
/// An iteration, ns, about.
const ITERATION_NS: u32 = 2;

/// What is to be measured on this machine: all implementations, and a cell without runs for each load.
///
/// # Errors
///
/// A sentence that says what cannot be measured.
pub fn cells(axes: &Axes, threads: usize) -> Result<(Vec<Implementation>, Vec<Measured>), String> {
    let definitions = Definitions::built_in().map_err(|error| error.to_string())?;
    let locks = std::iter::once(LOCK.to_owned()).chain(axes.locks());
    let implementations: Vec<Implementation> =
        locks.map(|lock| parse(&definitions, &lock)).collect::<Result<_, String>>()?;
    let names: Vec<String> = implementations.iter().map(|one| one.name.clone()).collect();
    let cell = |&between: &u32| {
        let outside = between / ITERATION_NS;
        let section = Section { beside: true, inside: INSIDE, outside, ..Section::default() };
        Measured::new(LockCell {
            workload: format!("hot-lock, {between} ns between sections"),
            place: None,
            load: Load::Section(section),
            threads,
            cpus: Placement::Any,
            at_least_millis: 0,
            implementations: names.clone(),
            skipped: Vec::new(),
        })
    };
    let cells: Vec<Measured> = axes.between_ns.iter().map(cell).collect();
    cells.iter().try_for_each(|measured| measured.cell.load.check(threads))?;
    Ok((implementations, cells))
}

/// The maps of what was measured in [`cells`]. Loads without a result are left out.
pub fn measured(
    axes: &Axes,
    threads: usize,
    rounds: usize,
    run_ns: u64,
    cells: &[Measured],
    seed: u64,
) -> Maps {
    let mut loads = Vec::new();
    let mut by_load = Vec::new();
    for (measured, &between_ns) in cells.iter().zip(&axes.between_ns) {
        let Some(result) = CellResult::new(measured, seed) else { continue };
        let noise = result.again.map(|again| again.reach()).filter(|noise| noise.is_finite());
        let throughput = result.implementations[0].throughput[1];
        loads.push(Plain { between_ns, throughput, noise, counters: None });
        let cell = |name: String| {
            let own = result.implementations.iter().find(|own| own.implementation == name)?;
            let time = own.ratio?;
            Some(Cell::new([time.median, time.high, time.low].map(|time| 1.0 / time), noise, None))
        };
        by_load.push(axes.locks().map(cell).collect::<Vec<_>>());
    }
    let (maps, ingredients) = (axes.maps(&by_load), axes.ingredients(&by_load));
    Maps { machine: None, threads, runs: rounds, run_ns, loads, maps, ingredients }
}

/// A cell with its place in a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct At<'a> {
    pub delay_ns: u32,
    pub between_ns: u32,
    pub cell: &'a Cell,
}

impl Maps {
    /// The cells of a map.
    pub fn cells<'a>(&'a self, map: &'a Map) -> impl Iterator<Item = At<'a>> {
        let of_row = |row: &'a Row| {
            let cells = self.loads.iter().zip(&row.cells);
            cells.filter_map(|(load, cell)| {
                let (delay_ns, between_ns) = (row.delay_ns, load.between_ns);
                Some(At { delay_ns, between_ns, cell: cell.as_ref()? })
            })
        };
        map.rows.iter().flat_map(of_row)
    }

    /// The gain that is the largest of a map, if there is one.
    pub fn most<'a>(&'a self, map: &'a Map) -> Option<At<'a>> {
        let gains = self.cells(map).filter(|at| at.cell.effect == Effect::Gain);
        gains.max_by(|a, b| a.cell.ratio.total_cmp(&b.cell.ratio))
    }

    /// The shortest delay of a map that gains what the document published, or more, at any load.
    pub fn shortest_as_published<'a>(&'a self, map: &'a Map) -> Option<At<'a>> {
        let enough = |at: &At<'_>| at.cell.effect == Effect::Gain && at.cell.ratio >= GAIN.0 - GAIN.1;
        self.cells(map).filter(enough).min_by_key(|at| at.delay_ns)
    }
}
