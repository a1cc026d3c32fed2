//! What comes before the first round: a run that makes what all others need, and a run that shows that the
//! drop-in is really loaded.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use spinpark_documents::workloads::directory::PrivateDirectory;
use spinpark_documents::workloads::experiment::{Cell, Configuration, Measured};
use spinpark_documents::workloads::runner::Runner;
use spinpark_measure::process::executable::usage::Usage;
use spinpark_measure::process::executable::{DropIn, Executable, Library};
use spinpark_measure::rounds::cells::{Cell as _, Plan};

use spinpark_cli::libraries;
use spinpark_cli::progress::{Progress, about};
use spinpark_cli::say::Say;

/// From this number of rounds on, an extra run of each cell is a small part of the total.
const MANY_ROUNDS: usize = 4;

/// What a workload needs that its cells do not say.
#[derive(Default)]
pub(in crate::commands) struct Before {
    /// Its configurations make what all others need.
    pub(super) first: Option<Cell>,
    /// The drop-in, if programs that the workers start need it, and not the workers.
    pub(super) drop_in: Option<DropIn>,
    /// The configuration with such programs that shows that the drop-in is loaded.
    pub(super) trial: Option<String>,
    /// Where the first one makes it. It is removed after the last run.
    pub(super) template: Option<PrivateDirectory>,
}

impl Before {
    /// The drop-in, if a configuration needs it.
    pub(super) fn drop_in(&self, cells: &[Cell], own: &Path) -> anyhow::Result<Option<DropIn>> {
        if self.drop_in.is_some() {
            return Ok(self.drop_in.clone());
        }
        let mut locks = cells
            .iter()
            .flat_map(|cell| &cell.configurations)
            .filter_map(|configuration| configuration.lock.as_ref());
        if !locks.any(|lock| lock.preload) {
            return Ok(None);
        }
        let drop_in = libraries::find(Library::DropIn)?;
        drop_in.check_machine(Executable::find(own.as_os_str())?.machine)?;
        Ok(Some(drop_in))
    }

    /// Makes the runs. What they measure does not count.
    pub(super) fn make_runs(
        &self,
        runner: &Runner<'_>,
        cells: &[Measured],
        rounds: usize,
        progress: &Progress,
        say: Option<Say>,
    ) -> anyhow::Result<()> {
        if let Some(first) = &self.first {
            for configuration in &first.configurations {
                progress.now(format!("{}: {}", runner.workload, configuration.name));
                runner.run(first, &plan(configuration), None)?;
            }
        }
        self.show_drop_in(runner, cells, progress)?;
        // With few rounds, an extra run takes too large a share of the time.
        match say {
            Some(say) if runner.millis == 0 && rounds >= MANY_ROUNDS => {
                estimate(runner, cells, rounds, progress, say)
            }
            _ => Ok(()),
        }
    }

    /// A run that shows that the drop-in is loaded.
    fn show_drop_in(
        &self,
        runner: &Runner<'_>,
        cells: &[Measured],
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let has_drop_in = |configuration: &&Configuration| match &self.trial {
            Some(name) => configuration.name == *name,
            None => configuration.lock.as_ref().is_some_and(|lock| lock.preload && lock.env.is_empty()),
        };
        let found = cells
            .iter()
            .find_map(|cell| Some((&cell.cell, cell.cell.configurations.iter().find(has_drop_in)?)));
        let Some((cell, configuration)) = found else { return Ok(()) };
        progress.now(format!("{}: is the drop-in loaded?", runner.workload));
        let report = tempfile::Builder::new().prefix("spinpark-report-").tempfile();
        let report = report.context("cannot create a temporary file; is TMPDIR writable?")?;
        runner.run(cell, &plan(configuration), Some(report.path()))?;
        Usage::read(report.path())?.check("")?;
        Ok(())
    }

    /// Removes what the first run made, and says so if that fails.
    pub(super) fn clean(self) -> std::io::Result<()> {
        self.template.map_or(Ok(()), PrivateDirectory::remove)
    }
}

/// How long all of it takes, from a run of each cell's baseline that does not count.
fn estimate(
    runner: &Runner<'_>,
    cells: &[Measured],
    rounds: usize,
    progress: &Progress,
    say: Say,
) -> anyhow::Result<()> {
    let mut seconds = 0.0;
    for measured in cells {
        let Some(baseline) = measured.cell.configurations.first() else { continue };
        progress.now(format!("{} {}: a first run, to see how long it takes", runner.workload, measured.cell));
        let start = Instant::now();
        runner.run(&measured.cell, &plan(baseline), None)?;
        seconds += start.elapsed().as_secs_f64() * (measured.runs_per_round() * rounds) as f64;
    }
    progress.expect(seconds);
    let text = format!("About {}, going by a first run of each cell, which does not count.", about(seconds));
    progress.above(|| say.line(text));
    Ok(())
}

fn plan(configuration: &Configuration) -> Plan {
    Plan { round: 0, order: 0, configuration: configuration.name.clone(), again: false, padding: 0 }
}
