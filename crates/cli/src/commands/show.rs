//! `spinpark bench show` and `spinpark documents show`: an earlier result again, from its file.

use std::fs;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use spinpark_documents::report::documents::{forms::markdown, json as of_documents};
use spinpark_documents::workloads::result as of_workloads;
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::report::grid::document as of_grid;
use spinpark_lockbench::report::locks::document as of_locks;
use spinpark_measure::report::json as of_compare;
use spinpark_measure::report::reading::{self, Header};

use super::bench::{findings, grid};
use super::compare;
use super::documents::workloads;
use crate::cli::{Format, Show};
use crate::directory::create;
use crate::say::Say;

/// What can be shown.
const WHICH: &str = "Name a file that `bench`, `documents` or `compare` wrote with --json or --record";

const STDOUT: Say = Say { on_stderr: false };

/// Reads the runs, draws all conclusions again, and prints them.
pub(crate) fn run(show: &Show) -> anyhow::Result<ExitCode> {
    let file = show.file.display();
    let text =
        fs::read_to_string(&show.file).map_err(|error| anyhow!("cannot read {file}: {error}\n{WHICH}"))?;
    let is = |what: String| anyhow!("{file} is {what}");
    let header = Header::parse(&text).map_err(|what| anyhow!("{file} is {what}\n{WHICH}"))?;
    if header.format != of_locks::FORMAT {
        refuse_options(show, &header.format)?;
    }
    if header.format != of_grid::FORMAT && show.grid.is_given() {
        bail!("--figure, --against, --html and CSV are for files of `bench grid`; leave them out");
    }
    match header.format.as_str() {
        of_grid::FORMAT => grid::show(&text, &file.to_string(), &show.grid)?,
        of_compare::FORMAT => compare::report::show(&text, STDOUT).map_err(is)?,
        of_documents::FORMAT => STDOUT.line(markdown(&of_documents::parse(&text).map_err(is)?)),
        of_workloads::FORMAT => {
            let record = of_workloads::Record::parse(&text).map_err(is)?;
            workloads::show(&record, show)?;
            crate::say::warnings(&reading::warnings(&text));
        }
        of_locks::FORMAT => locks(&text, show)?,
        other => bail!("{file} is a document `{other}`, which this command does not know"),
    }
    Ok(ExitCode::SUCCESS)
}

fn is_markdown(show: &Show) -> bool {
    show.format == Some(Format::Markdown)
}

fn refuse_options(show: &Show, format: &str) -> anyhow::Result<()> {
    let is_document = format == of_documents::FORMAT;
    if (is_markdown(show) && !is_document) || show.plots.is_some() {
        bail!("--format markdown and --plots are for files of `bench locks`; leave them out");
    }
    if show.details && format != of_workloads::FORMAT {
        bail!("--details is for files of `bench locks` and of workloads; leave it out");
    }
    Ok(())
}

fn locks(text: &str, show: &Show) -> anyhow::Result<()> {
    let record = of_locks::Record::parse(text);
    let record = record.map_err(|what| anyhow!("{} is {what}", show.file.display()))?;
    let mut definitions = Definitions::built_in()?;
    definitions.implementations =
        record.implementations.iter().map(|implementation| implementation.implementation.clone()).collect();
    definitions.bounds.clone_from(&record.bound_definitions);
    let is_bounds = !definitions.bounds.is_empty();
    let mut findings = findings(&definitions, record, is_bounds)?;
    findings.warnings = reading::warnings(text);
    findings.print(STDOUT, is_markdown(show), show.details, STDOUT.style());
    if let Some(directory) = &show.plots {
        create("--plots", directory)?;
        findings.draw(directory)?;
    }
    Ok(())
}
