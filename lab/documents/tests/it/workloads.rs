//! Workloads from runs to tables, without a clock and without a process; and the ones with locks on every
//! adapter.

use std::collections::BTreeMap;

use spinpark_documents::report::workloads::{breakdown, details, explanation, matrix, table};
use spinpark_documents::rwsem_2013::mmap;
use spinpark_documents::worker;
use spinpark_documents::workloads::experiment::{Cell, Configuration, Measured};
use spinpark_documents::workloads::job::{Report, Request, Spread};
use spinpark_documents::workloads::resources::Requirements;
use spinpark_documents::workloads::result::{CellResult, Document, FORMAT, Record, SCHEMA, of_workload};
use spinpark_documents::workloads::{Figure, jobs};
use spinpark_lockbench::locks::adapters::ADAPTERS;
use spinpark_measure::report::{Head, Style};
use spinpark_measure::rounds::cells::{Plan, measure};
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::measure::End;
use spinpark_measure::stats::verdict::Verdict;

const SEED: u64 = 1;

/// What configurations can do per second, and noise that depends on the round.
const CONFIGURATIONS: [(&str, f64); 4] = [
    ("plain", 100_000.0),
    ("mutex glibc", 60_000.0),
    ("mutex std", 101_000.0),
    ("mutex spinpark", 250_000.0),
];

fn cell(variant: &str, tasks: usize) -> Measured {
    let configurations = CONFIGURATIONS.map(|(name, _)| Configuration::new(name, &())).to_vec();
    Measured::new(Cell { variant: variant.to_owned(), tasks, configurations, needs: Requirements::default() })
}

fn report(cell: &Measured, plan: &Plan) -> Report {
    let place = CONFIGURATIONS.iter().position(|(name, _)| *name == plan.configuration).unwrap();
    let x = (plan.round * 7 + place * 3 + usize::from(plan.again)) as f64;
    let per_second = CONFIGURATIONS[place].1 * (1.0 + 0.005 * (x * 12.9898).sin()) / cell.cell.tasks as f64;
    Report {
        operations: (per_second / 4.0) as u64,
        elapsed_s: 0.25,
        user_s: 0.05,
        system_s: 0.20,
        voluntary_switches: 100,
        involuntary_switches: 20,
        spread: Spread::of(&vec![1000; cell.cell.tasks]),
        columns: BTreeMap::from([(String::from("jobs_per_user"), 31.0)]),
        breakdown: BTreeMap::from([(String::from("creat_clo"), 0.25), (String::from("udp_test"), 0.75)]),
    }
}

fn measured(cells: Vec<Measured>, rounds: usize) -> Vec<Measured> {
    let (cells, end) = measure(cells, rounds, SEED, &mut |cell: &Measured, plan| Ok(report(cell, plan)));
    assert!(matches!(end, End::Complete));
    cells
}

fn results(cells: &[Measured], figure: Figure) -> Vec<CellResult> {
    cells.iter().filter_map(|cell| CellResult::new(cell, figure, SEED)).collect()
}

fn thread_counts() -> Vec<Measured> {
    measured([1, 2, 40].map(|tasks| cell("touched", tasks)).to_vec(), 10)
}

#[test]
fn every_configuration_once_per_round_and_the_baseline_twice() {
    for cell in thread_counts() {
        for round in 0..10 {
            let runs = || cell.runs.iter().filter(move |run| run.round == round);
            assert_eq!(runs().count(), 5);
            assert_eq!(runs().filter(|run| run.configuration == "plain").count(), 2);
            assert_eq!(
                runs().filter(|run| run.again).map(|run| run.configuration.as_str()).collect::<String>(),
                "plain"
            );
        }
    }
}

#[test]
fn means_deviations_and_ratios() {
    let results = results(&thread_counts(), mmap::WORKLOAD.figure);
    let [plain, glibc, std, spinpark] = &results[0].configurations[..] else { panic!() };
    assert!((plain.mean - 100_000.0).abs() < 500.0 && plain.of_means.is_none() && plain.ratio.is_none());
    assert!(plain.relative_deviation().unwrap() > 0.001 && plain.relative_deviation().unwrap() < 0.006);
    assert!((glibc.of_means.unwrap() - 0.6).abs() < 0.005 && glibc.verdict == Some(Verdict::Lower));
    assert_eq!(std.verdict, Some(Verdict::Equivalent));
    assert!((spinpark.ratio.unwrap().median - 2.5).abs() < 0.03 && spinpark.verdict == Some(Verdict::Higher));
    assert_eq!((results[0].rounds, results[2].configurations[0].spread.unwrap().jain), (10, 1.0));
    // 0.05 s ÷ 25,000 operations.
    assert!((plain.user_s - 2e-6).abs() < 1e-8 && (plain.system_s - 8e-6).abs() < 1e-7);
}

#[test]
fn time_is_better_when_it_is_less() {
    let cells = measured(vec![cell("", 2)], 8);
    let results = results(&cells, Figure::Elapsed);
    assert!(results[0].configurations.iter().all(|configuration| (configuration.mean - 0.25).abs() < 1e-12));
    assert_eq!(results[0].configurations[1].verdict, Some(Verdict::Equivalent));
}

