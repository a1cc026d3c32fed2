//! Maps of delays in FreeBSD's mutex as tables, heat maps, CSV and JSON.

use comfy_table::Cell as TableCell;
use serde::{Deserialize, Serialize};
use spinpark_charts::heat::{HeatCell, HeatMap};
use spinpark_classics::mtx_2006::delays::Place;
use spinpark_measure::report::{self, Goodness, Style, reading, text};
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::text::units::{change, counted, percent, time};

use crate::mtx_2006::delays::{At, Cell, Counters, Effect, GAIN, Map, Maps, Plain};

/// The factor at which a colour is at its strongest.
const STRONGEST: f64 = 1.5;

/// The version of the document's structure. It grows when a field changes its meaning or goes.
const SCHEMA: u32 = 1;

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark documents delays";

/// All data as one JSON document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Document {
    pub format: String,
    pub schema: u32,
    /// "complete" or "interrupted".
    pub end: String,
    pub command: String,
    /// The order of runs, or the first seed.
    pub seed: u64,
    /// Where and when it was measured; a simulation depends on neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    #[serde(flatten)]
    pub maps: Maps,
}

impl Document {
    pub fn new(end: &str, command: String, seed: u64, environment: Option<Environment>, maps: Maps) -> Self {
        let (format, end) = (FORMAT.to_owned(), end.to_owned());
        Self { format, schema: SCHEMA, end, command, seed, environment, maps }
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// The reason why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        reading::parse(text, FORMAT, SCHEMA)
    }
}

/// A length as people write it: `250 ns`, `6 µs`, `48.75 µs`.
fn length(ns: u32) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", f64::from(ns) / 1e3),
        _ => format!("{} ms", f64::from(ns) / 1e6),
    }
}

/// "e4500-12, 12 threads, 5 seeds of 100 ms".
fn conditions(maps: &Maps) -> String {
    let machine = maps.machine.as_deref().unwrap_or("this machine");
    let runs = counted(maps.runs, if maps.machine.is_some() { "seed" } else { "round" });
    format!("{machine}, {}, {runs} of {}", counted(maps.threads, "thread"), time(maps.run_ns as f64))
}

fn about(map: &Map) -> &'static str {
    Place::by_name(&map.place).map_or("", Place::about)
}

fn mark(effect: Effect) -> &'static str {
    match effect {
        Effect::Gain => "+",
        Effect::Loss => "-",
        Effect::Undecided => "",
    }
}

fn goodness(effect: Effect) -> Goodness {
    match effect {
        Effect::Gain => Goodness::Good,
        Effect::Loss => Goodness::Bad,
        Effect::Undecided => Goodness::Neither,
    }
}

/// The header of a map's table: what the rows are, then the loads.
fn header(maps: &Maps, first: &str) -> Vec<String> {
    let loads = maps.loads.iter().map(|load| length(load.between_ns));
    std::iter::once(first.to_owned()).chain(loads).collect()
}

fn empty(maps: &Maps, first: &str, style: Style) -> comfy_table::Table {
    let header = header(maps, first);
    report::table(style, &header.iter().map(String::as_str).collect::<Vec<_>>())
}

/// All maps as tables, and what they come to.
#[must_use]
pub fn render(maps: &Maps, is_detailed: bool, style: Style) -> String {
    let mut out = style.wrap(
        &format!(
            "Throughput with a delay ÷ without ({}); rows: the delay, columns: the time between two sections",
            conditions(maps)
        ),
        2,
    ) + "\n";
    for map in &maps.maps {
        let mut rows = empty(maps, &map.place, style);
        for row in &map.rows {
            rows.add_row(shown(length(row.delay_ns), &row.cells, style));
        }
        out += &format!("\nA delay {}\n{}", about(map), text(&rows));
    }
    let mut rows = empty(maps, "the profiler", style);
    for ingredient in &maps.ingredients {
        rows.add_row(shown(short(&ingredient.lock), &ingredient.cells, style));
    }
    out += &format!(
        "\nBack-off, and the ingredients of the profiler of 2006 (`spinpark-lab bench list`)\n{}",
        text(&rows)
    );
    let noise = maps
        .loads
        .iter()
        .map(|load| load.noise.map_or(String::from("unknown"), |noise| format!("±{}", percent(noise))));
    let mut rows = empty(maps, "without a delay", style);
    rows.add_row(std::iter::once(String::from("noise")).chain(noise).collect::<Vec<_>>());
    let throughput = maps.loads.iter().map(|load| format!("{:.0}", load.throughput / 1e3));
    rows.add_row(std::iter::once(String::from("1,000 sections/s")).chain(throughput).collect::<Vec<_>>());
    out += &format!("\n{}", text(&rows));
    out += &style.wrap(
        "+ a gain, - a loss: the whole interval (of a simulation: every seed) is beyond the noise; others are undecided.",
        2,
    );
    out.push('\n');
    for sentence in sentences(maps) {
        out += &style.wrap(&sentence, 2);
        out.push('\n');
    }
    if is_detailed {
        out += &details(maps, style);
    }
    out
}

