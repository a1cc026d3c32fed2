//! From runs to reports, without a clock and without a process.

use spinpark_bench::environment::Environment;
use spinpark_bench::failure::RunError;
use spinpark_bench::locks::bounds::{self, BoundResult, Judgement};
use spinpark_bench::locks::definitions::Definitions;
use spinpark_bench::locks::experiment::{Cell, CellExecutor, Measured, Plan, measure};
use spinpark_bench::locks::load::Load;
use spinpark_bench::locks::result::CellResult;
use spinpark_bench::locks::shapes::{Report, WaitReport};
use spinpark_bench::machine::Noise;
use spinpark_bench::measure::End;
use spinpark_bench::report::Style;
use spinpark_bench::report::json::Output;
use spinpark_bench::report::locks::document::{Document, FORMAT, Record, SCHEMA, VersionedTarget};
use spinpark_bench::report::locks::{
    bounds as bounds_table, details, effects, markdown, matrix, pairwise, plot,
};
use spinpark_bench::stats::verdict::Verdict;
use spinpark_bench::warnings;

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
        let place = self.times_ns.iter().position(|(name, _)| *name == plan.target).unwrap();
        let x = (plan.round * 7 + place * 3 + usize::from(plan.again)) as f64;
        let ns = self.times_ns[place].1 * (1.0 + self.noise * (x * 12.9898).sin());
        let waits = cell.load.has_waits().then(|| WaitReport {
            buckets: vec![(40, 900), (4_000, 99), (1_000_000, 1)],
            longest_ns: 1_000_000 + ns as u64,
            longest_gap_ns: 2_000_000,
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
            waits,
        })
    }
}

fn cell(shape: &str, threads: usize, targets: &[&str]) -> Measured {
    let load: Load = Definitions::built_in().unwrap().shape(shape).unwrap().load.clone();
    let targets = targets.iter().map(|name| String::from(*name)).collect();
    let at_least_millis = 0;
    Measured::new(Cell { shape: shape.into(), load, threads, at_least_millis, targets, skipped: Vec::new() })
}

fn run(cells: Vec<Measured>, mut mock: Mock, rounds: usize) -> Vec<Measured> {
    let (cells, end) = measure(cells, rounds, SEED, &mut mock, &mut ());
    assert!(matches!(end, End::Complete));
    cells
}

fn results(cells: &[Measured]) -> Vec<CellResult> {
    cells.iter().filter_map(|cell| CellResult::new(cell, SEED)).collect()
}

