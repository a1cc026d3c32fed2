//! A heat map of a plane as SVG.

use spinpark_charts::heat::{HeatCell, HeatMap};

use super::figure;
use super::map_data::{Entry, Map};

pub(super) fn render(map: &Map) -> String {
    let cells = map.entries.iter().enumerate().map(|(row, entries)| {
        let cell = |(column, entry): (usize, &Option<Entry>)| {
            entry.as_ref().map(|entry| HeatCell {
                text: format!("{}{}", figure(entry.compared.ratio), entry.loss.mark()).trim_end().to_owned(),
                about: tooltip(map, row, column, entry),
                goodness: entry.goodness,
            })
        };
        entries.iter().enumerate().map(cell).collect()
    });
    let map = HeatMap {
        title: format!("{}, {}", map.plane, map.ours),
        caption: Vec::new(),
        rows: &map.rows,
        columns: &map.columns,
        cells: cells.collect(),
        strongest: 3.0,
    };
    map.render()
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
