//! From runs in planes to heat maps and judgements, without a clock and without a process.

mod judged;
mod shown;

use serde_json::Value;
use spinpark_lockbench::locks::comparison::Context;
use spinpark_lockbench::locks::definitions::{Definitions, Implementation};
use spinpark_lockbench::locks::experiment::{Cell, CellExecutor, Measured, Plan, measure};
use spinpark_lockbench::locks::ideal::Calibration;
use spinpark_lockbench::locks::load::Load;
use spinpark_lockbench::locks::peers::Peers;
use spinpark_lockbench::locks::planes::{Axes, Plane, points};
use spinpark_lockbench::locks::selection::plane_cells;
use spinpark_lockbench::locks::workloads::{Report, WaitReport};
use spinpark_lockbench::report::document::{FORMAT, Record, SCHEMA, VersionedImplementation};
use spinpark_measure::report::Head;
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::measure::End;

use crate::locks::{environment, with_document};

const SEED: u64 = 1;
const ROUNDS: usize = 8;
const CALIBRATION: Calibration = Calibration { iteration_ns: 2.0, empty_section_ns: 1.0 };

/// What an implementation does in a cell: time per operation, its waits, and how long a writer waits.
#[derive(Clone, Copy)]
struct Does {
    ns: f64,
    wait_ns: u64,
    write_ns: Option<u64>,
}

/// Locks that do what a function says, with noise that depends on the round.
struct Mock {
    does: fn(&Cell, &str) -> Does,
    noise: f64,
    stop_after: usize,
    runs: usize,
}

impl Mock {
    fn new(does: fn(&Cell, &str) -> Does, noise: f64) -> Self {
        Self { does, noise, stop_after: usize::MAX, runs: 0 }
    }
}

impl CellExecutor for Mock {
    fn calibrate(&mut self) -> Calibration {
        CALIBRATION
    }

    fn execute(&mut self, cell: &Cell, plan: &Plan) -> Result<Report, RunError> {
        if self.runs == self.stop_after {
            return Err(RunError::Interrupted);
        }
        self.runs += 1;
        let Does { ns, wait_ns, write_ns } = (self.does)(cell, &plan.configuration);
        let x = (plan.round * 7 + plan.configuration.len() * 3 + usize::from(plan.again)) as f64;
        let ns = ns * (1.0 + self.noise * (x * 12.9898).sin());
        Ok(Report {
            operations: (50e6 / ns) as u64,
            elapsed_s: 0.05,
            cpu_s: 0.1,
            voluntary_switches: 1000,
            writes: write_ns.map(|_| 0.01),
            waits: Some(WaitReport {
                buckets: vec![(40, 900), (wait_ns, 1)],
                longest_ns: wait_ns * 10,
                longest_gap_ns: wait_ns * 11,
                p999_ns: Some(wait_ns),
                longest_write_ns: write_ns,
                median_write_ns: write_ns,
            }),
            ..Report::default()
        })
    }
}

fn definitions() -> Definitions {
    Definitions::built_in().unwrap()
}

/// A plane of the definitions with few values.
fn plane(name: &str, axes: Axes) -> Plane {
    let definitions = definitions();
    let plane = definitions.plane(name).unwrap();
    Plane { axes: plane.axes.replaced_by(&axes), ..plane.clone() }
}

fn implementations(names: &[&str]) -> Vec<Implementation> {
    let definitions = definitions();
    names.iter().map(|name| definitions.implementation(name).unwrap().clone()).collect()
}

const NAMES: [&str; 5] = ["glibc", "std", "parking_lot", "spinpark", "drop-in"];

fn few() -> Axes {
    Axes { threads: vec![2, 16], section: vec![0, 300], outside: vec![0, 300], ..Axes::default() }
}

fn small_planes() -> Vec<Plane> {
    let writes = Axes { writes: vec![0, 10], threads: vec![2], ..few() };
    let queues = Axes { queues: vec![[1, 1, 1], [2, 2, 16]], work: vec![300], ..Axes::default() };
    vec![plane("mutex", few()), plane("rwlock", writes), plane("queue", queues)]
}

/// Seven columns of figures, and eight with long names.
fn wide_planes() -> Vec<Plane> {
    let two_threads = Axes { threads: vec![2], ..Axes::default() };
    vec![plane("mutex", two_threads), plane("queue", Axes::default())]
}

fn empty_cells(planes: &[Plane]) -> Vec<Measured> {
    let implementations = implementations(&NAMES);
    planes
        .iter()
        .flat_map(|plane| {
            plane_cells(plane, points(plane, &plane.axes).unwrap(), &implementations, &Peers::default(), 2)
        })
        .collect()
}

