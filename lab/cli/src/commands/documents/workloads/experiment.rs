//! A workload's cells, checked and measured.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use spinpark_documents::workloads::Workload;
use spinpark_documents::workloads::directory::Place;
use spinpark_documents::workloads::experiment::{Cell, Measured};
use spinpark_documents::workloads::resources::Requirements;
use spinpark_documents::workloads::result::{FORMAT, Record, SCHEMA};
use spinpark_documents::workloads::runner::Runner;
use spinpark_lockbench::locks::selection::once;
use spinpark_measure::process::executable::DropIn;
use spinpark_measure::report::Head;
use spinpark_measure::rounds::cells::{self, Cell as _};
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::machine::Watch;
use spinpark_measure::rounds::measure::End;
use spinpark_measure::text::units::counted;

use super::before::Before;
use super::workload_report::WorkloadReport;
use crate::cli::Common;
use spinpark_cli::files::open;
use spinpark_cli::progress::{Progress, about};
use spinpark_cli::say::{self, Say};
use spinpark_cli::session::Session;
use spinpark_cli::{exit, own};

/// What is to be measured.
pub(in crate::commands) struct Experiment<'a> {
    pub(super) workload: &'static Workload,
    pub(super) cells: Vec<Cell>,
    /// Length of a counted phase.
    pub(super) millis: u64,
    /// Where the user wants files.
    pub(super) dir: Option<&'a Path>,
    /// What comes before the first round.
    pub(super) before: Before,
}

/// Checks the request, measures, reports.
pub(in crate::commands) fn measure(common: &Common, experiment: Experiment<'_>) -> anyhow::Result<ExitCode> {
    let prepared = Prepared::new(common, experiment)?;
    let json = open(&common.out.json)?;
    let say = Say::apart_from(&[&common.out.json]);
    let session = Session::start(common.seed)?;
    prepared.intro(session.seed, say);
    say::check()?;
    let progress = Progress::new(prepared.runs(), prepared.seconds());
    let (outcome, end) = prepared.measure(&session, own::command_line(), &progress, Some(say))?;
    drop(progress);
    outcome.report(common.details, say, json)?;
    exit::code_of_end(end)
}

/// An experiment that can be carried out.
pub(in crate::commands) struct Prepared {
    workload: &'static Workload,
    rounds: usize,
    cells: Vec<Measured>,
    millis: u64,
    place: Option<Place>,
    own: PathBuf,
    drop_in: Option<DropIn>,
    before: Before,
}

impl Prepared {
    /// Checks it all.
    pub(in crate::commands) fn new(common: &Common, experiment: Experiment<'_>) -> anyhow::Result<Self> {
        let Experiment { workload, mut cells, millis, dir, before } = experiment;
        check(workload, common, &mut cells)?;
        let place = workload.uses_directory.then(|| Place::find(dir)).transpose()?;
        let needs = cells.iter().map(|cell| cell.needs).fold(Requirements::default(), Requirements::max);
        needs.check(place.as_ref().map(|place| place.path.as_path()))?;
        let own = own::path()?;
        let drop_in = before.drop_in(&cells, &own)?;
        let cells = cells.into_iter().map(Measured::new).collect();
        Ok(Self { workload, rounds: common.rounds, cells, millis, place, own, drop_in, before })
    }

    /// How many runs there will be.
    pub(in crate::commands) fn runs(&self) -> usize {
        self.cells.iter().map(Measured::runs_per_round).sum::<usize>() * self.rounds
    }

    /// How long all of it takes, in seconds; none where runs do a fixed amount of work.
    pub(in crate::commands) fn seconds(&self) -> Option<f64> {
        // Warm-up and the counted phase; the process itself.
        let run = self.millis as f64 * 1.25 / 1e3 + 0.02;
        (self.millis > 0).then(|| self.runs() as f64 * run)
    }

