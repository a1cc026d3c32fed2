//! What follows for each lock: a rate with an interval, and what limits.

use serde::Serialize;
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::units::{counted, number};

use super::phase::Phase;
use super::proof::{MODEL_ERROR, Proof, known_as, rate};
use super::recorded::Recorded;
use crate::report::sim::answer;
use crate::schema::SCHEMA;
use crate::simulate::limit::Limit;
use crate::simulate::summary::Summary;

/// A lock's prediction.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// The lock.
    pub lock: String,
    /// Acquisitions per second.
    pub rate: f64,
    /// From the lowest seed with the model's error to the highest one with it.
    pub interval: (f64, f64),
    /// Over the recorded rate, slowed by the recorder.
    pub of_recorded: f64,
    /// Over the rate of the same program simulated as it was recorded ([`Proof::rate`]): like for like.
    pub of_home: f64,
    /// CPU time an acquisition, ns, polling and all; none if the program waits for signals: it computes less
    /// than the simulated one.
    pub cpu_ns: Option<f64>,
    /// What limits.
    pub limit: Limit,
    /// In a sentence.
    pub sentence: String,
    /// The runs.
    pub summary: Summary,
}

impl Prediction {
    /// Of runs with this lock.
    #[must_use]
    pub fn new(recorded: &Recorded, proof: &Proof, summary: Summary) -> Self {
        let limit = Limit::of(&summary);
        let rate = summary.throughput;
        Self {
            lock: summary.lock.clone(),
            rate: rate.mean,
            interval: (rate.low / (1.0 + MODEL_ERROR), rate.high / (1.0 - MODEL_ERROR)),
            of_recorded: rate.mean / recorded.rate().max(1e-9),
            of_home: rate.mean / proof.rate.max(1e-9),
            cpu_ns: (!recorded.waits_for_signals).then_some(summary.cpu_ns),
            sentence: answer::sentence(&limit),
            limit,
            summary,
        }
    }
}

/// As JSON.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    format: &'static str,
    schema: u32,
    end: &'a str,
    command: &'a str,
    program: &'a str,
    recorded: Base,
    lacks: &'a [String],
    model_error: f64,
    proof: &'a Proof,
    predictions: &'a [Prediction],
}

#[derive(Debug, Serialize)]
struct Base {
    threads: u32,
    workers: u32,
    cpus: u32,
    duration_ns: u64,
    acquisitions: u64,
    rate: f64,
    unrecorded_rate: f64,
    phase_start_ns: u64,
    phase_ns: u64,
    non_critical_ns: f64,
}

impl<'a> Document<'a> {
    /// Of these predictions, made by `command`; none, if the `proof` fails.
    #[must_use]
    pub fn new(
        end: &'a str,
        command: &'a str,
        recorded: &'a Recorded,
        proof: &'a Proof,
        predictions: &'a [Prediction],
    ) -> Self {
        let base = Base {
            threads: recorded.threads,
            workers: recorded.workers,
            cpus: recorded.cpus,
            duration_ns: recorded.duration_ns,
            acquisitions: recorded.acquisitions,
            rate: recorded.rate(),
            unrecorded_rate: recorded.unrecorded_rate(),
            phase_start_ns: recorded.phase.start,
            phase_ns: recorded.phase.length,
            non_critical_ns: recorded.non_critical_ns,
        };
        Self {
            format: "spinpark sim replay",
            schema: SCHEMA,
            end,
            command,
            program: &recorded.program,
            recorded: base,
            lacks: &recorded.lacks,
            model_error: MODEL_ERROR,
            proof,
            predictions,
        }
    }
}

/// Whether the last lock is better than the first, in a sentence.
fn compared(predictions: &[Prediction]) -> Option<String> {
    let [first, .., last] = predictions else { return None };
    let [one, other] = [first, last].map(|prediction| prediction.summary.throughput);
    let ratio = last.rate / first.rate.max(1e-9);
    let [one_name, other_name] = [first, last].map(|prediction| known_as(&prediction.lock));
    Some(if one.low <= other.high && other.low <= one.high {
        format!(
            "Between {other_name} and {one_name} there is no difference that seeds do not make as well ({ratio:.2})."
        )
    } else {
        format!(
            "With {other_name} it makes {ratio:.2} times as much as with {one_name}, if the model's error is the same for both."
        )
    })
}

/// The table, what limits, and what the estimate rests on.
#[must_use]
pub fn render(recorded: &Recorded, predictions: &[Prediction], style: Style) -> String {
    let mut rows = table(style, &["lock", "acquisitions", "interval", "× as recorded", "CPU time", "limit"]);
    for prediction in predictions {
        let most = if recorded.is_upper_limit(prediction.summary.threads) { "≤ " } else { "" };
        let (low, high) = prediction.interval;
        rows.add_row([
            known_as(&prediction.lock),
            format!("{most}{}", rate(prediction.rate)),
            format!("{} … {}", rate(low), rate(high)),
            format!("{most}{:.2}", prediction.of_home),
            prediction.cpu_ns.map_or_else(|| String::from("not known"), crate::report::sim::ns),
            answer::words(&prediction.limit).to_owned(),
        ]);
    }
    let mut out = text(&rows);
    for prediction in predictions {
        out += &style.wrap(&format!("{}: {}", known_as(&prediction.lock), prediction.sentence), 2);
        out.push('\n');
    }
    if let Some(sentence) = compared(predictions) {
        out += &style.wrap(&sentence, 2);
        out.push('\n');
    }
    out.push('\n');
    let estimate = format!(
        "This is an estimate, not a measurement. × as recorded: over the same program simulated as it was recorded. The interval has the \
         true rate if the simulated one, at any seed, is within ±{:.0} % of it: so it was in 50 to 62 of 64 measurements on machines of two \
         CPUs (notes/sim-accuracy.md); none were made on more. What the recording lacks is not in the interval.",
        100.0 * MODEL_ERROR
    );
    out += &style.wrap(&estimate, 0);
    out.push('\n');
    for lack in &recorded.lacks {
        out += &style.wrap(&format!("- {lack}"), 2);
        out.push('\n');
    }
    out
}

/// What was recorded, in a sentence.
#[must_use]
pub fn heading(recorded: &Recorded, machine: &str, threads: u32) -> String {
    let cpus = match recorded.cpus {
        0 => String::new(),
        1 => String::from(" on 1 CPU"),
        cpus => format!(" on {cpus} CPUs"),
    };
    let ns = |ns: u64| crate::report::sim::ns(ns as f64);
    let phase = if recorded.phase.length < recorded.duration_ns {
        let Phase { start, length, .. } = recorded.phase;
        format!("the {} from {} on in which its threads worked", ns(length), ns(start))
    } else {
        ns(recorded.duration_ns)
    };
    format!(
        "{} with {} on {machine}. Recorded: {} acquisitions of {} in {phase}, by {}{cpus}: {}.",
        recorded.program,
        counted(threads as usize, "thread"),
        number(recorded.acquisitions as f64),
        counted(recorded.replay.locks.len(), "lock"),
        counted(recorded.threads as usize, "thread"),
        rate(recorded.rate())
    )
}
