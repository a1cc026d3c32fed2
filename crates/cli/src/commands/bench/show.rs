//! `spinpark bench show`: an earlier result again, from its file.

use std::fs;
use std::process::ExitCode;

use anyhow::Context;
use spinpark_bench::locks::definitions::Definitions;
use spinpark_bench::report::Style;
use spinpark_bench::report::locks::document::Record;
use spinpark_bench::report::workloads::document;

use super::workloads;
use crate::cli::Show;
use crate::say::Say;

/// Reads the runs, draws all conclusions again, and prints them.
pub(super) fn run(show: &Show) -> anyhow::Result<ExitCode> {
    let file = show.file.display();
    let text = fs::read_to_string(&show.file).with_context(|| format!("cannot read {file}"))?;
    if let Ok(record) = document::Record::parse(&text) {
        return workloads::show(&record, show);
    }
    let record = Record::parse(&text).map_err(|what| anyhow::anyhow!("{file} is {what}"))?;
    let mut definitions = Definitions::built_in()?;
    definitions.targets = record.targets.iter().map(|target| target.target.clone()).collect();
    definitions.bounds.clone_from(&record.bound_definitions);
    let is_bounds = !definitions.bounds.is_empty();
    let findings = super::findings(&definitions, record, is_bounds)?;
    findings.print(Say { on_stderr: false }, show.markdown, show.details, Style::of_stdout());
    if let Some(directory) = &show.plots {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create the directory {}", directory.display()))?;
        findings.draw(directory)?;
    }
    Ok(ExitCode::SUCCESS)
}
