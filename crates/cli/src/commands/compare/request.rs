//! The request: every error in it is found here, before anything runs.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, bail};
use spinpark_lockbench::demo::LABEL;
use spinpark_measure::configuration::{Baseline, Environments};
use spinpark_measure::executable::{DropIn, Executable, Library};
use spinpark_measure::launch::{Around, OwnNumber, Program};
use spinpark_measure::metric::OutputMetric;
use spinpark_measure::report::Printed;
use spinpark_measure::report::json::Output;

use crate::cli::{Compare, DEMO_OPERATIONS};
use crate::libraries;
use crate::say::Say;

/// A request that can be carried out.
pub(super) struct Request {
    /// The command line that the user typed; in a demonstration, the one that runs.
    pub(super) command: Vec<String>,
    /// Whether no program was given.
    pub(super) is_demo: bool,
    pub(super) program: Program,
    pub(super) drop_in: DropIn,
    pub(super) baseline: Baseline,
    pub(super) environments: Environments,
    pub(super) number: OwnNumber,
    pub(super) printed: Printed,
    pub(super) json: Option<Output>,
    pub(super) rounds: usize,
    pub(super) say: Say,
}

/// The arguments that make this command the demonstration.
pub(super) fn demo_args(operations: u64) -> Vec<OsString> {
    vec!["__demo".into(), "--operations".into(), operations.to_string().into()]
}

impl Request {
    /// Checks it all.
    pub(super) fn new(compare: &Compare) -> anyhow::Result<Self> {
        let is_demo = compare.program.is_empty();
        let (name, args) = match compare.program.split_first() {
            Some((name, args)) => (name.clone(), args.to_vec()),
            None => (own_path()?.into_os_string(), demo_args(DEMO_OPERATIONS)),
        };
        let (number, printed) = number(compare, is_demo)?;
        let executable = Executable::find_with(&name, &args)?;
        let drop_in = libraries::find(Library::DropIn)?;
        drop_in.check_machine(executable.machine)?;
        let baseline = compare.baseline.into();
        let environments = Environments::new(&drop_in.path, env::var_os("LD_PRELOAD"), baseline);
        let command =
            std::iter::once(&name).chain(&args).map(|word| word.to_string_lossy().into_owned()).collect();
        let program = program(compare, executable.path, args)?;
        let json = compare.json.as_deref().map(Output::open).transpose()?;
        let rounds = compare.rounds;
        let say = Say { on_stderr: compare.json.as_deref().is_some_and(Output::is_stdout) };
        Ok(Self {
            command,
            is_demo,
            program,
            drop_in,
            baseline,
            environments,
            number,
            printed,
            json,
            rounds,
            say,
        })
    }
}

fn own_path() -> anyhow::Result<PathBuf> {
    env::current_exe().context("cannot find out where this command itself is")
}

fn number(compare: &Compare, is_demo: bool) -> anyhow::Result<(OwnNumber, Printed)> {
    let given = compare.metric_from_output.as_deref();
    let unit = compare.unit.as_deref().unwrap_or_default();
    let metric = match given {
        Some(_) if is_demo => {
            bail!("--metric-from-output needs a program; the demonstration has a number of its own")
        }
        Some(expression) => OutputMetric::new(expression, compare.higher_is_better, unit)?,
        None if is_demo => OutputMetric::new(&format!("{LABEL}: ([0-9]+)"), true, "operations/s")?,
        None => return Ok((OwnNumber::None, Printed::default())),
    };
    let printed = Printed { unit: metric.unit.clone(), higher_is_better: metric.higher_is_better };
    Ok((OwnNumber::Output(metric), printed))
}

fn program(compare: &Compare, path: PathBuf, args: Vec<OsString>) -> anyhow::Result<Program> {
    if let Some(input) = &compare.input {
        File::open(input).with_context(|| format!("--input: cannot read {}", input.display()))?;
    }
    let Compare { setup, prepare, cleanup, .. } = compare;
    let around = Around { setup: setup.clone(), prepare: prepare.clone(), cleanup: cleanup.clone() };
    let (timeout, ignore_failure) = (compare.timeout, compare.ignore_failure);
    Ok(Program { path, args, input: compare.input.clone(), timeout, ignore_failure, around })
}
