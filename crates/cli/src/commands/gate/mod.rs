//! `spinpark gate`: one bound, measured and judged, for build servers.
//!
//! | module    | what it has                                                       |
//! |-----------|-------------------------------------------------------------------|
//! | `outputs` | where the verdict goes, opened before anything is measured        |
//! | `baseline`| a bound from an earlier result that is checked in                 |
//! | `compare` | a new build of a program is not worse than the old one            |
//! | `scaling` | a program becomes faster with more threads                        |
//! | `waits`   | threads wait for locks for at most a share of their time          |

mod baseline;
mod compare;
mod outputs;
mod scaling;
mod waits;

use std::process::ExitCode;

use crate::cli::{Gate, Gated};

/// Measures, reports, and exits by the verdict.
pub(crate) fn run(gate: &Gate) -> anyhow::Result<ExitCode> {
    match &gate.gated {
        Gated::Compare(of) => compare::run(of),
        Gated::Scaling(of) => scaling::run(of),
        Gated::Waits(of) => waits::run(of),
    }
}
