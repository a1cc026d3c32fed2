//! The final output, on standard output and in files.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use anyhow::Context;
use spinpark_charts::front;
use spinpark_lockbench::locks::bounds::{BoundResult, judge_all};
use spinpark_lockbench::locks::figure::{Against, Figure};
use spinpark_lockbench::locks::result::{CellResult, SLEEPER, fronts};
use spinpark_lockbench::locks::summary::{PlaneSummary, summaries};
use spinpark_lockbench::report::bounds;
use spinpark_lockbench::report::document::{Document, Record};
use spinpark_lockbench::report::grid::{Shown, csv, heat, html, lines, maps};
use spinpark_lockbench::report::locks::{FEW_CELLS, details, effects, markdown, matrix, pairwise, plot};
use spinpark_measure::report::Style;
use spinpark_measure::report::json::Output;
use spinpark_measure::rounds::machine::Noise;
use spinpark_measure::rounds::warnings::Warning;
use spinpark_measure::stats::bootstrap::MIN_BLOCKS;
use spinpark_measure::text::units::counted;

use crate::cli::GridShown;
use spinpark_cli::files::{create, draw, open};
use spinpark_cli::say::Say;

/// How a result is shown.
pub(super) enum View {
    /// Workloads.
    Tables { is_markdown: bool, is_detailed: bool },
    /// Planes.
    Maps(Shown),
}

/// Where the result goes, in addition to the terminal.
#[derive(Default)]
pub(super) struct Destinations {
    pub(super) json: Option<Output>,
    pub(super) record: Option<PathBuf>,
    pub(super) plots: Option<PathBuf>,
    pub(super) html: Option<Output>,
    pub(super) csv: Option<Output>,
}

impl Destinations {
    /// The files that `shown` names, opened.
    pub(super) fn of_grid(shown: &GridShown) -> anyhow::Result<Self> {
        Ok(Self { html: open(&shown.html)?, csv: open(&shown.csv)?, ..Self::default() })
    }

    /// With these as well, opened.
    pub(super) fn and(
        self,
        json: Option<&Path>,
        record: Option<&Path>,
        plots: Option<&Path>,
    ) -> anyhow::Result<Self> {
        for (option, directory) in [("--plots", plots), ("--record", record)] {
            directory.map_or(Ok(()), |directory| create(option, directory))?;
        }
        let json = json.map(Output::open).transpose()?;
        Ok(Self { json, record: record.map(Path::to_owned), plots: plots.map(Path::to_owned), ..self })
    }
}

/// A record, and what follows from it.
pub(crate) struct Findings {
    pub(crate) record: Record,
    results: OnceCell<Vec<CellResult>>,
    pub(crate) bounds: Vec<BoundResult>,
    pub(crate) warnings: Vec<Warning>,
}

impl Findings {
    pub(super) fn new(record: Record) -> Self {
        let bounds = judge_all(&record.context(), &record.bound_definitions, &record.cells);
        Self { record, results: OnceCell::new(), bounds, warnings: Vec::new() }
    }

    /// What follows for each cell. Of planes that takes seconds, and only files need it.
    pub(super) fn results(&self) -> &[CellResult] {
        self.results.get_or_init(|| CellResult::all(&self.record.context(), &self.record.cells))
    }

    /// The record and what follows for each cell.
    pub(crate) fn into_results(self) -> (Record, Vec<CellResult>) {
        self.results();
        (self.record, self.results.into_inner().unwrap_or_default())
    }

    /// Prints tables or heat maps, and on standard error what makes them weak.
    pub(super) fn print(&self, say: Say, view: &View) {
        let Self { record, bounds: judged, warnings, .. } = self;
        let (style, environment) = (say.style(), &record.head.environment);
        if record.cells.iter().all(|cell| cell.runs.is_empty()) {
            say.line("\nNothing was measured.");
        } else {
            match view {
                View::Tables { is_markdown: true, .. } => {
                    let (results, command) = (self.results(), &record.head.command);
                    let text = markdown::render(results, judged, self.varied(), environment, command);
                    say.line(format!("\n{text}"));
                }
                View::Tables { is_detailed, .. } => {
                    self.print_tables(say, *is_detailed, style);
                    say.wrapped(&environment.line(), 2);
                }
                View::Maps(shown) => {
                    self.print_maps(say, shown, style);
                    say.wrapped(&environment.line(), 2);
                }
            }
        }
        spinpark_cli::say::warnings(warnings);
    }

    /// The implementation of which all others are variants.
    fn varied(&self) -> Option<&str> {
        effects::baseline(self.record.implementations.iter().map(|one| &one.implementation))
    }