    /// Measures. `command` is what does the same again. With `say`, a first run of each cell tells how long
    /// all of it takes, where nothing else does.
    pub(in crate::commands) fn measure(
        self,
        session: &Session,
        command: String,
        progress: &Progress,
        say: Option<Say>,
    ) -> anyhow::Result<(WorkloadReport, End)> {
        let Self { workload, rounds, cells, millis, place, own, drop_in, before } = self;
        let runner = Runner {
            workload: workload.name,
            own,
            preload: drop_in.as_ref().map(|drop_in| drop_in.path.clone()),
            inherited: env::var_os("LD_PRELOAD").unwrap_or_default(),
            millis,
            place,
            seed: session.seed,
            interrupt: &session.interrupt,
        };
        let watch = Watch::start();
        let (cells, end) = match before.make_runs(&runner, &cells, rounds, progress, say) {
            Ok(()) => cells::measure(cells, rounds, session.seed, &mut |measured: &Measured, plan| {
                progress.now(format!("{} {}, {}", workload.name, measured.cell, plan.configuration));
                let report = runner.run(&measured.cell, plan, None)?;
                progress.advance();
                Ok(report)
            }),
            Err(error) => match error.downcast::<RunError>()? {
                RunError::Interrupted => (cells, End::Interrupted),
                error => return Err(error.into()),
            },
        };
        let noise = watch.noise();
        let is_debug = cfg!(debug_assertions) || drop_in.as_ref().is_some_and(DropIn::is_debug_build);
        before.clean()?;
        let record = Record {
            head: Head {
                format: FORMAT.to_owned(),
                schema: SCHEMA,
                end: end.name().to_owned(),
                command,
                rounds,
                millis,
                seed: session.seed,
                environment: session.environment.clone(),
            },
            workload: workload.name.to_owned(),
            figure: workload.figure.header(),
            file_system: runner.place.map(|place| place.file_system),
            cells,
        };
        Ok((WorkloadReport::new(workload, record, noise, is_debug), end))
    }

    fn intro(&self, seed: u64, say: Say) {
        let (workload, cells) = (self.workload, self.cells.len());
        let length = self
            .seconds()
            .map_or_else(String::new, |seconds| format!(" of {} ms, about {}", self.millis, about(seconds)));
        say.wrapped(
            &format!(
                "{}: {} × {}: {}{length}, in shuffled order (seed {seed}). Ctrl-C: the result so far.",
                workload.name,
                counted(cells, "cell"),
                counted(self.rounds, "round"),
                counted(self.runs(), "run"),
            ),
            2,
        );
        say.wrapped(&format!("From document {}.", workload.source), 2);
        if let Some(place) = &self.place {
            say.line(format!(
                "Files: private directories in {} ({})",
                place.path.display(),
                place.file_system
            ));
        }
    }
}

/// What can be wrong about a request of any workload.
fn check(workload: &Workload, common: &Common, cells: &mut [Cell]) -> anyhow::Result<()> {
    /// More than this is a typing error.
    const MANY: usize = 4096;
    if cells.iter().any(|cell| cell.tasks == 0 || cell.tasks > MANY) {
        bail!("the number of {} must be between 1 and {MANY}", workload.tasks);
    }
    let names = cells.iter().map(ToString::to_string).collect::<Vec<_>>();
    once("an option", &names).map_err(anyhow::Error::msg)?;
    for cell in &*cells {
        let configurations =
            cell.configurations.iter().map(|configuration| &configuration.name).collect::<Vec<_>>();
        once("an option", &configurations).map_err(anyhow::Error::msg)?;
    }
    if cells.iter().all(|cell| cell.configurations.is_empty()) {
        bail!("nothing is left to measure: sections of a mutex need --locks");
    }
    if let Some(baseline) = &common.baseline {
        cells.iter_mut().try_for_each(|cell| cell.set_baseline(baseline)).map_err(anyhow::Error::msg)?;
    }
    Ok(())
}
