//! What follows for each lock: a rate with an interval, and what limits.
//!
//! First a recording is simulated as it was recorded ([`Proof`]). If that does not make what was recorded, it
//! says nothing about another machine.

use serde::Serialize;
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::text::units::{counted, number};

use crate::limit::Limit;
use crate::recording::{Phase, Recorded};
use crate::summary::Summary;
use crate::{Document, formats};

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
            sentence: limit.sentence(),
            limit,
            summary,
        }
    }
}

/// What is in the JSON of `spinpark-lab sim replay`.
#[derive(Debug, Serialize)]
pub struct Replay<'a> {
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

/// The JSON of these predictions; there are none, if the `proof` fails.
#[must_use]
pub fn json<'a>(
    end: &'a str,
    command: &'a str,
    of: &'a Recorded,
    proof: &'a Proof,
    predictions: &'a [Prediction],
) -> Document<'a, Replay<'a>> {
    let recorded = Base {
        threads: of.threads,
        workers: of.workers,
        cpus: of.cpus,
        duration_ns: of.duration_ns,
        acquisitions: of.acquisitions,
        rate: of.rate(),
        unrecorded_rate: of.unrecorded_rate(),
        phase_start_ns: of.phase.start,
        phase_ns: of.phase.length,
        non_critical_ns: of.non_critical_ns,
    };
    let (program, lacks, model_error) = (&*of.program, &*of.lacks, MODEL_ERROR);
    let content = Replay { program, recorded, lacks, model_error, proof, predictions };
    Document::new("spinpark sim replay", end, command, content)
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
            prediction.cpu_ns.map_or_else(|| String::from("not known"), formats::ns),
            prediction.limit.words().to_owned(),
        ]);
    }
    let mut out = text(&rows);
    for prediction in predictions {
        let sentence = format!("{}: {}", known_as(&prediction.lock), prediction.sentence);
        out += &(style.wrap(&sentence, 2) + "\n");
    }
    if let Some(sentence) = compared(predictions) {
        out += &(style.wrap(&sentence, 2) + "\n");
    }
    let estimate = format!(
        "This is an estimate, not a measurement. × as recorded: over the same program simulated as it was recorded. The interval has the \
         true rate if the simulated one, at any seed, is within ±{:.0} % of it: so it was in 50 to 62 of 64 measurements on machines of two \
         CPUs (notes/sim-accuracy.md); none were made on more. What the recording lacks is not in the interval.",
        100.0 * MODEL_ERROR
    );
    out += &format!("\n{}\n", style.wrap(&estimate, 0));
    for lack in &recorded.lacks {
        out += &(style.wrap(&format!("- {lack}"), 2) + "\n");
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
    let ns = |ns: u64| formats::ns(ns as f64);
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

/// How far the simulator is from this machine (notes/sim-accuracy.md): of 64 cells with as many threads as
/// CPUs, 50 to 62 are within this error, simulated ÷ measured − 1, either way.
pub const MODEL_ERROR: f64 = 0.5;

/// The recording on a machine like the one that it was made on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// The machine.
    pub machine: String,
    /// The mutex: as the program's were.
    pub lock: String,
    /// Threads, as many as were at work at a time.
    pub threads: u32,
    /// Simulated acquisitions per second.
    pub rate: f64,
    /// What it is compared with: the recorded rate, with the time that recording took left out.
    pub unrecorded: f64,
    /// `rate` ÷ `unrecorded`.
    pub ratio: f64,
    /// Whether that is within [`MODEL_ERROR`] of 1.
    pub holds: bool,
}

impl Proof {
    /// Of runs with the recorded threads and locks, on `machine`.
    #[must_use]
    pub fn new(recorded: &Recorded, machine: &str, summary: &Summary) -> Self {
        let (rate, unrecorded) = (summary.throughput.mean, recorded.unrecorded_rate());
        let ratio = rate / unrecorded.max(1e-9);
        Self {
            machine: machine.to_owned(),
            lock: summary.lock.clone(),
            threads: recorded.workers,
            rate,
            unrecorded,
            ratio,
            holds: (ratio - 1.0).abs() <= MODEL_ERROR,
        }
    }

    /// In words; if it fails, with what the recording lacks.
    #[must_use]
    pub fn render(&self, recorded: &Recorded, style: Style) -> String {
        let run = format!(
            "Simulated as it was recorded ({} on {}; locks: {}), it makes {}: {:.2} times the recorded {} (without the time that \
             recording took)",
            counted(self.threads as usize, "thread"),
            self.machine,
            known_as(&self.lock),
            rate(self.rate),
            self.ratio,
            rate(self.unrecorded),
        );
        let error = 100.0 * MODEL_ERROR;
        if self.rate == 0.0 {
            return style.wrap("There is no prediction: the simulated time is too short for a single acquisition. Give a longer --duration.", 0);
        }
        if self.holds {
            return style.wrap(&format!("{run}, within the model's error of ±{error:.0} %."), 0);
        }
        let mut out = style.wrap(
            &format!(
                "There is no prediction. {run}. That is beyond the model's error of ±{error:.0} %, so its figures for another machine would \
                 mean nothing."
            ),
            0,
        );
        out += "\n\n";
        out += &style.wrap("Why is not known; a recording lacks this:", 0);
        for lack in &recorded.lacks {
            out.push('\n');
            out += &style.wrap(&format!("- {lack}"), 2);
        }
        out
    }
}

/// The name by which readers know a lock.
fn known_as(lock: &str) -> String {
    match lock {
        "classic-mutex-2003" => String::from("glibc's (classic-mutex-2003)"),
        "spinpark" => String::from("ours (spinpark)"),
        other => other.to_owned(),
    }
}

fn rate(per_second: f64) -> String {
    formats::rate(per_second) + "/s"
}