#[test]
fn too_few_rounds_have_means_but_no_verdict() {
    let results = results(&measured(vec![cell("", 1)], 1), mmap::WORKLOAD.figure);
    let configuration = &results[0].configurations[1];
    assert!(configuration.of_means.is_some() && configuration.standard_deviation.is_none());
    assert!(configuration.ratio.is_none() && configuration.verdict.is_none());
}

#[test]
fn what_was_measured_before_an_interrupt_is_kept() {
    let mut left = 7;
    let (cells, end) = measure(vec![cell("", 1), cell("", 2)], 10, SEED, &mut |cell: &Measured, plan| {
        left -= 1;
        if left == 0 { Err(RunError::Interrupted) } else { Ok(report(cell, plan)) }
    });
    assert!(matches!(end, End::Interrupted));
    assert_eq!(cells.iter().map(|cell| cell.runs.len()).sum::<usize>(), 6);
}

#[test]
fn tables() {
    let results = results(&thread_counts(), mmap::WORKLOAD.figure);
    let text = [
        matrix(&mmap::WORKLOAD, &results, 2, Style::PLAIN).unwrap(),
        table(&mmap::WORKLOAD, &results, 2, Style::PLAIN),
        details(&jobs::WORKLOAD, &results, 2, Style::PLAIN),
        breakdown(&jobs::WORKLOAD, &results, 2, Style::PLAIN).unwrap(),
        Style::PLAIN.wrap(&explanation(&mmap::WORKLOAD, "plain"), 0) + "\n",
    ]
    .join("\n");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_document_can_be_read_again() {
    let cells = measured(vec![cell("touched", 2)], 6);
    let results = results(&cells, mmap::WORKLOAD.figure);
    let record = Record {
        head: Head {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            end: String::from("complete"),
            command: String::from("spinpark-lab documents mmap"),
            rounds: 6,
            millis: 250,
            seed: SEED,
            environment: spinpark_measure::rounds::environment::Environment::read(),
        },
        workload: String::from("mmap"),
        figure: mmap::WORKLOAD.figure.header(),
        file_system: None,
        cells,
    };
    let noise = spinpark_measure::rounds::machine::Noise::default();
    let document = Document { record: &record, noise: &noise, warnings: &[], results: &results };
    let text = serde_json::to_string(&document).unwrap();
    let read = Record::parse(&text).unwrap();
    assert_eq!(read.cells, record.cells);
    assert!(Record::parse(&text.replace("\"configuration", "\"arm")).is_err());
    assert!(Record::parse(&text.replace(FORMAT, "other")).unwrap_err().contains("a document `other`"));
}

/// Every adapter's mutex excludes, and the run says so by succeeding.
#[test]
fn mmap_on_every_adapter() {
    for adapter in ADAPTERS.iter().filter(|adapter| adapter.any_mutex.is_some()) {
        for sections in ["iteration", "calls"] {
            let request = Request {
                workload: String::from("mmap"),
                parameters: serde_json::json!({ "touch": "none", "sections": sections }),
                tasks: 3,
                millis: 20,
                adapter: Some(adapter.name.to_owned()),
                directory: None,
                seed: SEED,
            };
            let report = worker::run(&ADAPTERS, &serde_json::to_string(&request).unwrap()).unwrap();
            assert!(report.elapsed_s >= 0.02, "{}: {report:?}", adapter.name);
        }
    }
}

#[test]
fn runs_without_operations_count_in_means_and_are_said() {
    let mut cells = thread_counts();
    for run in cells[0].runs.iter_mut().filter(|run| run.configuration == "plain") {
        run.report.operations = 0;
    }
    for run in cells[1].runs.iter_mut().filter(|run| run.configuration == "mutex std" && run.round < 5) {
        run.report.operations = 0;
    }
    let results = results(&cells, mmap::WORKLOAD.figure);
    let [plain, glibc, ..] = &results[0].configurations[..] else { panic!() };
    assert_eq!((plain.mean, plain.empty_runs, plain.runs), (0.0, 20, 20));
    assert!(glibc.mean > 0.0 && glibc.of_means.is_none() && glibc.ratio.is_none());
    let [.., std, _] = &results[1].configurations[..] else { panic!() };
    assert!((std.of_means.unwrap() - 0.505).abs() < 0.01 && std.empty_runs == 5);
    let said = of_workload(mmap::WORKLOAD.name, &results, true, 256);
    let said: Vec<String> = said.iter().map(ToString::to_string).collect();
    let has = |words: &[&str]| said.iter().any(|text| words.iter().all(|word| text.contains(word)));
    assert!(has(&["plain in mmap touched at 1: 20 of 20 runs", "mutex std", "5 of 10 runs"]), "{said:?}");
    assert!(has(&["Nothing to compare with (touched at 1)", "`plain`"]), "{said:?}");
    let shown = table(&mmap::WORKLOAD, &results, 256, Style::PLAIN);
    assert!(shown.contains("plain") && !shown.contains("NaN") && !shown.contains("inf"), "{shown}");
}
