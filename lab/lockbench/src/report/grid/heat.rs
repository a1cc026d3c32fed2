//! Heat maps as text. Every cell has its figure; colour only adds to it.

use spinpark_measure::report::Style;

use super::lines::sentence;
use super::map_data::{Entry, Map};
use super::{Shown, figure};

/// Blanks between two maps.
const GAP: usize = 3;

/// The maps of one table: side by side if they fit, else below each other, and one that is too wide in
/// parts. `legend` says what the names of rows and columns mean.
#[must_use]
pub fn render(maps: &[Map], shown: &Shown, legend: &str, style: Style) -> String {
    let Some(first) = maps.first() else { return String::new() };
    let table = if first.table.is_empty() { String::new() } else { format!(", {}", first.table) };
    let title = format!("{}{table}: {}; {legend}", first.plane, shown.in_words());
    let mut text = style.wrap(&title, 2) + "\n";
    let width_limit = usize::from(style.width);
    let blocks: Vec<Vec<Line>> = maps.iter().map(|map| block(map, usize::MAX, style)).collect();
    let widths: Vec<usize> = blocks.iter().map(|block| width(block)).collect();
    if widths.iter().sum::<usize>() + GAP * (widths.len() - 1) <= width_limit {
        for line in 0..blocks[0].len() {
            let parts = blocks.iter().zip(&widths).map(|(block, width)| block[line].padded(*width));
            text += parts.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end();
            text.push('\n');
        }
    } else {
        for line in maps.iter().flat_map(|map| block(map, width_limit, style)) {
            text += line.text.trim_end();
            text.push('\n');
        }
    }
    for map in maps {
        if let Some(summary) = &map.summary {
            text += &style.wrap(&sentence(&map.ours, shown, summary), 2);
            text.push('\n');
        }
    }
    text
}

/// A line, and how many columns it takes: colours take none.
struct Line {
    text: String,
    width: usize,
}

impl Line {
    fn plain(text: String) -> Self {
        Self { width: text.chars().count(), text }
    }

    fn padded(&self, width: usize) -> String {
        format!("{}{}", self.text, " ".repeat(width.saturating_sub(self.width)))
    }
}

fn width(block: &[Line]) -> usize {
    block.iter().map(|line| line.width).max().unwrap_or_default()
}

/// A map, in parts of some of its columns if not all of them fit into `limit`.
fn block(map: &Map, limit: usize, style: Style) -> Vec<Line> {
    let first = map.rows.iter().map(|row| row.chars().count()).max().unwrap_or_default();
    let widest = map.entries.iter().flatten().flatten().map(|entry| figure(entry.compared.ratio).len());
    let names = map.columns.iter().map(|column| column.chars().count());
    // The figure and its mark.
    let column = widest.map(|width| width + 1).chain(names).max().unwrap_or_default();
    let mut lines = vec![Line::plain(map.ours.clone())];
    let fit = (limit.saturating_sub(first) / (column + 1)).max(1);
    let parts = map.columns.len().div_ceil(fit).max(1);
    let columns_of_part = map.columns.len().div_ceil(parts).max(1);
    for (part, names) in map.columns.chunks(columns_of_part).enumerate() {
        let header = names.iter().map(|name| format!(" {name:>column$}")).collect::<String>();
        lines.push(Line::plain(format!("{:first$}{header}", "")));
        for (name, entries) in map.rows.iter().zip(&map.entries) {
            let mut line = Line::plain(format!("{name:>first$}"));
            for entry in entries.iter().skip(part * columns_of_part).take(columns_of_part) {
                line.text += &cell(entry.as_ref(), column, style);
                line.width += column + 1;
            }
            lines.push(line);
        }
    }
    lines
}

fn cell(entry: Option<&Entry>, width: usize, style: Style) -> String {
    let Some(entry) = entry else { return format!(" {:>width$}", "– ") };
    let text = format!("{:>width$}", format!("{}{}", figure(entry.compared.ratio), entry.loss.mark()));
    match style.color {
        true => format!(" \u{1b}[38;5;16;48;5;{}m{text}\u{1b}[0m", color(entry.goodness)),
        false => format!(" {text}"),
    }
}

/// A colour of the 256 as background of black text: red is worse, green is better, pale is about the same.
fn color(goodness: f64) -> u8 {
    match goodness {
        g if g < 0.50 => 203,
        g if g < 0.75 => 210,
        g if g < 0.90 => 217,
        g if g <= 1.10 => 254,
        g if g <= 1.50 => 194,
        g if g <= 3.00 => 157,
        _ => 120,
    }
}
