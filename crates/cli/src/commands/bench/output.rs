//! The final output, on standard output and in files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use spinpark_lockbench::locks::bounds::BoundResult;
use spinpark_lockbench::locks::result::CellResult;
use spinpark_lockbench::report::locks::document::{Document, Record};
use spinpark_lockbench::report::locks::{
    FEW_CELLS, bounds, details, effects, markdown, matrix, pairwise, plot,
};
use spinpark_measure::machine::Noise;
use spinpark_measure::report::Style;
use spinpark_measure::report::front;
use spinpark_measure::report::json::Output;
use spinpark_measure::units::counted;
use spinpark_measure::warnings::Warning;

use crate::say::Say;

/// Where the result goes besides the terminal.
pub(super) struct Destinations {
    pub(super) json: Option<Output>,
    pub(super) plots: Option<PathBuf>,
    pub(super) record: Option<PathBuf>,
}

/// A record, and what follows from it.
pub(crate) struct Findings {
    pub(crate) record: Record,
    pub(crate) results: Vec<CellResult>,
    pub(crate) bounds: Vec<BoundResult>,
    pub(crate) warnings: Vec<Warning>,
}

impl Findings {
    pub(super) fn new(record: Record, bounds: Vec<BoundResult>) -> Self {
        let results =
            record.cells.iter().filter_map(|cell| CellResult::new(cell, record.head.seed)).collect();
        Self { record, results, bounds, warnings: Vec::new() }
    }

    /// Prints tables, and on standard error what makes them weak.
    pub(in crate::commands) fn print(&self, say: Say, is_markdown: bool, is_detailed: bool, style: Style) {
        let Self { record, results, bounds: judged, warnings } = self;
        let cpus = record.head.environment.cpus;
        let varied = effects::baseline(
            record.implementations.iter().map(|implementation| &implementation.implementation),
        );
        if results.is_empty() {
            say.line("\nNothing was measured.");
        } else if is_markdown {
            say.line(format!(
                "\n{}",
                markdown::render(results, judged, varied, &record.head.environment, &record.head.command)
            ));
        } else {
            for text in tables(results, judged, varied, cpus, is_detailed, style) {
                say.line(format!("\n{text}"));
            }
            say.wrapped(&record.head.environment.line(), 2);
        }
        crate::say::warnings(warnings);
    }

    /// Writes the files.
    pub(super) fn write(&self, destinations: Destinations, noise: &Noise) -> anyhow::Result<()> {
        let Destinations { json, plots, record } = destinations;
        let document = Document {
            record: &self.record,
            noise,
            warnings: &self.warnings,
            results: &self.results,
            fronts: &matrix::fronts(&self.results),
            bounds: &self.bounds,
        };
        if let Some(json) = json {
            json.write_compact(&document)?;
        }
        if let Some(directory) = record {
            let path = directory.join(self.record.file_name());
            Output::open(&path)?.write_compact(&document)?;
            note!("Record: {}", path.display());
        }
        plots.map_or(Ok(()), |directory| self.draw(&directory))
    }

    /// Draws a plot per workload, and one of each front.
    pub(in crate::commands) fn draw(&self, directory: &Path) -> anyhow::Result<()> {
        let implementations: Vec<String> = self
            .record
            .implementations
            .iter()
            .map(|implementation| implementation.implementation.name.clone())
            .collect();
        let mut plots = plot::render_all(&self.results, &implementations)?;
        let fronts = matrix::fronts(&self.results).into_iter();
        plots.extend(front::plots(&fronts.map(|of| (counted(of.cells, "cell"), of)).collect::<Vec<_>>())?);
        for (name, svg) in plots {
            let path = directory.join(name);
            fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
            note!("Plot: {}", path.display());
        }
        Ok(())
    }
}

fn tables(
    results: &[CellResult],
    judged: &[BoundResult],
    varied: Option<&str>,
    cpus: usize,
    is_detailed: bool,
    style: Style,
) -> Vec<String> {
    let mut tables = Vec::new();
    match pairwise::names(results).filter(|_| varied.is_none()) {
        _ if !judged.is_empty() => tables.push(bounds::render(judged, cpus, style)),
        Some(names) => {
            let [baseline, other] = names;
            let table = pairwise::render(results, names, cpus, style);
            let sentence =
                format!("Time per operation; the ratio is {other} ÷ {baseline}, so less than 1 is faster.\n");
            tables.push(table + &sentence);
            tables.extend(pairwise::render_waits(results, style).filter(|_| !is_detailed));
        }
        None if varied.is_some() => {
            let baseline = varied.unwrap_or_default();
            let sentence = style.wrap(&effects::explanation(baseline), 0) + "\n";
            tables.push(effects::render(results, baseline, cpus, style) + &sentence);
        }
        None => {
            let sentence = "Time per operation of all threads together: less is faster.\n";
            tables.push(matrix::render(results, cpus, style) + sentence);
        }
    }
    if judged.is_empty() && varied.is_none() {
        tables.extend(
            matrix::fronts(results).iter().map(|front| front.render("throughput beside CPU time", style)),
        );
    }
    let is_small = judged.is_empty() && pairwise::names(results).is_none() && results.len() <= FEW_CELLS;
    if is_detailed || is_small {
        tables.extend(results.iter().map(|result| details::render(result, cpus, style)));
    }
    tables
}
