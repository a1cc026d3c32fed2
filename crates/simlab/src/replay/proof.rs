//! Whether a recording, simulated as it was recorded, makes what was recorded. If it does not, it says
//! nothing about another machine.

use serde::Serialize;
use spinpark_measure::report::Style;
use spinpark_measure::units::counted;

use super::recorded::Recorded;
use crate::simulate::summary::Summary;

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
pub(super) fn known_as(lock: &str) -> String {
    match lock {
        "classic-mutex-2003" => String::from("glibc's (classic-mutex-2003)"),
        "spinpark" => String::from("ours (spinpark)"),
        other => other.to_owned(),
    }
}

pub(super) fn rate(per_second: f64) -> String {
    crate::report::sim::rate(per_second) + "/s"
}