fn record_of(planes: Vec<Plane>, mut mock: Mock, rounds: usize) -> Record {
    let definitions = definitions();
    let cells = empty_cells(&planes);
    let (mut cells, calibrations, end) = measure(cells, rounds, SEED, &mut mock, &mut ());
    assert!(matches!(end, End::Complete | End::Interrupted));
    for cell in &mut cells {
        for (place, implementation) in cell.cell.implementations.iter().enumerate() {
            cell.futex_calls.insert(implementation.clone(), place as f64 / 10.0);
        }
    }
    let implementation = |name: &&str| VersionedImplementation {
        implementation: definitions.implementation(name).unwrap().clone(),
        version: None,
    };
    Record {
        head: Head {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            end: end.name().to_owned(),
            command: String::from("spinpark-lab bench grid"),
            rounds,
            millis: 50,
            seed: SEED,
            environment: environment(),
        },
        implementations: NAMES.iter().map(implementation).collect(),
        planes,
        bound_definitions: definitions.bounds_of("grid").unwrap(),
        calibrations,
        cells,
    }
}

/// The drop-in is slow with long sections and 16 threads; otherwise ours are faster than peers. glibc starves
/// writers.
fn usual(cell: &Cell, implementation: &str) -> Does {
    let is_long = matches!(&cell.load, Load::Section(section) if section.inside > 0);
    let ns = match implementation {
        "glibc" => 200.0,
        "std" => 180.0,
        "parking_lot" => 150.0,
        "drop-in" if is_long && cell.threads == 16 => 300.0,
        "drop-in" => 140.0,
        _ => 120.0,
    };
    let wait_ns = if implementation == "parking_lot" { 9_000 } else { 5_000 };
    let writes = matches!(&cell.load, Load::Shared(shared) if shared.per_thousand() > 0);
    let write_ns = writes.then_some(if implementation == "glibc" { 30_000_000 } else { 1_000_000 });
    Does { ns, wait_ns, write_ns }
}

fn find<'a>(record: &'a Record, plane: &str, name: &str) -> &'a Measured {
    let is_it = |cell: &&Measured| cell.plane() == plane && cell.name() == name;
    record.cells.iter().find(is_it).unwrap()
}

/// The JSON of planes.
pub(crate) fn document() -> Value {
    let record = record_of(small_planes(), Mock::new(usual, 0.01), ROUNDS);
    with_document(&record, |document| serde_json::to_value(document).unwrap())
}

fn context(record: &Record) -> Context<'_> {
    record.context()
}

#[test]
fn every_cell_has_a_place_of_its_own() {
    let grid = definitions();
    for plane in &grid.planes {
        for axes in [plane.axes.clone(), plane.axes.replaced_by(&plane.quick)] {
            let points = points(plane, &axes).unwrap();
            for (number, point) in points.iter().enumerate() {
                let twin = points[..number].iter().find(|other| other.place == point.place);
                assert!(twin.is_none(), "{point:?} {twin:?}");
            }
        }
        let quick = points(plane, &plane.axes.replaced_by(&plane.quick)).unwrap().len();
        assert!(quick < points(plane, &plane.axes).unwrap().len(), "{}", plane.name);
    }
    let cells =
        |name: &str| points(grid.plane(name).unwrap(), &grid.plane(name).unwrap().axes).unwrap().len();
    assert_eq!((cells("mutex"), cells("rwlock"), cells("queue")), (7 * 7 * 6, 5 * 3 * 3 * 3, 12 * 8));
    assert!(grid.plane("none").unwrap_err().contains("there are: mutex, mutex-exponential"));
}

#[test]
fn a_round_visits_every_cell_and_is_calibrated_first() {
    let record = record_of(small_planes(), Mock::new(usual, 0.01), ROUNDS);
    assert_eq!(record.calibrations.len(), ROUNDS);
    for cell in &record.cells {
        assert_eq!(cell.runs.len(), ROUNDS * (cell.cell.implementations.len() + 1));
        assert!(cell.runs.iter().all(|run| run.report.waits.as_ref().unwrap().buckets.is_empty()));
    }
    assert!(!find(&record, "rwlock", "0 ‰, 0/0, 2 threads").cell.implementations.is_empty());
}

#[test]
fn an_interrupted_run_keeps_what_was_measured() {
    let mock = Mock { stop_after: 100, ..Mock::new(usual, 0.0) };
    let record = record_of(small_planes(), mock, 50);
    assert_eq!(record.head.end, "interrupted");
    assert_eq!(record.cells.iter().map(|cell| cell.runs.len()).sum::<usize>(), 100);
}
