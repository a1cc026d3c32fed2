//! From samples to reports, without a clock and without a process.

use spinpark_measure::report::{Printed, Style, compare_table};
use spinpark_measure::rounds::blocks::Plan;
use spinpark_measure::rounds::compare::Comparison;
use spinpark_measure::rounds::configuration::{Configuration, Subject};
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::machine::Noise;
use spinpark_measure::rounds::measure::{End, Executor, Measurement, Silent, measure};
use spinpark_measure::rounds::sample::{Metric, Sample};
use spinpark_measure::rounds::warnings;
use spinpark_measure::stats::verdict::Verdict;

const SEED: u64 = 1;
const METRICS: [Metric; 4] = [Metric::Wall, Metric::Cpu, Metric::Switches, Metric::Memory];

/// A program whose cost is a formula: a base, a factor on spinpark, and noise that depends on the block.
struct Mock {
    base_s: f64,
    factor: f64,
    noise: f64,
    stop_after: usize,
    runs: usize,
}

impl Mock {
    fn new(factor: f64, noise: f64) -> Self {
        Self { base_s: 1.0, factor, noise, stop_after: usize::MAX, runs: 0 }
    }

    /// A deterministic number between -1 and 1 that looks like noise.
    fn wobble(plan: &Plan) -> f64 {
        let configuration = plan
            .configuration
            .subject()
            .configurations()
            .iter()
            .position(|configuration| *configuration == plan.configuration)
            .unwrap();
        let x = (plan.block * 3 + configuration) as f64;
        (x * 12.9898).sin()
    }
}

impl Executor for Mock {
    fn execute(&mut self, plan: &Plan) -> Result<Sample, RunError> {
        if self.runs == self.stop_after {
            return Err(RunError::Interrupted);
        }
        self.runs += 1;
        let is_candidate = matches!(plan.configuration, Configuration::Spinpark | Configuration::After);
        let factor = if is_candidate { self.factor } else { 1.0 };
        let wall_s = self.base_s * factor * (1.0 + self.noise * Self::wobble(plan));
        Ok(Sample {
            wall_s,
            cpu_s: wall_s * 2.0,
            voluntary_switches: (1000.0 * wall_s) as u64,
            involuntary_switches: 0,
            peak_bytes: 50 << 20,
            printed: Some(1e6 / wall_s),
        })
    }
}

fn report(measurement: &Measurement, metrics: &[Metric], printed: &Printed) -> String {
    let comparison = Comparison::new(&measurement.runs, metrics, SEED);
    let mut text = compare_table::render(&comparison, printed, 5e6, Style::PLAIN);
    if let Some(sentence) = compare_table::conclusion(&comparison, printed, Style::PLAIN) {
        text += &format!("{sentence}\n");
    }
    let warnings = warnings::of(&comparison, &Noise::default(), false);
    text + &compare_table::warnings(&warnings, Style::PLAIN)
}

fn run(mut mock: Mock, rounds: usize) -> Measurement {
    measure(Subject::Locks, rounds, SEED, &mut mock, &mut Silent)
}

fn verdict(mock: Mock, rounds: usize) -> Verdict {
    Comparison::new(&run(mock, rounds).runs, &[Metric::Wall], SEED).metrics[0].verdict
}

/// Two programs have the same verdicts as two kinds of locks, and their own names.
#[test]
fn programs() {
    let mut mock = Mock::new(0.8, 0.01);
    let measurement = measure(Subject::Programs, 10, SEED, &mut mock, &mut Silent);
    insta::assert_snapshot!(report(&measurement, &METRICS, &Printed::default()));
}

#[test]
fn faster() {
    insta::assert_snapshot!(report(&run(Mock::new(0.8, 0.01), 10), &METRICS, &Printed::default()));
}

#[test]
fn equivalent() {
    insta::assert_snapshot!(report(&run(Mock::new(1.0, 0.003), 10), &METRICS, &Printed::default()));
}

#[test]
fn too_noisy_to_say() {
    insta::assert_snapshot!(report(&run(Mock::new(0.97, 0.2), 10), &METRICS, &Printed::default()));
}

#[test]
fn a_throughput_that_the_program_prints() {
    let printed = Printed { unit: String::from("transactions/s"), higher_is_better: true };
    let metrics = [Metric::Printed, Metric::Wall];
    insta::assert_snapshot!(report(&run(Mock::new(0.8, 0.01), 10), &metrics, &printed));
}

#[test]
fn interrupted_before_an_interval_exists() {
    let mock = Mock { stop_after: 13, ..Mock::new(0.8, 0.01) };
    let measurement = run(mock, 10);
    assert!(matches!(measurement.end, End::Interrupted));
    assert_eq!(measurement.runs.len(), 13);
    insta::assert_snapshot!(report(&measurement, &METRICS, &Printed::default()));
}

#[test]
fn runs_too_short_and_too_small() {
    let mock = Mock { base_s: 0.004, ..Mock::new(1.0, 0.003) };
    let measurement = run(mock, 6);
    let comparison = Comparison::new(&measurement.runs, &METRICS, SEED);
    let table = compare_table::render(&comparison, &Printed::default(), 60e6, Style::PLAIN);
    let noise = Noise { steal: 0.05, others: 0.4 };
    let warnings = compare_table::warnings(&warnings::of(&comparison, &noise, true), Style::PLAIN);
    insta::assert_snapshot!(table + &warnings);
}

/// The same program in all configurations is never called faster or slower, whatever the noise.
#[test]
fn a_configuration_against_itself_is_no_difference() {
    for noise in [0.0, 0.001, 0.01, 0.05, 0.2, 0.5] {
        for rounds in [6, 10, 25] {
            let verdict = verdict(Mock::new(1.0, noise), rounds);
            assert!(
                matches!(verdict, Verdict::Equivalent | Verdict::Undecided),
                "{noise} {rounds}: {verdict:?}"
            );
        }
    }
}

#[test]
fn large_differences_are_seen_in_both_directions() {
    assert_eq!(verdict(Mock::new(0.7, 0.02), 10), Verdict::Lower);
    assert_eq!(verdict(Mock::new(1.4, 0.02), 10), Verdict::Higher);
}

#[test]
fn tables_fit_100_columns() {
    let mock = Mock { base_s: 123_456.0, ..Mock::new(30.0, 0.3) };
    let printed = Printed { unit: String::from("a rather long name of a unit"), higher_is_better: false };
    let metrics = [Metric::Printed, Metric::Wall, Metric::Cpu, Metric::Switches, Metric::Memory];
    let text = report(&run(mock, 10), &metrics, &printed);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
