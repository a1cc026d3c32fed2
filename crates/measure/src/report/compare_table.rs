//! The result of `spinpark compare` for people.

use std::fmt::Write;

use crate::text::units::{change, percent};

use super::{Goodness, Printed, Style, interval, interval_of, metric_name, table, text, value, verdict_word};
use crate::rounds::compare::{Comparison, Summary};
use crate::rounds::configuration::{Configuration, Subject};
use crate::rounds::sample::Metric;
use crate::rounds::warnings::Warning;
use crate::stats::verdict::Verdict;

/// The table, one row per metric. `memory_floor` is the least peak memory that can be seen, in bytes.
#[must_use]
pub fn render(comparison: &Comparison, printed: &Printed, memory_floor: f64, style: Style) -> String {
    let [baseline, _, candidate] = comparison.subject.configurations().map(Configuration::name);
    let interval = interval_of(comparison.error);
    let header = ["median of runs", baseline, candidate, "change", &interval, "noise", "verdict"];
    let mut rows = table(style, &header);
    for summary in &comparison.metrics {
        let invisible = summary.metric == Metric::Memory && is_below(summary, memory_floor);
        rows.add_row(if invisible { below_row(memory_floor) } else { row(summary, printed, style) });
    }
    text(&rows)
}

fn row(summary: &Summary, printed: &Printed, style: Style) -> Vec<comfy_table::Cell> {
    let metric = summary.metric;
    let shown =
        |number: Option<f64>| number.map_or_else(|| String::from("–"), |number| value(metric, number));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| String::from("–"));
    let (word, goodness) = match summary.change {
        Some(_) => verdict_word(metric, summary.verdict, printed),
        None => ("–", Goodness::Neither),
    };
    let [baseline, candidate] = summary.medians.both().map(shown);
    vec![
        metric_name(metric, printed).into(),
        baseline.into(),
        candidate.into(),
        or_dash(summary.change.map(|ratio| change(ratio.median))).into(),
        or_dash(summary.change.map(|ratio| interval(&ratio))).into(),
        or_dash(summary.noise_floor().map(|floor| format!("±{}", percent(floor)))).into(),
        style.verdict(word, goodness),
    ]
}

/// A child starts as a copy of us, and the kernel counts that copy: smaller programs cannot be distinguished.
fn is_below(summary: &Summary, floor: f64) -> bool {
    !summary.medians.both().into_iter().flatten().any(|bytes| bytes > floor)
}

fn below_row(floor: f64) -> Vec<comfy_table::Cell> {
    let below = format!("< {}", value(Metric::Memory, floor));
    let cells = ["peak memory", &below, &below, "–", "–", "–", "–"];
    cells.map(comfy_table::Cell::new).to_vec()
}

/// One sentence with the answer.
#[must_use]
pub fn conclusion(comparison: &Comparison, printed: &Printed, style: Style) -> Option<String> {
    let primary = comparison.primary()?;
    let ratio = primary.change?;
    let name = metric_name(primary.metric, printed);
    let (word, _) = verdict_word(primary.metric, primary.verdict, printed);
    let numbers = format!("{} {}", change(ratio.median), interval(&ratio));
    let sentence = match (primary.verdict, comparison.subject) {
        (Verdict::Lower | Verdict::Higher, Subject::Locks) => {
            format!("On spinpark's locks it is {word}: {name} {numbers}.")
        }
        (Verdict::Lower | Verdict::Higher, Subject::Programs) => {
            format!("`after` is {word} than `before`: {name} {numbers}.")
        }
        (Verdict::Equivalent, Subject::Locks) => format!("No change on spinpark's locks: {name} {numbers}."),
        (Verdict::Equivalent, Subject::Programs) => {
            format!("No change from `before` to `after`: {name} {numbers}.")
        }
        (Verdict::Undecided, _) => format!("Undecided: {name} {numbers}; noise floor {}.", floor(primary)),
    };
    let price = price(comparison, printed).map_or(String::new(), |price| format!(" {price}"));
    Some(style.wrap(&format!("{sentence}{price}"), 0))
}

