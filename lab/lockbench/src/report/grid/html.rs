//! A grid as one HTML file: a heat map for each table and each of ours.

use minijinja::Error;
use minijinja::value::Serde;
use serde::Serialize;
use spinpark_measure::report::Style;
use spinpark_measure::report::page::{PAGE, environment};

use super::lines::{self, legend, sentence};
use super::{Shown, maps, svg};
use crate::locks::bounds::BoundResult;
use crate::locks::result::PlaneFront;
use crate::report::bounds::render as render_bounds;
use crate::report::document::Record;

#[derive(Serialize)]
struct Page<'a> {
    command: &'a str,
    end: &'a str,
    machine: String,
    sentences: Vec<String>,
    bounds: Option<String>,
    sections: Vec<Section>,
}

#[derive(Serialize)]
struct Section {
    title: String,
    about: String,
    fronts: Vec<String>,
    tables: Vec<Table>,
}

#[derive(Serialize)]
struct Table {
    title: String,
    maps: Vec<Drawn>,
}

#[derive(Serialize)]
struct Drawn {
    ours: String,
    svg: String,
    sentence: String,
}

/// The page.
///
/// # Errors
///
/// If the template is wrong.
pub fn render(
    record: &Record,
    shown: &Shown,
    fronts: &[PlaneFront],
    bounds: &[BoundResult],
) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Data<'a> {
        page: Page<'a>,
    }
    let context = record.context();
    let mut sections: Vec<Section> = Vec::new();
    for maps in maps(&context, &record.cells, shown) {
        let Some(first) = maps.first() else { continue };
        let plane = record.planes.iter().find(|plane| plane.name == first.plane);
        let about =
            plane.map_or_else(String::new, |plane| format!("{}; {}", plane.about, legend(plane.load)));
        if sections.last().is_none_or(|section| section.title != first.plane) {
            let own = fronts.iter().filter(|front| front.plane == first.plane);
            let fronts = own.filter_map(|own| own.front.plot(&own.plane).ok()).collect();
            sections.push(Section { title: first.plane.clone(), about, fronts, tables: Vec::new() });
        }
        let drawn = |map: &super::Map| Drawn {
            ours: map.ours.clone(),
            svg: svg::render(map),
            sentence: map
                .summary
                .as_ref()
                .map_or_else(String::new, |summary| sentence(&map.ours, shown, summary)),
        };
        let table = Table { title: first.table.clone(), maps: maps.iter().map(drawn).collect() };
        if let Some(section) = sections.last_mut() {
            section.tables.push(table);
        }
    }
    let has_intervals = record.head.rounds >= spinpark_measure::stats::bootstrap::MIN_BLOCKS;
    let mut sentences =
        vec![format!("Each figure is the {}.", shown.in_words()), lines::marks(shown, has_intervals)];
    sentences.extend(lines::calibration(&record.calibrations));
    sentences.extend(lines::noise(&record.cells));
    sentences.extend(lines::starving(&context, &record.cells));
    let page = Page {
        command: &record.head.command,
        end: &record.head.end,
        machine: record.head.environment.line(),
        sentences,
        bounds: (!bounds.is_empty())
            .then(|| render_bounds(bounds, record.head.environment.cpus, Style::PLAIN)),
        sections,
    };
    environment(include_str!("page.html"))?.get_template(PAGE)?.render(Serde(Data { page }))
}
