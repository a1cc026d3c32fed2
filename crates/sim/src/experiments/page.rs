//! A sweep, or the documents' tables, as one HTML file.

use minijinja::Error;
use minijinja::value::Serde;
use serde::Serialize;
use spinpark_measure::page::{PAGE, environment};
use spinpark_measure::report::Style;
use spinpark_measure::report::front::Front;

use crate::experiments::sweep::{
    BESIDE, Cell, Grid, Shown, What, details, fronts, grids, legend, plots_by_threads,
};
use crate::experiments::tables;
use crate::table::{Bins, Table};

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
    let mut drawn = cells
        .chunk_by(|a, b| (&a.machine, &a.workload) == (&b.machine, &b.workload))
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
    let beside = fronts(cells).into_iter().map(|(title, front)| Section {
        plot: front.plot(&title).ok(),
        title: format!("{title}: {BESIDE}"),
        tables: vec![of_front(&front)],
        sentences: vec![front.sentence()],
    });
    let sections = beside.chain(sections).collect();
    let sentences = legend(cells);
    render(Page { title: "Locks on simulated machines", command, end, sentences, sections })
}

fn of_front(front: &Front) -> Grid {
    let shown = |(column, text)| Shown::new(if column == 0 { "left" } else { "" }, text);
    Grid {
        title: String::new(),
        header: front.header("lock"),
        rows: front.rows().map(|row| row.into_iter().enumerate().map(shown).collect()).collect(),
    }
}

fn of_bins(bins: &Bins) -> Grid {
    let percent = |part: f64| Shown::new("", format!("{part:.1} %"));
    let row = |(bin, theirs, ours)| vec![Shown::new("left", bin), percent(theirs), percent(ours)];
    Grid {
        title: String::new(),
        header: [&bins.name, "published", "simulated"].map(str::to_owned).to_vec(),
        rows: tables::bins(bins).into_iter().map(row).collect(),
    }
}

/// The documents' tables.
///
/// # Errors
///
/// If the template is wrong.
pub fn tables(command: &str, end: &str, made: &[(String, Table)]) -> Result<String, Error> {
    let front = |name: &str, (title, front): &(String, Front)| Section {
        plot: front.plot(&format!("{name}, {title}")).ok(),
        title: format!("{name}, {title}: {BESIDE}"),
        tables: vec![of_front(front)],
        sentences: vec![front.sentence()],
    };
    let section = |(name, table): &(String, Table)| {
        let (header, rows) = tables::shown(table);
        let shown = |(column, text): (usize, String)| {
            let class = match text.as_str() {
                _ if column == 0 => "left",
                "holds" => "holds",
                "missed" => "missed",
                _ => "",
            };
            Shown::new(class, text)
        };
        let figures = Grid {
            title: String::new(),
            header: header.into_iter().map(str::to_owned).collect(),
            rows: rows.into_iter().map(|row| row.into_iter().enumerate().map(shown).collect()).collect(),
        };
        Section {
            title: tables::heading(name, table),
            plot: None,
            tables: std::iter::once(figures).chain(table.distributions.iter().map(of_bins)).collect(),
            sentences: tables::error(table)
                .map(str::to_owned)
                .into_iter()
                .chain(tables::sentences(table))
                .collect(),
        }
    };
    let sentences = tables::verdict(made, Style::PLAIN);
    let sentences =
        sentences.iter().flat_map(|text| text.lines()).map(|line| line.trim().to_owned()).collect();
    let of = |one: &(String, Table)| {
        let fronts = one.1.fronts.iter().map(|of| front(&one.0, of));
        std::iter::once(section(one)).chain(fronts).collect::<Vec<_>>()
    };
    let sections = made.iter().flat_map(of).collect();
    render(Page { title: "The four documents' tables, simulated", command, end, sentences, sections })
}
