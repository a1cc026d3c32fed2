//! What of a run stands beside a published number.

use serde::Serialize;
use spinpark_lockbench::locks::result as of_locks;
use spinpark_lockbench::report::locks::effects;
use spinpark_measure::stats::Ratio;
use spinpark_measure::units::{change, number, percent, seconds};

use crate::documents::definition::{Ours, Show};
use crate::documents::outcome::{Outcome, What};
use crate::report::workloads::{value, word};
use crate::workloads::Workload;
use crate::workloads::result::{CellResult, ConfigurationResult};

/// A number with what says how good it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counterpart {
    /// The number, with the standard deviation of the runs in % of their mean.
    pub text: String,
    /// The interval, and the verdict.
    pub detail: String,
}

/// Our counterpart at `tasks`; none if it was not measured.
#[must_use]
pub fn of(ours: &Ours, tasks: usize, outcomes: &[Outcome]) -> Option<Counterpart> {
    let outcome = outcomes.iter().find(|outcome| outcome.name == ours.run)?;
    match &outcome.what {
        What::Workload { workload, results, .. } => of_workload(ours, tasks, workload, results),
        What::Locks { results, .. } => of_lock(ours, tasks, results),
        What::Nothing(_) => None,
    }
}

fn of_workload(
    ours: &Ours,
    tasks: usize,
    workload: &Workload,
    results: &[CellResult],
) -> Option<Counterpart> {
    let is_it = |result: &&CellResult| {
        result.tasks == tasks && ours.variant.as_ref().is_none_or(|variant| *variant == result.variant)
    };
    let configuration = results
        .iter()
        .find(is_it)?
        .configurations
        .iter()
        .find(|configuration| configuration.configuration == ours.configuration)?;
    let plain = |text: String| Counterpart { text, detail: String::new() };
    match &ours.show {
        Show::Mean => Some(plain(with_deviation(
            value(workload.figure, configuration.mean),
            configuration.relative_deviation(),
        ))),
        Show::Change => {
            let text = with_deviation(change(configuration.of_means?), configuration.relative_deviation());
            Some(Counterpart { text, detail: detail(configuration, workload, |ratio| ratio, change) })
        }
        Show::Ratio => {
            let text =
                with_deviation(two_digits(configuration.of_means?), configuration.relative_deviation());
            Some(Counterpart { text, detail: detail(configuration, workload, |ratio| ratio, two_digits) })
        }
        // The baseline is as fast as itself.
        Show::SpeedUp if configuration.of_means.is_none() => Some(plain(two_digits(1.0))),
        Show::SpeedUp => {
            let text =
                with_deviation(two_digits(1.0 / configuration.of_means?), configuration.relative_deviation());
            Some(Counterpart { text, detail: detail(configuration, workload, inverse, two_digits) })
        }
        Show::Tasks => Some(plain(tasks.to_string())),
        Show::Seconds(key) => column(configuration, key, seconds).map(plain),
        Show::Number(key) => column(configuration, key, number).map(plain),
    }
}

/// The mean of one of the workload's own numbers.
fn column(configuration: &ConfigurationResult, key: &str, shown: fn(f64) -> String) -> Option<String> {
    let value = *configuration.columns.get(key)?;
    let deviation = configuration.column_deviations.get(key).map(|deviation| deviation / value);
    Some(with_deviation(shown(value), deviation.filter(|deviation| deviation.is_finite())))
}

fn detail(
    configuration: &ConfigurationResult,
    workload: &Workload,
    turn: fn(Ratio) -> Ratio,
    shown: fn(f64) -> String,
) -> String {
    let (word, _) = word(workload.figure, configuration.verdict);
    configuration.ratio.map_or_else(String::new, |ratio| format!("{} {word}", interval(turn(ratio), shown)))
}

/// Locks have times per operation; what documents publish is throughput.
fn of_lock(ours: &Ours, tasks: usize, results: &[of_locks::CellResult]) -> Option<Counterpart> {
    let result = results.iter().find(|result| result.threads == tasks)?;
    let implementation = result
        .implementations
        .iter()
        .find(|implementation| implementation.implementation == ours.configuration)?;
    let ratio = inverse(implementation.ratio?);
    let detail = format!("{} {}", interval(ratio, change), effects::word(implementation.verdict));
    (ours.show == Show::Change).then(|| Counterpart { text: change(ratio.median), detail })
}

fn inverse(ratio: Ratio) -> Ratio {
    Ratio { median: 1.0 / ratio.median, low: 1.0 / ratio.high, high: 1.0 / ratio.low }
}

fn interval(ratio: Ratio, shown: fn(f64) -> String) -> String {
    format!("[{}, {}]", shown(ratio.low), shown(ratio.high))
}

fn two_digits(value: f64) -> String {
    format!("{value:.2}")
}

fn with_deviation(text: String, deviation: Option<f64>) -> String {
    match deviation {
        Some(deviation) => format!("{text} ±{}", percent(deviation)),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_less_is_a_throughput_that_is_more() {
        let time = Ratio { median: 0.5, low: 0.4, high: 0.8 };
        assert_eq!(interval(inverse(time), change), "[+25.0 %, +150 %]");
        assert_eq!(with_deviation(two_digits(inverse(time).median), Some(0.012)), "2.00 ±1.2 %");
    }
}