fn environment() -> Environment {
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

const TARGETS: [&str; 5] = ["glibc", "std", "parking_lot", "spinpark", "drop-in"];

fn many() -> Vec<Measured> {
    let mut cells: Vec<_> =
        [1, 2, 16, 256].into_iter().map(|threads| cell("saturated", threads, &TARGETS)).collect();
    cells.push(cell("pair-threaded", 1, &TARGETS));
    cells.push(cell("write-pair", 1, &TARGETS));
    let times =
        [("glibc", 100.0), ("std", 90.0), ("parking_lot", 80.0), ("spinpark", 60.0), ("drop-in", 65.0)];
    run(cells, Mock::new(&times, 0.01), 8)
}

#[test]
fn the_baseline_runs_twice_and_every_other_target_once() {
    let cells = many();
    for measured in &cells {
        assert_eq!(measured.runs.len(), 8 * 6);
        for round in 0..8 {
            let runs = || measured.runs.iter().filter(move |run| run.plan.round == round);
            assert_eq!(runs().filter(|run| run.plan.again).count(), 1);
            for target in TARGETS {
                assert_eq!(runs().filter(|run| run.plan.target == target && !run.plan.again).count(), 1);
            }
        }
    }
    let orders = |measured: &Measured| measured.runs.iter().map(|run| run.plan.clone()).collect::<Vec<_>>();
    assert_eq!(many().iter().map(orders).collect::<Vec<_>>(), cells.iter().map(orders).collect::<Vec<_>>());
}

#[test]
fn figures_follow_from_runs() {
    let results = results(&many());
    let saturated = &results[2];
    assert_eq!((saturated.shape.as_str(), saturated.threads, saturated.rounds), ("saturated", 16, 8));
    let [glibc, .., spinpark, _] = &saturated.targets[..] else { panic!() };
    assert!((glibc.time_ns - 100.0).abs() < 3.0 && glibc.ratio.is_none() && glibc.verdict.is_none());
    assert!((spinpark.ratio.unwrap().median - 0.6).abs() < 0.03);
    assert_eq!(spinpark.verdict, Some(Verdict::Lower));
    assert!((spinpark.cpu_ns - 2.0 * spinpark.time_ns).abs() < 1e-6);
    let waits = spinpark.waits.unwrap();
    assert!((waits.p50 - 40.0).abs() < 1.0 && (waits.p99 - 4_000.0).abs() < 40.0, "{waits:?}");
    assert!((waits.p999 - 4_000.0).abs() < 40.0 && waits.longest > 1e6);
    assert_eq!(results[4].targets[0].waits, None);
}

#[test]
fn tables() {
    let results = results(&many());
    let mut text = matrix::render(&results, 2, Style::PLAIN);
    text += &details::render(&results[2], 2, Style::PLAIN);
    insta::assert_snapshot!(text);
}

#[test]
fn two_targets_are_a_row_per_cell() {
    let two = ["glibc", "drop-in"];
    let cells = vec![cell("pair-threaded", 1, &two), cell("saturated", 16, &two)];
    let results = results(&run(cells, Mock::new(&[("glibc", 100.0), ("drop-in", 65.0)], 0.01), 8));
    let names = pairwise::names(&results).unwrap();
    assert_eq!(names, two);
    let waits = pairwise::render_waits(&results, Style::PLAIN).unwrap();
    insta::assert_snapshot!(pairwise::render(&results, names, 2, Style::PLAIN) + &waits);
    let markdown =
        markdown::render(&results, &[], None, &environment(), "spinpark bench pthread --shape saturated");
    insta::assert_snapshot!("two_targets_in_markdown", markdown);
}

#[test]
fn many_targets_in_markdown() {
    let results = results(&many());
    insta::assert_snapshot!(markdown::render(&results, &[], None, &environment(), "spinpark bench locks"));
}

#[test]
fn tables_fit_their_width() {
    let names = ["glibc", "drop-in+SPINPARK_SOME_LONG_NAME=1", "std", "spinpark"];
    let cells = [1, 2, 3, 4, 5, 10, 20, 40, 64, 256].into_iter().map(|n| cell("saturated", n, &names));
    let times = [("glibc", 123_456.0), (names[1], 9e9), ("std", 12_345_678.0), ("spinpark", 0.001)];
    let cells = run(cells.collect(), Mock::new(&times, 0.3), 6);
    let results = results(&cells);
    for width in [100, 160] {
        let style = Style { width, ..Style::PLAIN };
        let mut text = matrix::render(&results, 2, style) + &details::render(&results[3], 2, style);
        let definitions = Definitions::built_in().unwrap();
        text += &bounds_table::render(&bounds::judge_all(&definitions, &cells, SEED).unwrap(), 2, style);
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= usize::from(width), "{longest} of {width}:\n{text}");
    }
}

