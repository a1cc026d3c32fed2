//! The output of a sweep: the same for one that was made here and a merged one.

use std::path::PathBuf;

use anyhow::Context;
use spinpark_experiments::page;
use spinpark_experiments::sweep::{self, Cell};
use spinpark_measure::report::Style;
use spinpark_measure::report::json::Output;

use super::distinct;
use crate::cli::Swept;
use spinpark_cli::exit::BatchEnd;
use spinpark_cli::files::{create, draw, open};
use spinpark_cli::own;
use spinpark_cli::say::Say;

/// Files that are known to be writable.
pub(super) struct Out {
    json: Option<Output>,
    csv: Option<Output>,
    html: Option<Output>,
    json_lines: Option<Output>,
    plots: Option<PathBuf>,
    has_details: bool,
    pub(super) say: Say,
}

impl Out {
    pub(super) fn open(shown: &Swept) -> anyhow::Result<Self> {
        let Swept { json, csv, html, json_lines, plots, details, format: _ } = shown;
        let named = [("--json", json), ("--csv", csv), ("--html", html), ("--json-lines", json_lines)];
        distinct(&named)?;
        if let Some(directory) = plots {
            create("--plots", directory)?;
        }
        Ok(Self {
            json: open(json)?,
            csv: open(csv)?,
            html: open(html)?,
            json_lines: open(json_lines)?,
            plots: plots.clone(),
            has_details: *details,
            say: Say::apart_from(&named.map(|(_, path)| path)),
        })
    }

    pub(super) fn table(&self, cells: &[Cell], style: Style) {
        let table = sweep::render(cells, self.has_details, style);
        self.say.line(if cells.is_empty() {
            String::from("\nNothing was simulated.")
        } else {
            format!("\n{}", table.trim_end())
        });
    }

    /// Writes all files; those that show cells only if there are any: otherwise an earlier run's result would
    /// be lost.
    pub(super) fn write(
        self,
        end: BatchEnd,
        cells: &[Cell],
        lines: impl FnOnce() -> serde_json::Result<String>,
    ) -> anyhow::Result<()> {
        if let Some(file) = self.json_lines {
            file.write_plain(&lines().context("cannot write the runs as JSON")?)?;
        }
        if cells.is_empty() {
            return Ok(());
        }
        let command = own::command_line();
        if let Some(file) = self.json {
            file.write_compact(&sweep::json(end.name(), &command, cells))?;
        }
        if let Some(file) = self.csv {
            file.write_plain(&sweep::csv(cells))?;
        }
        if let Some(file) = self.html {
            let page = page::sweep(&command, end.name(), cells);
            file.write_plain(&page.context("cannot write the sweep as HTML")?)?;
        }
        if let Some(directory) = &self.plots {
            draw(directory, sweep::plots(cells)?)?;
        }
        Ok(())
    }
}
