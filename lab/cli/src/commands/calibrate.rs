//! `spinpark-lab sim calibrate`: a machine file of this machine.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use spinpark_experiments::calibrate::{CalibrateError, Calibration, Cpus, Measure, Watcher, machine_file};
use spinpark_measure::process::Interrupt;
use spinpark_measure::rounds::failure::RunError;

use crate::cli::Calibrate;
use spinpark_cli::files::open;
use spinpark_cli::progress::Progress;
use spinpark_cli::session::Session;

/// On a quiet machine other processes take no larger share of the time, in %.
const MOST_OTHERS: f64 = 5.0;

/// Measures, and writes the file.
pub(crate) fn run(calibrate: &Calibrate) -> anyhow::Result<ExitCode> {
    // Before anything is measured.
    let out = open(&calibrate.output)?;
    if cfg!(debug_assertions) {
        bail!("this is a debug build, in which single instructions cannot be measured\nBuild with --release");
    }
    let cpus = Cpus::read()?;
    let session = Session::start(None)?;
    let name = calibrate.name.clone().or_else(|| {
        let stem = calibrate.output.as_ref()?.file_stem()?;
        Some(stem.to_string_lossy().into_owned())
    });
    let mut watcher = Bar::new(calibrate.rounds, Arc::clone(&session.interrupt));
    let calibration = match Calibration::run(&cpus, calibrate.rounds, &mut watcher) {
        Err(CalibrateError::Interrupted) => return Err(RunError::Interrupted.into()),
        other => other?,
    };
    drop(watcher);
    let sheet =
        machine_file::sheet(&calibration, &cpus, &session.environment, name.as_deref().unwrap_or("mine"));
    match (out, &calibrate.output) {
        (Some(out), Some(path)) => {
            out.write_plain(&sheet.to_string())?;
            note!("Wrote {}. Read it: each figure states how it was measured.", path.display());
        }
        _ => print!("{sheet}"),
    }
    let noisy: Vec<&str> = calibration.noisy().into_iter().map(Measure::how).collect();
    let others = 100.0 * calibration.others;
    if others > MOST_OTHERS {
        note!(
            "Other programs took {others:.0} % of the CPUs meanwhile: figures of waking and of idle CPUs are wrong then.\n\
             Stop what else runs, and measure again."
        );
    }
    if !noisy.is_empty() {
        note!(
            "This machine is too noisy to be sure; the rounds differ by more than a quarter in:\n  {}\nStop what else \
             runs, or take more --rounds.",
            noisy.join("\n  ")
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The progress bar.
pub(super) struct Bar {
    progress: Progress,
    is_first: bool,
    interrupt: Arc<Interrupt>,
}

impl Bar {
    /// A bar for `rounds` rounds of all measurements.
    pub(super) fn new(rounds: usize, interrupt: Arc<Interrupt>) -> Self {
        Self { progress: Progress::new(rounds * Measure::ALL.len(), None), is_first: true, interrupt }
    }
}

impl Watcher for Bar {
    fn starting(&mut self, round: usize, measure: Measure) {
        if !self.is_first {
            self.progress.advance();
        }
        self.is_first = false;
        self.progress.now(format!("round {}, {}", round + 1, measure.how()));
    }

    fn is_over(&self) -> bool {
        self.interrupt.is_requested()
    }
}