/// A row of a map's table.
fn shown(name: String, cells: &[Option<Cell>], style: Style) -> Vec<TableCell> {
    let cells = cells.iter().map(|cell| match cell {
        None => TableCell::new("–"),
        Some(cell) => {
            let figure = format!("{:.2}{:1}", cell.ratio, mark(cell.effect));
            style.verdict(&figure, goodness(cell.effect))
        }
    });
    std::iter::once(TableCell::new(name)).chain(cells).collect()
}

/// The name of a variant of FreeBSD's mutex, without that of the mutex.
fn short(lock: &str) -> String {
    lock.strip_prefix("classic-mtx-").unwrap_or(lock).to_owned()
}

fn at(at: &At<'_>) -> String {
    format!(
        "{} [{:.2}, {:.2}] with {} at {} between sections",
        change(at.cell.ratio),
        at.cell.low,
        at.cell.high,
        length(at.delay_ns),
        length(at.between_ns)
    )
}

/// What the maps come to: a sentence for each place.
#[must_use]
pub fn sentences(maps: &Maps) -> Vec<String> {
    let one = |map: &Map| {
        let place = &map.place;
        let Some(most) = maps.most(map) else { return format!("{place}: no delay gains, at any load.") };
        let published = match maps.shortest_as_published(map) {
            Some(shortest) => format!("the shortest delay with the published gain is {}", at(&shortest)),
            None => format!("none has the published gain ({})", change(GAIN.0)),
        };
        format!("{place}: at most {}; {published}.", at(&most))
    };
    maps.maps.iter().map(one).collect()
}

/// What a simulation counted, without a delay and with that of each place which gains most, or loses least,
/// at each load.
#[must_use]
pub fn details(maps: &Maps, style: Style) -> String {
    let mut out = String::new();
    for (number, load) in maps.loads.iter().enumerate() {
        let Some(plain) = &load.counters else { continue };
        let header = ["delay", "ratio", "failed", "lines", "asleep", "held", "free", "lines", "waited"];
        let mut rows = report::table(style, &header);
        rows.add_row(counters("none", 1.0, plain));
        for map in &maps.maps {
            let cells = map.rows.iter().filter_map(|row| Some((row.delay_ns, row.cells[number].as_ref()?)));
            let best = cells.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
            if let Some((delay, cell)) = best
                && let Some(of) = &cell.counters
            {
                rows.add_row(counters(&format!("{} {}", map.place, length(delay)), cell.ratio, of));
            }
        }
        for ingredient in &maps.ingredients {
            if let Some(cell) = &ingredient.cells[number]
                && let Some(of) = &cell.counters
            {
                rows.add_row(counters(&short(&ingredient.lock), cell.ratio, of));
            }
        }
        out += &format!("\n{} between sections, for each section\n{}", length(load.between_ns), text(&rows));
    }
    if !out.is_empty() {
        out += &style.wrap(
            "The best delay of each place, and the ingredients. failed: compare-exchanges that found another value; lines: cache lines \
             moved; asleep: threads that went to sleep; held: from the return of lock to the call of unlock, in µs; \
             free: between that call and the next return, although a thread waited, in µs; lines: of that, the \
             next owner waited for a cache line, or could not see yet that the lock was free; waited: by all \
             threads, in µs.",
            2,
        );
        out.push('\n');
    }
    out
}

