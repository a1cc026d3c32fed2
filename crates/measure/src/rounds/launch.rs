//! The executor in earnest: starts the program in the environment of a configuration, and reads the sample.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::ended::{Tail, in_words};
use crate::process::{self, Finished, Interrupt, ProcessError};
use crate::rounds::blocks::Plan;
use crate::rounds::configuration::{Configuration, Environments};
use crate::rounds::failure::RunError;
use crate::rounds::measure::Executor;
use crate::rounds::metric::OutputMetric;
use crate::rounds::sample::Sample;

/// The program under test.
#[derive(Debug, Clone)]
pub struct Program {
    /// What is executed.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Another program with its arguments, to compare this one with.
    pub against: Option<(PathBuf, Vec<OsString>)>,
    /// A file for its standard input; nothing if there is none.
    pub input: Option<PathBuf>,
    /// The longest a run may take.
    pub timeout: Option<Duration>,
    /// Whether an exit status other than 0 is fine.
    pub ignore_failure: bool,
    /// What is run around it.
    pub around: Around,
}

/// Commands of the user's around runs: not timed, run by `sh -c`, without the drop-in.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// Once, before all runs.
    pub setup: Option<String>,
    /// Before each run.
    pub prepare: Option<String>,
    /// Once, after all runs, however they ended.
    pub cleanup: Option<String>,
}

impl Program {
    /// A program without options.
    #[must_use]
    pub fn new(path: PathBuf, args: Vec<OsString>) -> Self {
        Self {
            path,
            args,
            against: None,
            input: None,
            timeout: None,
            ignore_failure: false,
            around: Around::default(),
        }
    }

    /// What runs as `configuration`.
    fn command(&self, configuration: Configuration) -> Result<Command, RunError> {
        let is_before = matches!(configuration, Configuration::Before | Configuration::BeforeAgain);
        let (path, args) = match &self.against {
            Some((path, args)) if is_before => (path, args),
            _ => (&self.path, &self.args),
        };
        let mut command = Command::new(path);
        command.args(args);
        let stdin = match &self.input {
            None => process::empty_input().map_err(|error| RunError::Input("/dev/null".into(), error))?,
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

    /// From now on, the drop-in that the program loads by itself is off in the baseline.
    pub fn switch_off_drop_in(&mut self) {
        self.environments.switch_off_drop_in();
    }

    /// Whether the program loads a drop-in by itself, which is off in the baseline.
    #[must_use]
    pub fn switches_off_drop_in(&self) -> bool {
        self.environments.switches_off_drop_in()
    }

    /// Runs the command of `option`, if there is one, to its end.
    ///
    /// # Errors
    ///
    /// If it cannot be started, fails, or is interrupted.
    pub fn run_around(&self, option: &'static str) -> Result<(), RunError> {
        self.run_around_unless(option, self.interrupt)
    }

    /// The command of `--cleanup`, also after an interrupt: what was set up must not stay.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or fails.
    pub fn clean_up(&self) -> Result<(), RunError> {
        let fresh = Interrupt::new().map_err(|error| {
            let (tail, what) = (Tail::of(""), error.to_string());
            RunError::Around { option: "--cleanup", command: String::new(), what, tail }
        })?;
        self.run_around_unless("--cleanup", &fresh)
    }

    fn run_around_unless(&self, option: &'static str, interrupt: &Interrupt) -> Result<(), RunError> {
        let Around { setup, prepare, cleanup } = &self.program.around;
        let given = match option {
            "--setup" => setup,
            "--prepare" => prepare,
            _ => cleanup,
        };
        let Some(text) = given else { return Ok(()) };
        let fails = |what: String, output: &str| RunError::Around {
            option,
            command: text.clone(),
            what,
            tail: Tail::of(output),
        };
        let mut shell = Command::new("sh");
        let input = process::empty_input().map_err(|error| fails(error.to_string(), ""))?;
        shell.args(["-c", text]).stdin(input);
        match process::run(&mut shell, None, interrupt) {
            Ok(finished) if finished.status.success() => Ok(()),
            Ok(finished) => Err(fails(in_words(finished.status), &finished.output)),
            Err(ProcessError::Interrupted) => Err(RunError::Interrupted),
            Err(error) => Err(fails(error.to_string(), "")),
        }
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
        self.run_with(configuration, padding, |command| {
            if let Some(report) = report {
                command.env("SPINPARK_REPORT", report);
            }
        })
    }

    /// The same, with what `change` does to the command last.
    ///
    /// # Errors
    ///
    /// As [`Launcher::run`].
    pub fn run_with(
        &self,
        configuration: Configuration,
        padding: usize,
        change: impl FnOnce(&mut Command),
    ) -> Result<(Sample, String), RunError> {
        self.run_around("--prepare")?;
        let mut command = self.program.command(configuration)?;
        self.environments.apply(configuration, padding, &mut command);
        change(&mut command);
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
