//! From runs to reports, without a clock and without a process.

mod bounds;
mod tables;
mod weak;

use serde_json::Value;
use spinpark_lockbench::locks::bounds::judge_all;
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::locks::experiment::{Cell, CellExecutor, Measured, Plan, measure};
use spinpark_lockbench::locks::figure::{Against, Figure};
use spinpark_lockbench::locks::load::{Load, Placement};
use spinpark_lockbench::locks::result::{CellResult, fronts};
use spinpark_lockbench::locks::summary::summaries;
use spinpark_lockbench::locks::warnings;
use spinpark_lockbench::locks::workloads::{Report, WaitReport};
use spinpark_lockbench::report::document::{Document, FORMAT, Record, SCHEMA, VersionedImplementation};
use spinpark_measure::report::Head;
use spinpark_measure::report::json::Output;
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::machine::Noise;
use spinpark_measure::rounds::measure::End;
use spinpark_measure::stats::verdict::Verdict;

const SEED: u64 = 1;

/// Locks whose time per operation is a table, with noise that depends on the round.
struct Mock {
    times_ns: Vec<(&'static str, f64)>,
    noise: f64,
    stop_after: usize,
    runs: usize,
}

impl Mock {
    fn new(times_ns: &[(&'static str, f64)], noise: f64) -> Self {
        Self { times_ns: times_ns.to_vec(), noise, stop_after: usize::MAX, runs: 0 }
    }
}

impl CellExecutor for Mock {
    fn execute(&mut self, cell: &Cell, plan: &Plan) -> Result<Report, RunError> {
        if self.runs == self.stop_after {
            return Err(RunError::Interrupted);
        }
        self.runs += 1;
        let place = self.times_ns.iter().position(|(name, _)| *name == plan.configuration).unwrap();
        let x = (plan.round * 7 + place * 3 + usize::from(plan.again)) as f64;
        let ns = self.times_ns[place].1 * (1.0 + self.noise * (x * 12.9898).sin());
        let waits = cell.load.has_waits().then(|| WaitReport {
            buckets: vec![(40, 900), (4_000, 99), (1_000_000, 1)],
            longest_ns: 1_000_000 + ns as u64,
            longest_gap_ns: 2_000_000,
            ..WaitReport::default()
        });
        Ok(Report {
            operations: 1_000_000,
            elapsed_s: ns * 1e-3,
            cpu_s: ns * 2e-3,
            voluntary_switches: 1000,
            involuntary_switches: ns as u64,
            jain: Some(0.9),
            futex_calls: None,
            futex_error: None,
            writes: None,
            waits,
        })
    }
}

fn cell(workload: &str, threads: usize, implementations: &[&str]) -> Measured {
    let load: Load = Definitions::built_in().unwrap().workload(workload).unwrap().load.clone();
    let implementations = implementations.iter().map(|name| String::from(*name)).collect();
    let at_least_millis = 0;
    Measured::new(Cell {
        workload: workload.into(),
        place: None,
        load,
        threads,
        cpus: Placement::Any,
        at_least_millis,
        implementations,
        skipped: Vec::new(),
    })
}

fn run(cells: Vec<Measured>, mut mock: Mock, rounds: usize) -> Vec<Measured> {
    let (cells, calibrations, end) = measure(cells, rounds, SEED, &mut mock, &mut ());
    assert!(matches!(end, End::Complete));
    assert_eq!(calibrations.len(), rounds);
    cells
}

fn results(cells: &[Measured]) -> Vec<CellResult> {
    cells.iter().filter_map(|cell| CellResult::new(cell, SEED)).collect()
}

pub(crate) fn environment() -> Environment {
    Environment {
        spinpark: String::from("0.1.0"),
        rustc: String::from("rustc 1.95.0"),
        kernel: String::from("6.0"),
        glibc: String::from("2.36"),
        cpu: String::from("Some(R) CPU @ 2 GHz"),
        cpus: 2,
        virtual_machine: true,
        governor: None,
        date: String::from("2026-01-02T03:04:05Z"),
    }
}

pub(crate) const IMPLEMENTATIONS: [&str; 5] = ["glibc", "std", "parking_lot", "spinpark", "drop-in"];

fn many() -> Vec<Measured> {
    let mut cells: Vec<_> =
        [1, 2, 16, 256].into_iter().map(|threads| cell("saturated", threads, &IMPLEMENTATIONS)).collect();
    cells.push(cell("pair-threaded", 1, &IMPLEMENTATIONS));
    cells.push(cell("write-pair", 1, &IMPLEMENTATIONS));
    let times =
        [("glibc", 100.0), ("std", 90.0), ("parking_lot", 80.0), ("spinpark", 60.0), ("drop-in", 65.0)];
    run(cells, Mock::new(&times, 0.01), 8)
}

#[test]
fn the_baseline_runs_twice_and_every_other_implementation_once() {
    let cells = many();
    for measured in &cells {
        assert_eq!(measured.runs.len(), 8 * 6);
        for round in 0..8 {
            let runs = || measured.runs.iter().filter(move |run| run.round == round);
            assert_eq!(runs().filter(|run| run.again).count(), 1);
            for implementation in IMPLEMENTATIONS {
                assert_eq!(
                    runs().filter(|run| run.implementation == implementation && !run.again).count(),
                    1
                );
            }
        }
    }
    let orders = |measured: &Measured| {
        measured
            .runs
            .iter()
            .map(|run| (run.round, run.order, run.implementation.clone(), run.again, run.padding))
            .collect::<Vec<_>>()
    };
    assert_eq!(many().iter().map(orders).collect::<Vec<_>>(), cells.iter().map(orders).collect::<Vec<_>>());
}

#[test]
fn figures_follow_from_runs() {
    let results = results(&many());
    let saturated = &results[2];
    assert_eq!((saturated.workload.as_str(), saturated.threads, saturated.rounds), ("saturated", 16, 8));
    let [glibc, .., spinpark, _] = &saturated.implementations[..] else { panic!() };
    assert!((glibc.time_ns - 100.0).abs() < 3.0 && glibc.ratio.is_none() && glibc.verdict.is_none());
    assert!((spinpark.ratio.unwrap().median - 0.6).abs() < 0.03);
    assert_eq!(spinpark.verdict, Some(Verdict::Lower));
    assert!((spinpark.cpu_ns - 2.0 * spinpark.time_ns).abs() < 1e-6);
    let waits = spinpark.waits.unwrap();
    assert!((waits.p50 - 40.0).abs() < 1.0 && (waits.p99 - 4_000.0).abs() < 40.0, "{waits:?}");
    assert!((waits.p999 - 4_000.0).abs() < 40.0 && waits.longest > 1e6);
    assert_eq!(results[4].implementations[0].waits, None);
}

#[test]
fn an_interrupted_run_keeps_what_was_measured() {
    let mock = Mock { stop_after: 20, ..Mock::new(&[("glibc", 1.0), ("std", 1.0)], 0.0) };
    let mut mock = mock;
    let cells = vec![cell("pair-single", 1, &["glibc", "std"])];
    let (cells, _, end) = measure(cells, 50, SEED, &mut mock, &mut ());
    assert!(matches!(end, End::Interrupted));
    assert_eq!(cells[0].runs.len(), 20);
    assert_eq!(results(&cells)[0].rounds, 6);
}

fn record(cells: Vec<Measured>) -> Record {
    let definitions = Definitions::built_in().unwrap();
    let implementation = |name: &&str| VersionedImplementation {
        implementation: definitions.implementation(name).unwrap().clone(),
        version: None,
    };
    Record {
        head: Head {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            end: String::from("complete"),
            command: String::from("spinpark-lab bench locks"),
            rounds: 8,
            millis: 100,
            seed: SEED,
            environment: environment(),
        },
        implementations: IMPLEMENTATIONS.iter().map(implementation).collect(),
        planes: Vec::new(),
        bound_definitions: definitions.bounds.clone(),
        calibrations: Vec::new(),
        cells,
    }
}

/// What follows from a record, handed to `write`.
pub(crate) fn with_document<T>(record: &Record, write: impl FnOnce(&Document<'_>) -> T) -> T {
    let context = record.context();
    let results = CellResult::all(&context, &record.cells);
    write(&Document {
        record,
        noise: &Noise::default(),
        warnings: &warnings::of_cells(&results, 2),
        results: &results,
        summaries: &summaries(&context, &record.cells, Figure::Throughput, &Against::Best),
        fronts: &fronts(&results),
        bounds: &judge_all(&context, &record.bound_definitions, &record.cells),
    })
}

/// The JSON of workloads.
pub(crate) fn document() -> Value {
    with_document(&record(many()), |document| serde_json::to_value(document).unwrap())
}

#[test]
fn a_document_can_be_read_again() {
    let record = record(many());
    let results = results(&record.cells);
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = Output::open(file.path()).unwrap();
    with_document(&record, |document| output.write_compact(document).unwrap());
    let text = std::fs::read_to_string(file.path()).unwrap();
    let again = Record::parse(&text).unwrap();
    assert_eq!(again.cells, record.cells);
    assert_eq!(again.implementations, record.implementations);
    assert_eq!(again.bound_definitions, record.bound_definitions);
    assert_eq!(self::results(&again.cells), results);
    assert_eq!(again.file_name(), "2026-01-02-some-r-cpu-2-ghz-2cpus-vm.json");
    let newer = text.replacen("\"schema\":3", "\"schema\":99", 1);
    assert!(Record::parse(&newer).unwrap_err().contains("schema 99"));
    assert!(Record::parse("{}").unwrap_err().contains("not a record"));
}
