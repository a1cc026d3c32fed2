//! `spinpark gate compare`: a new build of a program is not worse than the old one.

use std::process::ExitCode;

use anyhow::bail;
use spinpark_measure::report::Printed;
use spinpark_measure::report::gate::{Verdict, compared};
use spinpark_measure::rounds::compare::Summary;

use super::outputs::Outputs;
use crate::cli::GateCompare;
use crate::commands::compare::{Compared, Until};
use crate::say::Say;

/// Measures what `compare --against` does, and judges one metric.
pub(super) fn run(gate: &GateCompare) -> anyhow::Result<ExitCode> {
    let outputs = Outputs::open(&gate.out)?;
    let about = gate.metric.map(Into::into);
    // The first line of standard output is the verdict.
    let looks = gate.until.looks(gate.measuring.rounds)?;
    let is_decided = |summary: &Summary, printed: &Printed| {
        compared("", summary, printed, 0, gate.at_most, &[]).verdict != Verdict::Undecided
    };
    let until = Until { looks: &looks, is_decided: &is_decided };
    let result = Compared::new(&gate.comparison(), Say { on_stderr: true }, about, Some(until))?;
    if !result.is_complete() {
        result.print_tables(outputs.say);
        return result.end();
    }
    let Some(summary) = result.comparison.primary() else { bail!("there is nothing to judge") };
    let subject = result.command_line();
    let rounds = result.comparison.blocks;
    let judged = compared(&subject, summary, result.printed(), rounds, gate.at_most, &result.warnings);
    outputs.report(&judged, &result.document(), |say| result.print_tables(say))
}
