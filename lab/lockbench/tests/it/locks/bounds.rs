//! Bounds: whether they hold.

use spinpark_lockbench::locks::bounds::{self, BoundResult, Judgement};
use spinpark_lockbench::locks::comparison::Context;
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::locks::experiment::Measured;
use spinpark_lockbench::report::bounds as bounds_table;
use spinpark_lockbench::report::locks::markdown;
use spinpark_measure::report::Style;

use super::{Mock, SEED, cell, environment, many, run};

fn judged(bound: &str, cells: &[Measured]) -> Vec<BoundResult> {
    let text = format!("[[bound]]\nwhat = \"b\"\nfigure = \"throughput\"\nworkload = \"saturated\"\n{bound}");
    let mut definitions = Definitions::built_in().unwrap();
    definitions.add(Definitions::parse("test", &text).unwrap());
    definitions.check("test").unwrap();
    of_preset(&definitions, cells)
}

/// The bounds of the preset `locks`.
pub(super) fn of_preset(definitions: &Definitions, cells: &[Measured]) -> Vec<BoundResult> {
    let implementations = definitions.implementations.iter().collect();
    let context = Context { implementations, calibration: None, cpus: 2, seed: SEED };
    bounds::judge_all(&context, &definitions.bounds_of("locks").unwrap(), cells)
}

#[test]
fn bounds_hold_are_missed_or_stay_undecided() {
    let cells = many();
    let judge = |bound: &str| {
        let [result] = &judged(bound, &cells)[..] else { panic!() };
        (result.judgement, result.with.clone(), result.ratio)
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
fn a_geometric_mean_is_one_row_and_each_count_one_by_itself() {
    let cells = many();
    let thread_counts =
        "threads = [2, 16, 256]\nours = [\"spinpark\", \"drop-in\"]\nagainst = \"best\"\nat_least = 1.1\n";
    assert_eq!(judged(thread_counts, &cells).len(), 6);
    let means = judged(&format!("{thread_counts}over = \"geometric-mean\"\n"), &cells);
    assert_eq!(means.len(), 2);
    assert_eq!(means[0].threads, [2, 16, 256]);
    assert!((means[0].ratio.unwrap() - 4.0 / 3.0).abs() < 0.05);
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
    let results = of_preset(&definitions, &cells);
    let measured: Vec<_> = results.into_iter().filter(|r| r.judgement != Judgement::NotMeasured).collect();
    insta::assert_snapshot!(bounds_table::render(&measured, 2, Style::PLAIN));
    let markdown =
        markdown::render(&[], &measured[..2], None, &environment(), "spinpark-lab bench locks --bounds");
    insta::assert_snapshot!("bounds_in_markdown", markdown);
}
