//! What makes results weak is said.

use spinpark_lockbench::locks::warnings;
use spinpark_lockbench::report::locks::{matrix, plot};
use spinpark_measure::report::Style;
use spinpark_measure::rounds::warnings::Warning;

use super::{IMPLEMENTATIONS, Mock, cell, many, results, run};

#[test]
fn weak_results_are_said_to_be_weak() {
    let results = results(&many());
    let kinds = |warnings: &[Warning]| -> Vec<String> {
        let kind = |warning| serde_json::to_value(warning).unwrap()["kind"].as_str().unwrap().to_owned();
        warnings.iter().map(kind).collect()
    };
    assert_eq!(kinds(&warnings::of_cells(&results, 2)), ["oversubscribed"]);
    let mut short = results.clone();
    short[2].implementations[1].elapsed_s = 0.001;
    short[0].implementations[0].fewest_operations = 3;
    assert_eq!(kinds(&warnings::of_cells(&short, 256)), ["few_operations", "waits_as_long_as_runs"]);
    let noisy = run(
        vec![cell("pair-single", 1, &IMPLEMENTATIONS[..2])],
        Mock::new(&[("glibc", 1.0), ("std", 1.0)], 0.4),
        8,
    );
    assert_eq!(kinds(&warnings::of_cells(&self::results(&noisy), 2)), ["noisy_cells", "wide_cells"]);
}

/// The baseline did nothing at 2 threads, and another implementation nothing in two of eight runs at 16.
#[test]
fn runs_without_operations_keep_their_rows_and_are_said() {
    let mut cells = many();
    for run in cells[1].runs.iter_mut().filter(|run| run.implementation == "glibc") {
        run.report.operations = 0;
    }
    for run in cells[2].runs.iter_mut().filter(|run| run.implementation == "std" && run.round < 2) {
        run.report.operations = 0;
    }
    let results = results(&cells);
    let [glibc, std, ..] = &results[1].implementations[..] else { panic!() };
    assert_eq!((glibc.implementation.as_str(), glibc.empty_runs, glibc.runs), ("glibc", 16, 16));
    assert!(glibc.time_ns.is_infinite() && std.time_ns.is_finite() && std.ratio.is_none());
    let std = &results[2].implementations[1];
    assert_eq!((std.empty_runs, std.runs, std.ratio.is_some()), (2, 8, true));

    let said: Vec<String> = warnings::of_cells(&results, 256).iter().map(ToString::to_string).collect();
    let has = |words: &[&str]| said.iter().any(|text| words.iter().all(|word| text.contains(word)));
    assert!(
        has(&["glibc in saturated at 2: 16 of 16 runs", "std in saturated at 16: 2 of 8 runs"]),
        "{said:?}"
    );
    assert!(has(&["Nothing to compare with (saturated at 2)", "`glibc`"]), "{said:?}");
    assert!(matrix::render(&results, 256, Style::PLAIN).contains("0 ops"));
    let implementations: Vec<String> = IMPLEMENTATIONS.iter().map(|name| String::from(*name)).collect();
    assert!(plot::render_all(&results, &implementations).is_ok());
}
