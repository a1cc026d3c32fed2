//! Heat maps as text and as a page, tables, CSV, JSON.

use insta::assert_snapshot;
use spinpark_lockbench::locks::bounds::judge_all;
use spinpark_lockbench::locks::figure::{Against, Figure};
use spinpark_lockbench::locks::result::{CellResult, fronts};
use spinpark_lockbench::locks::summary::summaries;
use spinpark_lockbench::report::bounds;
use spinpark_lockbench::report::grid::{Shown, csv, heat, html, lines, maps};
use spinpark_measure::report::Style;
use spinpark_measure::report::json::Output;

use super::*;

fn record() -> Record {
    record_of(small_planes(), Mock::new(usual, 0.01), ROUNDS)
}

fn text(record: &Record, shown: &Shown, style: Style) -> String {
    let context = record.context();
    let mut text = String::new();
    for maps in maps(&context, &record.cells, shown) {
        let plane = record.planes.iter().find(|plane| plane.name == maps[0].plane).unwrap();
        text += &heat::render(&maps, shown, lines::legend(plane.load), style);
        text.push('\n');
    }
    text +=
        &lines::summaries(&summaries(&context, &record.cells, shown.figure, &shown.against), shown, style);
    if *shown == throughput() {
        let cpu_time = |against| summaries(&context, &record.cells, Figure::Cpu, &against);
        let glibc = Against::Implementation(String::from("glibc"));
        text += &format!("\n{}", lines::cpu_time(&cpu_time(Against::Best), &cpu_time(glibc), style));
    }
    let sentences = [lines::marks(shown, true)]
        .into_iter()
        .chain(lines::calibration(&record.calibrations))
        .chain(lines::noise(&record.cells))
        .chain(lines::starving(&context, &record.cells));
    sentences.for_each(|line| text += &format!("{line}\n"));
    text
}

fn throughput() -> Shown {
    Shown { figure: Figure::Throughput, against: Against::Best }
}

#[test]
fn heat_maps() {
    let text = text(&record(), &throughput(), Style::PLAIN);
    let maps = text.lines().take_while(|line| !line.starts_with('─'));
    assert!(maps.clone().all(|line| line.chars().count() <= 100));
    assert_snapshot!(text);
}

/// Nothing is left out where maps stand below each other, or a map has parts.
#[test]
fn heat_maps_in_a_narrow_terminal() {
    let record = record_of(wide_planes(), Mock::new(usual, 0.01), ROUNDS);
    let figures = |width| {
        let text = text(&record, &throughput(), Style { width, ..Style::PLAIN });
        let maps: Vec<&str> = text.lines().take_while(|line| !line.starts_with('─')).collect();
        let longest = maps.iter().map(|line| line.chars().count()).max().unwrap();
        let words = maps.iter().flat_map(|line| line.split_whitespace());
        let figures =
            words.filter(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()));
        let mut figures: Vec<String> = figures.map(String::from).collect();
        figures.sort();
        (longest, figures)
    };
    let (wide, all) = figures(160);
    let (narrow, same) = figures(80);
    assert!(wide > 80 && narrow <= 80, "{wide} {narrow}");
    assert_eq!(same, all);
}

#[test]
fn other_figures() {
    let record = record();
    let shown = Shown { figure: Figure::Ideal, against: Against::Best };
    assert_snapshot!("share_of_the_ideal", text(&record, &shown, Style::PLAIN));
    let shown = Shown { figure: Figure::WaitP999, against: Against::Implementation(String::from("glibc")) };
    let text = text(&record, &shown, Style::PLAIN);
    assert!(text.contains("p99.9 of waits ÷ glibc") && text.contains("less is better"), "{text}");
}

/// The figures are the same with colours; only escape sequences are added.
#[test]
fn colour_only_besides() {
    let record = record();
    let plain = text(&record, &throughput(), Style::PLAIN);
    let colored = text(&record, &throughput(), Style { color: true, ..Style::PLAIN });
    assert!(colored.contains("\u{1b}[38;5;16;48;5;210m0.50!\u{1b}[0m"), "{colored}");
    let mut stripped = String::new();
    for (number, part) in colored.split('\u{1b}').enumerate() {
        stripped += if number == 0 { part } else { part.split_once('m').unwrap().1 };
    }
    // Where there are colours, the last blank of a line has one.
    let trimmed = stripped.lines().map(str::trim_end).collect::<Vec<_>>();
    assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
}

#[test]
fn bounds_as_a_table() {
    let record = record();
    let judged = judge_all(&record.context(), &record.bound_definitions, &record.cells);
    assert_snapshot!(bounds::render(&judged, 2, Style::PLAIN));
    assert!(bounds::render(&[], 2, Style::PLAIN).contains("No bound"));
}

#[test]
fn a_line_per_cell_and_implementation() {
    let record = record();
    let text = csv::render(&CellResult::all(&record.context(), &record.cells));
    let fields = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
    assert!(text.lines().all(|line| fields(line) == 15), "{text}");
    let runs: usize = record.cells.iter().map(|cell| cell.cell.implementations.len()).sum();
    assert_eq!(text.lines().count(), runs + 1);
    assert_snapshot!(text.lines().take(6).collect::<Vec<_>>().join("\n"));
}

/// The page is well-formed but for its document type, and shows every ratio.
#[test]
fn a_page() {
    let record = record();
    let judged = judge_all(&record.context(), &record.bound_definitions, &record.cells);
    let fronts = fronts(&CellResult::all(&record.context(), &record.cells));
    let page = html::render(&record, &throughput(), &fronts, &judged).unwrap();
    let svgs: Vec<&str> =
        page.split("<svg").skip(1).map(|rest| rest.split_once("</svg>").unwrap().0).collect();
    let fronts = fronts.len();
    assert_eq!((svgs.len(), fronts), (2 * (2 + 1 + 1) + fronts, 3));
    for svg in &svgs {
        roxmltree::Document::parse(&format!("<svg{svg}</svg>")).unwrap();
    }
    assert!(page.contains("Bounds") && page.contains("geometric mean") && !page.contains("{{"));
    assert!(svgs[0].contains("throughput and CPU time"));
    assert_snapshot!(format!("<svg{}</svg>", svgs[2]));
}

#[test]
fn a_document_can_be_read_again() {
    let record = record();
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = Output::open(file.path()).unwrap();
    with_document(&record, |document| output.write_compact(document).unwrap());
    let text = std::fs::read_to_string(file.path()).unwrap();
    let again = Record::parse(&text).unwrap();
    assert_eq!(again.cells, record.cells);
    assert_eq!(again.planes, record.planes);
    assert_eq!(again.bound_definitions, record.bound_definitions);
    let results = |record: &Record| CellResult::all(&record.context(), &record.cells);
    assert_eq!(results(&again), results(&record));
    assert_eq!(again.file_name(), "2026-01-02-some-r-cpu-2-ghz-2cpus-vm-grid.json");
    let newer = text.replacen("\"schema\":3", "\"schema\":99", 1);
    assert!(Record::parse(&newer).unwrap_err().contains("schema 99"));
    let mut first: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut result = first["results"][0].take();
    result["implementations"].as_array_mut().unwrap().retain(|it| it["implementation"] == "spinpark");
    result["ratios"].as_object_mut().unwrap().retain(|name, _| name == "spinpark");
    assert_snapshot!("one_result", serde_json::to_string_pretty(&result).unwrap());
}
