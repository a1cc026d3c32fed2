//! Document 003's columns, real, user and system time of a run, and the document's own figures; and what a
//! signal costs in calls and context switches.

use spinpark_lockbench::report::locks::dash;
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::text::units::{number, per_operation, seconds};

use crate::published;
use crate::wake_op_2005::condvar::{CONDVAR_CALLS, FUTEX_CALLS, SWITCHES, SYSTEM, USER};
use crate::workloads::result::{CellResult, ConfigurationResult};

/// The tables of one variant.
pub(super) fn render(results: &[CellResult], style: Style) -> String {
    let configurations: Vec<&ConfigurationResult> =
        results.iter().flat_map(|result| &result.configurations).collect();
    let costs = costs(&configurations, style);
    let explanation = "Means and standard deviations over runs; futex calls and context switches per signal, of both threads. Calls are from a second alternation in each \
                       run; on condvar: those on the condition variable's own words, where the lock counts them itself.";
    let documents = documents(&configurations, style).unwrap_or_default();
    format!("{costs}{}\n{documents}", style.wrap(explanation, 0))
}

fn costs(configurations: &[&ConfigurationResult], style: Style) -> String {
    let header = ["lock", "real", "user", "sys", "futex calls", "on condvar", "switches"];
    let mut rows = table(style, &header);
    for configuration in configurations {
        rows.add_row([
            configuration.configuration.clone(),
            with_deviation(configuration.mean, configuration.standard_deviation),
            time(configuration, USER),
            time(configuration, SYSTEM),
            count(configuration, FUTEX_CALLS),
            count(configuration, CONDVAR_CALLS),
            count(configuration, SWITCHES),
        ]);
    }
    text(&rows)
}

/// The document's figures and ours; none if nothing of the document was measured.
fn documents(configurations: &[&ConfigurationResult], style: Style) -> Option<String> {
    let original = configurations.iter().find(|configuration| configuration.configuration == BASELINE)?.mean;
    let header = ["document 003", "real", "user", "sys", "orig ÷ this", "orig ÷ this, here"];
    let mut rows = table(style, &header);
    for configuration in configurations {
        let Some(times) = times(&configuration.configuration) else { continue };
        let [real, user, system] = times.map(|time| format!("{time:.3} s"));
        let speed_up = speed_up(&configuration.configuration).map_or_else(dash, ratio);
        rows.add_row([
            configuration.configuration.clone(),
            real,
            user,
            system,
            speed_up,
            ratio(original / configuration.mean),
        ]);
    }
    let explanation = "The document's machine had one CPU (x86-64, 2005; means of two runs): its ratios compare with ours, its \
                       seconds do not.";
    Some(format!("\n{}{}\n", text(&rows), style.wrap(explanation, 0)))
}

fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// `203 ms ±1.2 %`, `203 ms ±12 %`.
fn with_deviation(value: f64, standard_deviation: Option<f64>) -> String {
    let percent = standard_deviation.map(|deviation| 100.0 * deviation / value);
    let deviation = match percent.filter(|percent| percent.is_finite()) {
        None => String::new(),
        Some(percent) if percent < 9.95 => format!(" ±{percent:.1} %"),
        Some(percent) => format!(" ±{percent:.0} %"),
    };
    seconds(value) + &deviation
}

fn time(configuration: &ConfigurationResult, key: &str) -> String {
    let deviation = configuration.column_deviations.get(key).copied();
    configuration.columns.get(key).map_or_else(dash, |&value| match value {
        0.0 => per_operation(value),
        value => with_deviation(value, deviation),
    })
}

fn count(configuration: &ConfigurationResult, key: &str) -> String {
    configuration.columns.get(key).map_or_else(dash, |&value| match value {
        // One call at the start or the end more or less is none per signal.
        v if v < 0.01 => String::from("0"),
        v if v < 99.5 => format!("{v:.2}"),
        v => number(v),
    })
}

/// What the document compares with.
const BASELINE: &str = "classic-condvar-orig";

/// Real, user and system time in seconds on one CPU (x86-64, 2005): means of the published runs of a lock.
fn times(lock: &str) -> Option<[f64; 3]> {
    // The document writes `wake_op`.
    let variant = lock.strip_prefix("classic-condvar-")?.replace('-', "_");
    let [real, user, system] =
        ["real_s", "user_s", "sys_s"].map(|column| published::mean("condvar_signal", &variant, column));
    Some([real?, user?, system?])
}

/// How much faster than `orig` the published runs of a lock are: 1 for `orig`.
fn speed_up(lock: &str) -> Option<f64> {
    Some(times(BASELINE)?[0] / times(lock)?[0])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use spinpark_measure::report::WIDTH;

    use super::*;

    fn configuration(name: &str, mean: f64, calls: Option<f64>) -> ConfigurationResult {
        let columns = [(USER, mean / 3.0), (SYSTEM, mean / 2.0), (SWITCHES, 2.0)];
        let calls = calls.map(|calls| (FUTEX_CALLS, calls));
        let named = |(key, value): (&str, f64)| (key.to_owned(), value);
        ConfigurationResult {
            configuration: name.to_owned(),
            mean,
            standard_deviation: Some(mean / 100.0),
            columns: columns.into_iter().chain(calls).map(named).collect(),
            column_deviations: BTreeMap::from([named((USER, mean / 30.0))]),
            ..ConfigurationResult::default()
        }
    }

    fn rendered(configurations: Vec<ConfigurationResult>) -> String {
        let result = CellResult { variant: String::new(), tasks: 2, rounds: 6, again: None, configurations };
        render(&[result], Style::PLAIN)
    }

    #[test]
    fn the_documents_columns_and_figures() {
        let shown = rendered(vec![
            configuration(BASELINE, 0.2, Some(5.999)),
            configuration("classic-condvar-wake-op", 0.1, Some(3.0)),
            configuration("drop-in+SPINPARK_RSEQ=0", 0.1, None),
        ]);
        for part in ["200 ms ±1.0 %", "66.7 ms ±10 %", "100 ms", "6.00", "3.00", "–"] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
        let wake_op = shown.lines().rfind(|line| line.contains("wake-op")).unwrap();
        assert!(
            wake_op.contains("0.381 s") && wake_op.contains("1.72") && wake_op.ends_with("2.00"),
            "{shown}"
        );
        assert!(shown.lines().all(|line| line.chars().count() <= usize::from(WIDTH)), "{shown}");
    }

    #[test]
    fn without_the_original_there_is_nothing_to_compare_with() {
        assert!(!rendered(vec![configuration("classic-condvar-wake-op", 0.1, None)]).contains("document"));
    }

    #[test]
    fn the_speed_ups_of_the_document() {
        let rounded = |lock| (speed_up(lock).unwrap() * 100.0).round();
        assert_eq!(
            [BASELINE, "classic-condvar-requeue", "classic-condvar-wake-op"].map(rounded),
            [100.0, 128.0, 172.0]
        );
        assert_eq!(speed_up("glibc"), None);
        assert!((times("classic-condvar-wake-op").unwrap()[2] - 0.2055).abs() < 1e-12);
    }
}
