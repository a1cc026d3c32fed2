//! The executor in earnest: starts the program in the environment of a configuration, and reads the sample.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::blocks::Plan;
use crate::configuration::{Configuration, Environments};
use crate::failure::{RunError, Tail, in_words};
use crate::measure::Executor;
use crate::metric::OutputMetric;
use crate::process::{self, Finished, Interrupt, ProcessError};
use crate::sample::Sample;

/// The program under test.
#[derive(Debug, Clone)]
pub struct Program {
    /// What is executed.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// A file for its standard input; nothing if there is none.
    pub input: Option<PathBuf>,
    /// The longest a run may take.
    pub timeout: Option<Duration>,
    /// Whether an exit status other than 0 is fine.
    pub ignore_failure: bool,
}

impl Program {
    /// A program without options.
    #[must_use]
    pub fn new(path: PathBuf, args: Vec<OsString>) -> Self {
        Self { path, args, input: None, timeout: None, ignore_failure: false }
    }

    fn command(&self) -> Result<Command, RunError> {
        let mut command = Command::new(&self.path);
        command.args(&self.args);
        let stdin = match &self.input {
            None => Stdio::null(),
            Some(file) => File::open(file).map_err(|error| RunError::Input(file.clone(), error))?.into(),
        };
        command.stdin(stdin);
        Ok(command)
    }
}

/// Where the program's own number comes from.
#[derive(Debug)]
pub enum OwnNumber {
    /// There is none.
    None,
    /// An expression finds it.
    Output(OutputMetric),
}

/// Runs a program as a process, per configuration.
#[derive(Debug)]
pub struct Launcher<'a> {
    program: Program,
    environments: Environments,
    number: &'a OwnNumber,
    interrupt: &'a Interrupt,
}

impl<'a> Launcher<'a> {
    /// A launcher of `program`.
    #[must_use]
    pub fn new(
        program: Program,
        environments: Environments,
        number: &'a OwnNumber,
        interrupt: &'a Interrupt,
    ) -> Self {
        Self { program, environments, number, interrupt }
    }

    /// Replaces the arguments of the program.
    pub fn set_args(&mut self, args: Vec<OsString>) {
        self.program.args = args;
    }

    /// Runs `configuration` once. With `report`, the drop-in says there which processes it was loaded into.
    ///
    /// # Errors
    ///
    /// If the run yields no sample.
    pub fn run(
        &self,
        configuration: Configuration,
        padding: usize,
        report: Option<&Path>,
    ) -> Result<(Sample, String), RunError> {
        let mut command = self.program.command()?;
        self.environments.apply(configuration, padding, &mut command);
        if let Some(report) = report {
            command.env("SPINPARK_REPORT", report);
        }
        let finished = match process::run(&mut command, self.program.timeout, self.interrupt) {
            Ok(finished) => finished,
            Err(ProcessError::Interrupted) => return Err(RunError::Interrupted),
            Err(error) => {
                let output = if let ProcessError::TimedOut { output, .. } = &error { output } else { "" };
                let tail = Tail::of(output);
                return Err(RunError::Process { configuration, error, tail });
            }
        };
        self.check_status(configuration, &finished)?;
        let sample = self.sample(configuration, &finished)?;
        Ok((sample, finished.output))
    }

    fn check_status(&self, configuration: Configuration, finished: &Finished) -> Result<(), RunError> {
        let tolerated = self.program.ignore_failure && finished.status.code().is_some();
        if finished.status.success() || tolerated {
            return Ok(());
        }
        Err(RunError::Failed {
            configuration,
            ended: in_words(finished.status),
            tail: Tail::of(&finished.output),
        })
    }

    fn sample(&self, configuration: Configuration, finished: &Finished) -> Result<Sample, RunError> {
        let mut sample = Sample {
            wall_s: finished.wall.as_secs_f64(),
            cpu_s: finished.usage.cpu.as_secs_f64(),
            voluntary_switches: finished.usage.voluntary_switches,
            involuntary_switches: finished.usage.involuntary_switches,
            peak_bytes: finished.usage.peak_bytes,
            ..Sample::default()
        };
        match self.number {
            OwnNumber::None => {}
            OwnNumber::Output(metric) => {
                let number = metric.find(&finished.output).map_err(|reason| RunError::NoNumber {
                    configuration,
                    reason,
                    tail: Tail::of(&finished.output),
                })?;
                sample.printed = Some(number);
            }
        }
        Ok(sample)
    }
}

impl Executor for Launcher<'_> {
    fn execute(&mut self, plan: &Plan) -> Result<Sample, RunError> {
        self.run(plan.configuration, plan.padding, None).map(|(sample, _)| sample)
    }
}
