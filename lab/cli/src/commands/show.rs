//! `spinpark-lab bench show` and `spinpark-lab documents show`: an earlier result again, from its file.

use std::fs;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use spinpark_documents::report::delays as of_delays;
use spinpark_documents::report::documents::{forms::markdown, json as of_documents};
use spinpark_documents::workloads::result as of_workloads;
use spinpark_lockbench::report::document as of_bench;
use spinpark_measure::report::json as of_compare;
use spinpark_measure::report::reading::{self, Header};

use super::bench::{self, NOT_A_GRID};

use super::documents::{delays, workloads};
use crate::cli::{Format, Show};
use spinpark_cli::say::Say;

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
    let is_bench = [of_bench::FORMAT, "spinpark bench locks", "spinpark bench grid"];
    if is_bench.contains(&header.format.as_str()) {
        bench::show(&text, show)?;
        return Ok(ExitCode::SUCCESS);
    }
    refuse_options(show, &header.format)?;
    match header.format.as_str() {
        of_compare::FORMAT => spinpark_cli::show_comparison(&text, STDOUT).map_err(is)?,
        of_documents::FORMAT => STDOUT.line(markdown(&of_documents::parse(&text).map_err(is)?)),
        of_delays::FORMAT => {
            delays::show(&of_delays::Document::parse(&text).map_err(is)?, show.details, STDOUT);
        }
        of_workloads::FORMAT => {
            let record = of_workloads::Record::parse(&text).map_err(is)?;
            workloads::show(&record, show)?;
            spinpark_cli::say::warnings(&reading::warnings(&text));
        }
        other => bail!("{file} is a document `{other}`, which this command does not know"),
    }
    Ok(ExitCode::SUCCESS)
}

fn refuse_options(show: &Show, format: &str) -> anyhow::Result<()> {
    let is_document = format == of_documents::FORMAT;
    if (show.format == Some(Format::Markdown) && !is_document) || show.plots.is_some() {
        bail!("--format markdown and --plots are for files of `bench locks`; leave them out");
    }
    if show.details && ![of_workloads::FORMAT, of_delays::FORMAT].contains(&format) {
        bail!("--details is for files of `bench locks`, of workloads and of delays; leave it out");
    }
    if show.grid.is_given() {
        bail!(NOT_A_GRID);
    }
    Ok(())
}
