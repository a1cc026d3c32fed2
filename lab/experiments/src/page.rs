//! A sweep, or the documents' tables, as one HTML file.

use minijinja::Error;
use minijinja::value::Serde;
use serde::Serialize;
use spinpark_charts::front::Front;
use spinpark_measure::report::Style;
use spinpark_measure::report::page::{PAGE, environment};

use crate::sweep::{
    BESIDE, Cell, Grid, Shown, What, details, fronts, grids, groups, legend, plots_by_threads,
};
use crate::tables;
use spinpark_sim::table::{Bins, Table};

#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    command: &'a str,
    end: &'a str,
    sentences: Vec<String>,
    sections: Vec<Section>,
}

#[derive(Serialize)]
struct Section {
    title: String,
    plot: Option<String>,
    tables: Vec<Grid>,
    sentences: Vec<String>,
}

fn render(page: Page<'_>) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Data<'a> {
        page: Page<'a>,
    }
    environment(include_str!("page.html"))?.get_template(PAGE)?.render(Serde(Data { page }))
}

/// A sweep: a plot and tables for each machine and workload.
///
/// # Errors
///
/// If the template is wrong.
pub fn sweep(command: &str, end: &str, cells: &[Cell]) -> Result<String, Error> {
    let mut sections: Vec<Section> = Vec::new();
    // A sweep of a single number of threads has no plots.
    let mut drawn = groups(cells)
        .map(|group| plots_by_threads(group).ok().and_then(|mut plots| plots.pop()).map(|(_, svg)| svg));
    for what in std::iter::once(What::Throughput).chain(details(cells)) {
        for (number, (title, grid)) in grids(cells, what).into_iter().enumerate() {
            if what == What::Throughput {
                let plot = drawn.next().flatten();
                sections.push(Section { title, plot, tables: Vec::new(), sentences: Vec::new() });
            }
            sections[number].tables.push(grid);
        }
    }
    // The whole before its parts.
    let sections = fronts(cells).iter().map(|(title, front)| beside(title, front)).chain(sections).collect();
    let sentences = legend(cells);
    render(Page { title: "Locks on simulated machines", command, end, sentences, sections })
}

/// Throughput beside CPU time.
fn beside(title: &str, front: &Front) -> Section {
    Section {
        title: format!("{title}: {BESIDE}"),
        plot: front.plot(title).ok(),
        tables: vec![grid(front.header("lock"), front.rows())],
        sentences: vec![front.sentence()],
    }
}

/// A table without a title, in which the words of a verdict are marked.
fn grid(header: Vec<String>, rows: impl IntoIterator<Item = Vec<String>>) -> Grid {
    let shown = |(column, text): (usize, String)| {
        let class = match text.as_str() {
            _ if column == 0 => "left",
            "holds" => "holds",
            "missed" => "missed",
            _ => "",
        };
        Shown::new(class, text)
    };
    let row = |row: Vec<String>| row.into_iter().enumerate().map(shown).collect();
    Grid { title: String::new(), header, rows: rows.into_iter().map(row).collect() }
}

fn of_bins(bins: &Bins) -> Grid {
    let row = |(bin, theirs, ours)| vec![bin, format!("{theirs:.1} %"), format!("{ours:.1} %")];
    let header = [&bins.name, "published", "simulated"].map(str::to_owned).to_vec();
    grid(header, tables::bins(bins).into_iter().map(row))
}

/// The documents' tables.
///
/// # Errors
///
/// If the template is wrong.
pub fn tables(command: &str, end: &str, made: &[(String, Table)]) -> Result<String, Error> {
    let section = |(name, table): &(String, Table)| {
        let (header, rows) = tables::shown(table);
        let figures = grid(header.into_iter().map(str::to_owned).collect(), rows);
        let error = tables::error(table).map(str::to_owned);
        Section {
            title: tables::heading(name, table),
            plot: None,
            tables: std::iter::once(figures).chain(table.distributions.iter().map(of_bins)).collect(),
            sentences: error.into_iter().chain(tables::sentences(table)).collect(),
        }
    };
    let sentences = tables::verdict(made, Style::PLAIN);
    let sentences =
        sentences.iter().flat_map(|text| text.lines()).map(|line| line.trim().to_owned()).collect();
    let of = |one: &(String, Table)| {
        let fronts = one.1.fronts.iter().map(|(title, front)| beside(&format!("{}, {title}", one.0), front));
        std::iter::once(section(one)).chain(fronts).collect::<Vec<_>>()
    };
    let sections = made.iter().flat_map(of).collect();
    render(Page { title: "The four documents' tables, simulated", command, end, sentences, sections })
}