/// A long name stays whole as long as there is room for it, and then is broken at a hyphen, never inside of a word.
#[test]
fn long_names_are_not_broken_in_a_word() {
    let recorded = ["glibc", "glibc-recorded-contended", "drop-in-recorded-contended"];
    let longer = ["glibc", "drop-in-recorded-contended-by-others", "drop-in+SPINPARK_SOME_LONG_NAME=1"];
    let parts =
        ["glibc", "drop-in-recorded-contended-by-", "others", "drop-in+SPINPARK_SOME_LONG_", "NAME=1"];
    for (names, expected) in [(recorded, &recorded[..]), (longer, &parts)] {
        let times = [(names[0], 17.4), (names[1], 23_456.0), (names[2], 65.0)];
        let results = results(&run(vec![cell("saturated", 2, &names)], Mock::new(&times, 0.3), 8));
        let text = details::render(&results[0], 2, Style::PLAIN);
        let rows = text.lines().skip_while(|line| !line.starts_with('═')).skip(1);
        let rows = rows.take_while(|line| !line.starts_with('─'));
        let firsts: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(firsts, expected, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

/// Variants of one lock: is there an effect?
#[test]
fn variants_have_an_effect_or_none() {
    let names = ["classic-mtx", "classic-mtx-backoff", "classic-mtx-counter", "classic-mtx-larger"];
    let cells = [1, 2, 4, 16].map(|threads| cell("hot-lock", threads, &names)).to_vec();
    let times = [(names[0], 100.0), (names[1], 83.0), (names[2], 140.0), (names[3], 100.0)];
    let results = results(&run(cells, Mock::new(&times, 0.005), 12));
    let definitions = Definitions::built_in().unwrap();
    let targets = names.map(|name| definitions.target(name).unwrap().clone());
    assert_eq!(effects::baseline(&targets), Some(names[0]));
    assert_eq!(effects::baseline(&targets[..1]), None);
    assert_eq!(effects::baseline([&targets[1], &targets[0]]), None);
    let text = effects::render(&results, names[0], 2, Style::PLAIN);
    let width = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(width <= 100, "{text}");
    insta::assert_snapshot!("variants", text);
    let markdown = markdown::render(&results[..1], &[], Some(names[0]), &environment(), "spinpark bench mtx");
    insta::assert_snapshot!("variants_in_markdown", markdown);
}

fn judged(bound: &str, cells: &[Measured]) -> Vec<BoundResult> {
    let text = format!("[[bound]]\nwhat = \"b\"\nfigure = \"throughput\"\nshape = \"saturated\"\n{bound}");
    let mut definitions = Definitions::built_in().unwrap();
    definitions.add(Definitions::parse("test", &text).unwrap());
    definitions.check("test").unwrap();
    bounds::judge_all(&definitions, cells, SEED).unwrap()
}

#[test]
fn bounds_hold_are_missed_or_stay_undecided() {
    let cells = many();
    let judge = |bound: &str| {
        let [result] = &judged(bound, &cells)[..] else { panic!() };
        (result.judgement, result.against.clone(), result.ratio.map(|ratio| ratio.median))
    };
    let best = "threads = [16]\nours = [\"spinpark\"]\nagainst = \"best\"\n";
    // 80 ns of parking_lot, the best peer, over 60 ns.
    let (judgement, against, ratio) = judge(&format!("{best}at_least = 1.2"));
    assert_eq!((judgement, &against[..]), (Judgement::Holds, &[String::from("parking_lot")][..]));
    assert!((ratio.unwrap() - 4.0 / 3.0).abs() < 0.05);
    assert_eq!(judge(&format!("{best}at_least = 1.5")).0, Judgement::Missed);
    assert_eq!(judge(&format!("{best}at_least = {}", ratio.unwrap())).0, Judgement::Undecided);
    let glibc = "threads = [16]\nours = [\"drop-in\"]\nagainst = \"glibc\"\n";
    assert_eq!(judge(&format!("{glibc}at_least = 1.4")).0, Judgement::Holds);
    let unmeasured = "threads = [3]\nours = [\"drop-in\"]\nagainst = \"glibc\"\nat_least = 1.4";
    assert_eq!(judge(unmeasured), (Judgement::NotMeasured, Vec::new(), None));
}

#[test]
fn a_geometric_mean_is_one_row_and_each_rung_one_by_itself() {
    let cells = many();
    let rungs =
        "threads = [2, 16, 256]\nours = [\"spinpark\", \"drop-in\"]\nagainst = \"best\"\nat_least = 1.1\n";
    assert_eq!(judged(rungs, &cells).len(), 6);
    let means = judged(&format!("{rungs}over = \"geometric-mean\"\n"), &cells);
    assert_eq!(means.len(), 2);
    assert_eq!(means[0].threads, [2, 16, 256]);
    assert!((means[0].ratio.unwrap().median - 4.0 / 3.0).abs() < 0.05);
    assert_eq!(means[0].judgement, Judgement::Holds);
}

/// Too few rounds for an interval are no verdict.
#[test]
fn few_rounds_are_undecided() {
    let cells = run(
        vec![cell("saturated", 16, &["glibc", "spinpark"])],
        Mock::new(&[("glibc", 9.0), ("spinpark", 1.0)], 0.0),
        3,
    );
    let bound = "threads = [16]\nours = [\"spinpark\"]\nagainst = \"best\"\nat_least = 1.0\n";
    assert_eq!(judged(bound, &cells)[0].judgement, Judgement::Undecided);
}

#[test]
fn bounds_as_a_table() {
    let cells = many();
    let definitions = Definitions::built_in().unwrap();
    let results = bounds::judge_all(&definitions, &cells, SEED).unwrap();
    let measured: Vec<_> = results.into_iter().filter(|r| r.judgement != Judgement::NotMeasured).collect();
    insta::assert_snapshot!(bounds_table::render(&measured, 2, Style::PLAIN));
    let markdown =
        markdown::render(&[], &measured[..2], None, &environment(), "spinpark bench locks --bounds");
    insta::assert_snapshot!("bounds_in_markdown", markdown);
}

#[test]
fn an_interrupted_run_keeps_what_was_measured() {
    let mock = Mock { stop_after: 20, ..Mock::new(&[("glibc", 1.0), ("std", 1.0)], 0.0) };
    let mut mock = mock;
    let cells = vec![cell("pair-single", 1, &["glibc", "std"])];
    let (cells, end) = measure(cells, 50, SEED, &mut mock, &mut ());
    assert!(matches!(end, End::Interrupted));
    assert_eq!(cells[0].runs.len(), 20);
    assert_eq!(results(&cells)[0].rounds, 6);
}

fn record(cells: Vec<Measured>) -> Record {
    let definitions = Definitions::built_in().unwrap();
    let target =
        |name: &&str| VersionedTarget { target: definitions.target(name).unwrap().clone(), version: None };
    Record {
        format: FORMAT.to_owned(),
        schema: SCHEMA,
        end: String::from("complete"),
        command: String::from("spinpark bench locks"),
        rounds: 8,
        millis: 100,
        seed: SEED,
        environment: environment(),
        targets: TARGETS.iter().map(target).collect(),
        bound_definitions: definitions.bounds.clone(),
        cells,
    }
}

#[test]
fn a_document_can_be_read_again() {
    let record = record(many());
    let results = results(&record.cells);
    let (noise, warnings) = (Noise::default(), warnings::of_cells(&results, 2));
    let document =
        Document { record: &record, noise: &noise, warnings: &warnings, results: &results, bounds: &[] };
    let file = tempfile::NamedTempFile::new().unwrap();
    Output::open(file.path()).unwrap().write_compact(&document).unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    let again = Record::parse(&text).unwrap();
    assert_eq!(again.cells, record.cells);
    assert_eq!(again.targets, record.targets);
    assert_eq!(again.bound_definitions, record.bound_definitions);
    assert_eq!(self::results(&again.cells), results);
    assert_eq!(again.file_name(), "2026-01-02-some-r-cpu-2-ghz-2cpus-vm.json");
    let newer = text.replacen("\"schema\":1", "\"schema\":99", 1);
    assert!(Record::parse(&newer).unwrap_err().contains("schema 99"));
    assert!(Record::parse("{}").unwrap_err().contains("not a record"));
}

#[test]
fn weak_results_are_said_to_be_weak() {
    let results = results(&many());
    let kinds = |warnings: &[warnings::Warning]| -> Vec<String> {
        let kind = |warning| serde_json::to_value(warning).unwrap()["kind"].as_str().unwrap().to_owned();
        warnings.iter().map(kind).collect()
    };
    assert_eq!(kinds(&warnings::of_cells(&results, 2)), ["oversubscribed"]);
    let mut short = results.clone();
    short[2].targets[1].elapsed_s = 0.001;
    short[0].targets[0].fewest_operations = 3;
    assert_eq!(kinds(&warnings::of_cells(&short, 256)), ["few_operations", "waits_as_long_as_runs"]);
    let noisy =
        run(vec![cell("pair-single", 1, &TARGETS[..2])], Mock::new(&[("glibc", 1.0), ("std", 1.0)], 0.4), 8);
    assert_eq!(kinds(&warnings::of_cells(&self::results(&noisy), 2)), ["noisy_cells", "wide_cells"]);
}

#[test]
fn plots_are_well_formed() {
    let results = results(&many());
    let targets: Vec<String> = TARGETS.iter().map(|name| String::from(*name)).collect();
    let plots = plot::render_all(&results, &targets).unwrap();
    let names: Vec<_> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["saturated.svg", "pair-threaded.svg", "write-pair.svg"]);
    for (name, svg) in &plots {
        let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(document.root_element().tag_name().name(), "svg");
        let texts: String = document.descendants().filter_map(|node| node.text()).collect();
        for target in TARGETS {
            assert!(texts.contains(target), "no `{target}` in {name}");
        }
    }
    assert!(plot::render("empty", &[], &targets).is_err());
}

/// The baseline did nothing at 2 threads, and another target nothing in two of eight runs at 16.
#[test]
fn runs_without_operations_keep_their_rows_and_are_said() {
    let mut cells = many();
    for run in cells[1].runs.iter_mut().filter(|run| run.plan.target == "glibc") {
        run.report.operations = 0;
    }
    for run in cells[2].runs.iter_mut().filter(|run| run.plan.target == "std" && run.plan.round < 2) {
        run.report.operations = 0;
    }
    let results = results(&cells);
    let [glibc, std, ..] = &results[1].targets[..] else { panic!() };
    assert_eq!((glibc.target.as_str(), glibc.empty_runs, glibc.runs), ("glibc", 16, 16));
    assert!(glibc.time_ns.is_infinite() && std.time_ns.is_finite() && std.ratio.is_none());
    let std = &results[2].targets[1];
    assert_eq!((std.empty_runs, std.runs, std.ratio.is_some()), (2, 8, true));

    let said: Vec<String> = warnings::of_cells(&results, 256).iter().map(ToString::to_string).collect();
    let has = |words: &[&str]| said.iter().any(|text| words.iter().all(|word| text.contains(word)));
    assert!(
        has(&["glibc in saturated at 2: 16 of 16 runs", "std in saturated at 16: 2 of 8 runs"]),
        "{said:?}"
    );
    assert!(has(&["Nothing to compare with (saturated at 2)", "`glibc`"]), "{said:?}");
    assert!(matrix::render(&results, 256, Style::PLAIN).contains("0 ops"));
    let targets: Vec<String> = TARGETS.iter().map(|name| String::from(*name)).collect();
    assert!(plot::render_all(&results, &targets).is_ok());
}
