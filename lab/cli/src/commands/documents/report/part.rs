//! A part of the report: one command line, carried out by the functions of its own command.

use std::ffi::OsString;

use anyhow::{anyhow, bail};
use clap::Parser;
use spinpark_documents::documents::{Run, RunReport, What};
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::measure::End;
use spinpark_measure::rounds::warnings::Warning;

use super::super::workloads::{self, Prepared};
use crate::cli::{Cli, Command, Documents, PresetChoice};
use crate::commands::bench::{Request, measure_request};
use spinpark_cli::exit::in_full;
use spinpark_cli::own::command;
use spinpark_cli::progress::Progress;
use spinpark_cli::session::Session;

/// A part, and what can be wrong about it.
pub(super) struct Part {
    run: Run,
    is_quick: bool,
    command: String,
    prepared: anyhow::Result<Ready>,
}

/// What can be carried out.
enum Ready {
    Workload(Box<Prepared>),
    Locks(Box<Request>),
}

/// What was measured, and how that ended.
type Measured = (What, Vec<Warning>, End);

impl Part {
    /// Checks all of it.
    pub(super) fn new(run: &Run, is_quick: bool, rounds: Option<usize>) -> Self {
        let words = run.words(is_quick, rounds);
        let all = std::iter::once("documents").chain(words.iter().map(String::as_str)).map(OsString::from);
        let command = command(all.clone());
        let prepared = prepare(all);
        Self { run: run.clone(), is_quick, command, prepared }
    }

    pub(super) fn name(&self) -> &str {
        &self.run.name
    }

    /// Why it cannot be run.
    pub(super) fn obstacle(&self) -> Option<String> {
        self.prepared.as_ref().err().map(in_full)
    }

    /// How many runs it has.
    pub(super) fn runs(&self) -> usize {
        match &self.prepared {
            Ok(Ready::Workload(prepared)) => prepared.runs(),
            Ok(Ready::Locks(request)) => request.runs(),
            Err(_) => 0,
        }
    }

    /// About how long it takes, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        let fixed = || self.run.seconds(self.is_quick).unwrap_or(1.0) * self.runs() as f64;
        match &self.prepared {
            Ok(Ready::Workload(prepared)) => prepared.seconds().unwrap_or_else(fixed),
            Ok(Ready::Locks(request)) => request.seconds(),
            Err(_) => 0.0,
        }
    }

    /// Nothing, for a reason.
    pub(super) fn nothing(self, why: String) -> RunReport {
        RunReport {
            name: self.run.name,
            title: self.run.title,
            command: self.command,
            what: What::Nothing(why),
            failure: None,
            warnings: Vec::new(),
        }
    }

    /// Measures. Whatever happens, it is an outcome.
    pub(super) fn run(self, session: &Session, progress: &mut Progress) -> RunReport {
        let Self { run, command, prepared, .. } = self;
        let made = prepared.and_then(|ready| ready.measure(session, &command, progress));
        let (what, warnings, failure) = match made {
            Ok((what, warnings, End::Failed(error))) => (what, warnings, Some(error.to_string())),
            Ok((what, warnings, _)) => (what, warnings, None),
            Err(error) => {
                // A missing program is no failure; a run that went wrong is one.
                let failure = error.is::<RunError>().then(|| error.to_string());
                (What::Nothing(in_full(&error)), Vec::new(), failure)
            }
        };
        RunReport { name: run.name, title: run.title, command, what, failure, warnings }
    }
}

impl Ready {
    fn measure(self, session: &Session, command: &str, progress: &mut Progress) -> anyhow::Result<Measured> {
        match self {
            Self::Workload(prepared) => {
                let (outcome, end) = prepared.measure(session, command.to_owned(), progress, None)?;
                let workloads::WorkloadReport { workload, record, results, noise, warnings } = outcome;
                Ok((What::Workload { workload, record: Box::new(record), results, noise }, warnings, end))
            }
            Self::Locks(mut request) => {
                command.clone_into(&mut request.command);
                let (findings, noise, end) = measure_request(&request, session, progress)?;
                let warnings = findings.warnings.clone();
                let (record, results) = findings.into_results();
                Ok((What::Locks { record: Box::new(record), results, noise }, warnings, end))
            }
        }
    }
}

/// Parses the words as a command line.
fn prepare(words: impl Iterator<Item = OsString>) -> anyhow::Result<Ready> {
    let parsed = Cli::try_parse_from(std::iter::once(OsString::from("spinpark")).chain(words));
    let parsed = parsed.map_err(|error| {
        let text = error.to_string();
        anyhow!("{}", text.lines().next().unwrap_or_default().trim_start_matches("error: "))
    })?;
    let Command::Documents(documents) = parsed.command else { bail!("this is no workload") };
    let (common, experiment) = match &documents {
        Documents::Mtx(locks) => {
            return Ok(Ready::Locks(Box::new(Request::new(locks, PresetChoice::Mtx)?)));
        }
        Documents::Creat(creat) => (&creat.common, workloads::creat(creat)?),
        Documents::Mmap(mmap) => (&mmap.common, workloads::mmap(mmap)?),
        Documents::Faults(faults) => (&faults.common, workloads::faults(faults)?),
        Documents::Scan(scan) => (&scan.common, workloads::scan(scan)?),
        Documents::Jobs(jobs) => (&jobs.common, workloads::jobs(jobs)?),
        Documents::Mail(mail) => (&mail.common, workloads::mail(mail)?),
        Documents::Condvar(condvar) => (&condvar.common, workloads::condvar(condvar)?),
        Documents::Select(select) => (&select.common, workloads::select(select)?),
        _ => bail!("this is no workload"),
    };
    Ok(Ready::Workload(Box::new(Prepared::new(common, experiment)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinpark_documents::documents::documents;

    /// The command line understands all definitions, whatever this machine lacks.
    #[test]
    fn every_part_is_a_command_line() {
        for (number, document) in documents(&[]).unwrap() {
            for (run, is_quick) in document.runs.iter().flat_map(|run| [(run, true), (run, false)]) {
                let words = run.words(is_quick, None);
                let all = ["spinpark", "documents"].into_iter().chain(words.iter().map(String::as_str));
                Cli::try_parse_from(all).unwrap_or_else(|error| panic!("{number}: {words:?}: {error}"));
            }
        }
    }
}