    fn print_tables(&self, say: Say, is_detailed: bool, style: Style) {
        let (results, varied, is_judged) = (self.results(), self.varied(), !self.bounds.is_empty());
        let cpus = self.record.head.environment.cpus;
        let print = |text: String| say.line(format!("\n{text}"));
        match pairwise::names(results).filter(|_| varied.is_none()) {
            _ if is_judged => print(bounds::render(&self.bounds, cpus, style)),
            Some(names) => {
                let [baseline, other] = names;
                let table = pairwise::render(results, names, cpus, style);
                print(format!(
                    "{table}Time per operation; the ratio is {other} ÷ {baseline}, so less than 1 is faster.\n"
                ));
                pairwise::render_waits(results, style).filter(|_| !is_detailed).into_iter().for_each(print);
            }
            None if varied.is_some() => {
                let baseline = varied.unwrap_or_default();
                let sentence = style.wrap(&effects::explanation(baseline), 0) + "\n";
                print(effects::render(results, baseline, cpus, style) + &sentence);
            }
            None => {
                let sentence = "Time per operation of all threads together: less is faster.\n";
                print(matrix::render(results, cpus, style) + sentence);
            }
        }
        if !is_judged && varied.is_none() {
            let fronts = fronts(results).into_iter();
            fronts.for_each(|of| print(of.front.render("throughput and CPU time", style)));
        }
        let is_small = !is_judged && pairwise::names(results).is_none() && results.len() <= FEW_CELLS;
        if is_detailed || is_small {
            results.iter().for_each(|result| print(details::render(result, cpus, style)));
        }
    }

    fn print_maps(&self, say: Say, shown: &Shown, style: Style) {
        let record = &self.record;
        let context = record.context();
        for maps in maps(&context, &record.cells, shown) {
            let plane =
                maps.first().and_then(|map| record.planes.iter().find(|plane| plane.name == map.plane));
            let legend = plane.map_or("", |plane| lines::legend(plane.load));
            say.line(format!("\n{}", heat::render(&maps, shown, legend, style).trim_end()));
        }
        let summed = summaries(&context, &record.cells, shown.figure, &shown.against);
        say.line(format!("\n{}", lines::summaries(&summed, shown, style).trim_end()));
        let [best, glibc] = self.cpu_time();
        say.line(format!("\n{}", lines::cpu_time(&best, &glibc, style).trim_end()));
        say.line("");
        say.wrapped(&lines::marks(shown, record.head.rounds >= MIN_BLOCKS), 2);
        lines::calibration(&record.calibrations)
            .into_iter()
            .chain(lines::noise(&record.cells))
            .chain(lines::starving(&context, &record.cells))
            .for_each(|line| say.wrapped(&line, 2));
        if !record.bound_definitions.is_empty() {
            let cpus = record.head.environment.cpus;
            say.line(format!("\n{}", bounds::render(&self.bounds, cpus, style).trim_end()));
        }
    }

    /// CPU time an operation of planes: against the fastest peer of each cell, and against glibc.
    fn cpu_time(&self) -> [Vec<PlaneSummary>; 2] {
        let glibc = Against::Implementation(SLEEPER.to_owned());
        let context = self.record.context();
        [Against::Best, glibc].map(|against| summaries(&context, &self.record.cells, Figure::Cpu, &against))
    }

    /// Writes the files.
    pub(super) fn write(&self, to: Destinations, view: &View, noise: &Noise) -> anyhow::Result<()> {
        let Destinations { json, record, plots, html, csv } = to;
        if let (Some(html), View::Maps(shown)) = (html, view) {
            let page = html::render(&self.record, shown, &fronts(self.results()), &self.bounds);
            html.write_plain(&page.context("cannot make the page")?)?;
        }
        if let Some(csv) = csv {
            csv.write_plain(&csv::render(self.results()))?;
        }
        let into = record.map(|directory| directory.join(self.record.file_name()));
        if json.is_some() || into.is_some() {
            let mut summed = Vec::new();
            if !self.record.planes.is_empty() {
                let cells = &self.record.cells;
                summed = summaries(&self.record.context(), cells, Figure::Throughput, &Against::Best);
                summed.extend(self.cpu_time().into_iter().flatten());
            }
            let document = Document {
                record: &self.record,
                noise,
                warnings: &self.warnings,
                results: self.results(),
                summaries: &summed,
                fronts: &fronts(self.results()),
                bounds: &self.bounds,
            };
            if let Some(json) = json {
                json.write_compact(&document)?;
            }
            if let Some(path) = into {
                Output::open(&path)?.write_compact(&document)?;
                note!("Record: {}", path.display());
            }
        }
        plots.map_or(Ok(()), |directory| self.draw(&directory))
    }

    /// Draws a plot per workload, and one of each front.
    fn draw(&self, directory: &Path) -> anyhow::Result<()> {
        let implementations: Vec<String> =
            self.record.implementations.iter().map(|one| one.implementation.name.clone()).collect();
        let mut plots = plot::render_all(self.results(), &implementations)?;
        let fronts = fronts(self.results()).into_iter().map(|of| of.front);
        plots.extend(front::plots(&fronts.map(|of| (counted(of.cells, "cell"), of)).collect::<Vec<_>>())?);
        draw(directory, plots)
    }
}
