//! The final output, on standard output and in files.

use std::path::PathBuf;

use anyhow::Context;
use spinpark_lockbench::grid::bounds::{BoundResult, judge_all};
use spinpark_lockbench::grid::figure::{Against, Figure};
use spinpark_lockbench::grid::summary::{PlaneSummary, summaries};
use spinpark_lockbench::report::grid::document::{Document, Record};
use spinpark_lockbench::report::grid::{self, Shown, bounds, heat, lines, maps, results};
use spinpark_measure::machine::Noise;
use spinpark_measure::report::Style;
use spinpark_measure::report::json::Output;
use spinpark_measure::stats::bootstrap::MIN_BLOCKS;
use spinpark_measure::warnings::Warning;

use crate::cli::GridShown;
use crate::say::Say;

/// Where the result goes besides the terminal.
pub(super) struct Destinations {
    pub(super) json: Option<Output>,
    pub(super) record: Option<PathBuf>,
    pub(super) pages: Pages,
}

/// Files for people and spreadsheets.
pub(super) struct Pages {
    html: Option<Output>,
    csv: Option<Output>,
}

impl Pages {
    /// Opens them.
    pub(super) fn open(shown: &GridShown) -> anyhow::Result<Self> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Output::open).transpose();
        Ok(Self { html: open(&shown.html)?, csv: open(&shown.csv)? })
    }
}

/// A record, and what follows from it.
pub(super) struct Findings {
    pub(super) record: Record,
    pub(super) bounds: Vec<BoundResult>,
    pub(super) warnings: Vec<Warning>,
}

impl Findings {
    pub(super) fn new(record: Record) -> Self {
        let bounds = judge_all(&record.context(), &record.bound_definitions, &record.cells);
        Self { record, bounds, warnings: Vec::new() }
    }

    /// Prints heat maps, sentences and bounds, and on standard error what makes them weak.
    pub(super) fn print(&self, say: Say, shown: &Shown, style: Style) {
        let Self { record, bounds: judged, warnings } = self;
        let context = record.context();
        let is_empty = record.cells.iter().all(|cell| cell.measured.runs.is_empty());
        if is_empty {
            say.line("\nNothing was measured.");
        } else {
            for maps in maps(&context, &record.cells, shown) {
                let plane =
                    maps.first().and_then(|map| record.planes.iter().find(|plane| plane.name == map.plane));
                let legend = plane.map_or("", |plane| lines::legend(plane.load));
                say.line(format!("\n{}", heat::render(&maps, shown, legend, style).trim_end()));
            }
            self.print_sentences(say, shown, style);
            if !record.bound_definitions.is_empty() {
                say.line(format!("\n{}", bounds::render(judged, style).trim_end()));
            }
            say.wrapped(&record.head.environment.line(), 2);
        }
        crate::say::warnings(warnings);
    }

    fn print_sentences(&self, say: Say, shown: &Shown, style: Style) {
        let Self { record, .. } = self;
        let context = record.context();
        let has_intervals = record.head.rounds >= MIN_BLOCKS;
        let summed = summaries(&context, &record.cells, shown.figure, &shown.against);
        say.line(format!("\n{}", lines::summaries(&summed, shown, style).trim_end()));
        if shown.figure == Figure::Throughput && shown.against == Against::Best {
            let [best, glibc] = self.cpu_time();
            say.line(format!("\n{}", lines::cpu_time(&best, &glibc, style).trim_end()));
        }
        say.line("");
        say.wrapped(&lines::marks(shown, has_intervals), 2);
        for line in lines::calibration(&record.calibrations)
            .into_iter()
            .chain(lines::noise(&record.cells))
            .chain(lines::starving(&context, &record.cells))
        {
            say.wrapped(&line, 2);
        }
    }

    /// CPU time an operation: against the fastest peer of each cell, and against glibc.
    fn cpu_time(&self) -> [Vec<PlaneSummary>; 2] {
        let glibc = Against::Implementation(String::from("glibc"));
        let context = self.record.context();
        [Against::Best, glibc].map(|against| summaries(&context, &self.record.cells, Figure::Cpu, &against))
    }

    /// Writes the files.
    pub(super) fn write(&self, to: Destinations, shown: &Shown, noise: &Noise) -> anyhow::Result<()> {
        let Destinations { json, record, pages } = to;
        self.write_pages(pages, shown)?;
        if json.is_none() && record.is_none() {
            return Ok(());
        }
        let context = self.record.context();
        let document = Document {
            record: &self.record,
            noise,
            warnings: &self.warnings,
            results: &results::of(&context, &self.record.cells),
            summaries: &summaries(&context, &self.record.cells, Figure::Throughput, &Against::Best),
            cpu_time: &self.cpu_time().concat(),
            fronts: &results::fronts(&self.record.cells),
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
        Ok(())
    }

    /// Writes the page and the table.
    pub(super) fn write_pages(&self, pages: Pages, shown: &Shown) -> anyhow::Result<()> {
        if let Some(html) = pages.html {
            let page =
                grid::html::render(&self.record, shown, &self.bounds).context("cannot make the page")?;
            html.write_plain(&page)?;
        }
        if let Some(csv) = pages.csv {
            csv.write_plain(&grid::csv::render(&results::of(&self.record.context(), &self.record.cells)))?;
        }
        Ok(())
    }
}
