//! A heat map as SVG. Each cell has its figure, which colour repeats, and a tooltip with what the figure is
//! made of.

use std::fmt::Write;

use super::figure;
use super::map_data::{Entry, Map};

/// Width and height of a cell, in pixels.
const CELL: (usize, usize) = (54, 24);
/// Width of a character of a name, about.
const CHARACTER: usize = 7;

pub(super) fn render(map: &Map) -> String {
    let longest = |names: &[String]| names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let left = longest(&map.rows) * CHARACTER + 12;
    let width = CELL.0.max(longest(&map.columns) * CHARACTER + 6);
    let top = 28;
    let size = (left + map.columns.len() * width, top + map.rows.len() * CELL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" \
         font-family=\"sans-serif\" font-size=\"12\"><title>{}</title>",
        size.0,
        size.1,
        size.0,
        size.1,
        escape(&format!("{}, {}", map.plane, map.ours))
    );
    let mut text = |x: usize, y: usize, anchor: &str, fill: &str, content: &str| {
        let _ = write!(
            svg,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{}</text>",
            escape(content)
        );
    };
    for (place, name) in map.columns.iter().enumerate() {
        text(left + place * width + width / 2, top - 10, "middle", "#808080", name);
    }
    for (place, name) in map.rows.iter().enumerate() {
        text(left - 8, top + place * CELL.1 + 16, "end", "#808080", name);
    }
    for (row, entries) in map.entries.iter().enumerate() {
        for (column, entry) in entries.iter().enumerate() {
            let Some(entry) = entry else { continue };
            let (x, y) = (left + column * width, top + row * CELL.1);
            let _ = write!(
                svg,
                "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#000\">{}{}</text></g>",
                escape(&tooltip(map, row, column, entry)),
                width - 2,
                CELL.1 - 2,
                color(entry.goodness),
                x + width / 2 - 1,
                y + 16,
                figure(entry.compared.ratio),
                entry.loss.mark().to_string().trim_end(),
            );
        }
    }
    svg + "</svg>"
}

fn tooltip(map: &Map, row: usize, column: usize, entry: &Entry) -> String {
    let compared = &entry.compared;
    let interval = compared
        .interval
        .map_or_else(String::new, |[low, high]| format!(" [{}, {}]", figure(low), figure(high)));
    format!(
        "{} / {}: {}{interval} of {} ({:.4e} ÷ {:.4e})",
        map.rows[row],
        map.columns[column],
        figure(compared.ratio),
        compared.with,
        compared.own,
        compared.other
    )
}

/// Red is worse, green is better, by the logarithm of the ratio; both ends are at a factor of three.
fn color(goodness: f64) -> String {
    let far = (goodness.max(1e-9).ln() / 3_f64.ln()).clamp(-1.0, 1.0);
    let mix = |end: [f64; 3]| {
        const MIDDLE: [f64; 3] = [235.0, 235.0, 235.0];
        let of = |place: usize| (MIDDLE[place] + (end[place] - MIDDLE[place]) * far.abs()).round() as u8;
        format!("#{:02x}{:02x}{:02x}", of(0), of(1), of(2))
    };
    if far < 0.0 { mix([232.0, 80.0, 60.0]) } else { mix([70.0, 190.0, 90.0]) }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