/// What an improvement is bought with: CPU time that rises more than the work that is done, beyond the noise.
fn price(comparison: &Comparison, printed: &Printed) -> Option<String> {
    let of = |metric| comparison.metrics.iter().find(|summary| summary.metric == metric);
    let primary = comparison.primary()?;
    let (_, Goodness::Good) = verdict_word(primary.metric, primary.verdict, printed) else { return None };
    let cpu = of(Metric::Cpu)?;
    let time = cpu.change?;
    // A rate times the length of the run is the work that was done. What another number implies is not
    // known.
    let (about, work, most) = match primary.metric {
        Metric::Printed if printed.higher_is_better => {
            let (rate, wall) = (primary.change?, of(Metric::Wall)?.change?);
            ("about ", rate.median * wall.median, rate.high * wall.high)
        }
        Metric::Wall => ("", 1.0, 1.0),
        _ => return None,
    };
    let noise = 1.0 + cpu.noise_floor()?;
    (time.low > most && time.median / work > noise)
        .then(|| format!("It costs CPU time: {about}{} for the same work.", change(time.median / work)))
}

fn floor(summary: &Summary) -> String {
    summary.noise_floor().map_or_else(|| String::from("unknown"), |floor| format!("±{}", percent(floor)))
}

/// The warnings, one paragraph each.
#[must_use]
pub fn warnings(warnings: &[Warning], style: Style) -> String {
    let mut text = String::new();
    for warning in warnings {
        let _ = writeln!(text, "{}", style.wrap(&format!("Warning: {warning}"), 2));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::compare::Medians;
    use crate::stats::Ratio;

    fn summary(metric: Metric, change: f64, verdict: Verdict) -> Summary {
        let ratio = |median: f64| Some(Ratio { median, low: 0.98 * median, high: 1.02 * median });
        Summary {
            metric,
            medians: Medians::new(Subject::Locks, Some(1.0), Some(change)),
            change: ratio(change),
            again: ratio(1.0),
            verdict,
        }
    }

    fn said(metrics: Vec<Summary>, printed: &Printed) -> String {
        let comparison = Comparison { subject: Subject::Locks, blocks: 10, metrics, run_s: 1.0, error: 0.05 };
        conclusion(&comparison, printed, Style::PLAIN).unwrap().replace('\n', " ")
    }

    #[test]
    fn a_gain_that_costs_cpu_time_says_so() {
        let faster = || summary(Metric::Wall, 0.7, Verdict::Lower);
        let program = Printed::default();
        let text = said(vec![faster(), summary(Metric::Cpu, 1.5, Verdict::Higher)], &program);
        assert!(text.ends_with("It costs CPU time: +50.0 % for the same work."), "{text}");
        assert!(
            !said(vec![faster(), summary(Metric::Cpu, 1.01, Verdict::Undecided)], &program).contains("costs")
        );
        let slower = summary(Metric::Wall, 1.3, Verdict::Higher);
        assert!(!said(vec![slower, summary(Metric::Cpu, 1.5, Verdict::Higher)], &program).contains("costs"));
    }

    #[test]
    fn nothing_is_said_where_the_work_is_not_known() {
        let latency = summary(Metric::Printed, 0.7, Verdict::Lower);
        let metrics = vec![latency, summary(Metric::Cpu, 1.5, Verdict::Higher)];
        assert!(!said(metrics, &Printed::default()).contains("costs"));
    }

    /// A program that runs for a fixed time does more work, which takes more CPU time.
    #[test]
    fn a_rate_is_weighed_against_its_cpu_time() {
        let rate = Printed { unit: String::from("tps"), higher_is_better: true };
        let of = |cpu| {
            let metrics = [(Metric::Printed, 1.4), (Metric::Wall, 1.0), (Metric::Cpu, cpu)];
            said(metrics.map(|(metric, change)| summary(metric, change, Verdict::Higher)).into(), &rate)
        };
        assert!(!of(1.4).contains("costs"));
        assert!(of(2.8).ends_with("It costs CPU time: about +100 % for the same work."), "{}", of(2.8));
    }
}