fn counters(name: &str, ratio: f64, of: &Counters) -> Vec<String> {
    let us = |ns: f64| format!("{:.2}", ns / 1e3);
    let small = |number: f64| format!("{number:.2}");
    vec![
        name.to_owned(),
        small(ratio),
        small(of.failed),
        small(of.lines),
        small(of.parked),
        us(of.held_ns),
        us(of.free_ns),
        us(of.lines_ns),
        us(of.wait_ns),
    ]
}

/// A heat map for each place: a file name and the SVG.
#[must_use]
pub fn plots(maps: &Maps) -> Vec<(String, String)> {
    let columns: Vec<String> = maps.loads.iter().map(|load| length(load.between_ns)).collect();
    let of_map = |map: &Map| {
        let rows: Vec<String> = map.rows.iter().map(|row| length(row.delay_ns)).collect();
        let title = format!("A delay {}", about(map));
        let cell = |(row, column): (usize, usize)| {
            let cell = map.rows[row].cells[column].as_ref()?;
            let effect = cell.effect;
            Some(HeatCell {
                text: format!("{:.2}{}", cell.ratio, mark(effect)),
                about: format!(
                    "{} / {}: {:.3} [{:.3}, {:.3}], {}",
                    rows[row],
                    columns[column],
                    cell.ratio,
                    cell.low,
                    cell.high,
                    effect.name()
                ),
                goodness: cell.ratio,
            })
        };
        let of_row = |row| (0..columns.len()).map(|column| cell((row, column))).collect();
        let cells = (0..rows.len()).map(of_row).collect();
        let caption = vec![
            title.clone(),
            String::from("throughput ÷ without; rows: delay, columns: between sections"),
            conditions(maps),
        ];
        let heat = HeatMap { title, caption, rows: &rows, columns: &columns, cells, strongest: STRONGEST };
        (format!("delays-{}.svg", map.place), heat.render())
    };
    maps.maps.iter().map(of_map).collect()
}

const CSV_HEADER: &str = "machine,threads,place,delay_ns,between_ns,ratio,low,high,effect,noise,throughput_per_s,\
                          failed,lines,parked,held_ns,free_ns,lines_ns,asleep_ns,wait_ns\n";

/// A line for each cell; one for each load without a delay, whose place is `none`; and those of the
/// ingredients, whose place is the name of their lock.
#[must_use]
pub fn csv(maps: &Maps) -> String {
    let machine = maps.machine.as_deref().unwrap_or("this");
    let line = |place: &str, delay: u32, load: &Plain, figures: String, ratio: f64, of: Option<&Counters>| {
        let noise = load.noise.map_or_else(String::new, |noise| format!("{noise:.5}"));
        let (threads, between, throughput) = (maps.threads, load.between_ns, load.throughput * ratio);
        let counters = of.map_or_else(
            || ",,,,,,,".to_owned(),
            |of| {
                let Counters { failed, lines, parked, held_ns, free_ns, lines_ns, asleep_ns, wait_ns } = of;
                format!(
                    "{failed:.4},{lines:.4},{parked:.4},{held_ns:.1},{free_ns:.1},{lines_ns:.1},{asleep_ns:.1},{wait_ns:.1}"
                )
            },
        );
        format!(
            "{machine},{threads},{place},{delay},{between},{figures},{noise},{throughput:.0},{counters}\n"
        )
    };
    let lines = |place: &str, delay: u32, cells: &[Option<Cell>]| {
        let mut out = String::new();
        for (load, cell) in maps.loads.iter().zip(cells) {
            let Some(cell) = cell else { continue };
            let figures =
                format!("{:.5},{:.5},{:.5},{}", cell.ratio, cell.low, cell.high, cell.effect.name());
            out += &line(place, delay, load, figures, cell.ratio, cell.counters.as_ref());
        }
        out
    };
    let mut out = CSV_HEADER.to_owned();
    for load in &maps.loads {
        out += &line("none", 0, load, String::from("1.00000,,,"), 1.0, load.counters.as_ref());
    }
    for map in &maps.maps {
        for row in &map.rows {
            out += &lines(&map.place, row.delay_ns, &row.cells);
        }
    }
    for ingredient in &maps.ingredients {
        out += &lines(&ingredient.lock, 0, &ingredient.cells);
    }
    out
}
