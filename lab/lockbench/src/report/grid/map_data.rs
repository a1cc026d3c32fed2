//! What a heat map shows, before it is drawn: rows, columns, ratios.

use spinpark_measure::report::distinct;

use super::Shown;
use crate::locks::comparison::{Compared, Context};
use crate::locks::experiment::{Measured, Place};
use crate::locks::summary::{Loss, Summary, planes, tables_of};

/// A heat map of one of our implementations.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// The plane.
    pub plane: String,
    /// The table of the plane; empty if it has only one.
    pub table: String,
    /// Ours.
    pub ours: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The ratios, row by row.
    pub entries: Vec<Vec<Option<Entry>>>,
    /// What follows from them.
    pub summary: Option<Summary>,
}

/// One ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// With everything that is known about it.
    pub compared: Compared,
    /// Whether it is a loss.
    pub loss: Loss,
    /// How good it is: as a ratio of throughputs, more is better.
    pub goodness: f64,
}

/// The maps of all planes: for each table, those of all of ours.
#[must_use]
pub fn maps(context: &Context<'_>, cells: &[Measured], shown: &Shown) -> Vec<Vec<Map>> {
    let mut all = Vec::new();
    for plane in planes(cells) {
        let mut tables: Vec<&str> = tables_of(cells, plane).into_iter().map(|(table, _)| table).collect();
        if tables.is_empty() {
            tables.push("");
        }
        for table in tables {
            let is_in = |cell: &&Measured| cell.plane() == plane && cell.table() == table;
            let cells: Vec<&Measured> = cells.iter().filter(is_in).collect();
            let ours: Vec<&str> = context.ours(cells.iter().copied()).collect();
            all.push(ours.into_iter().map(|ours| map(context, &cells, ours, shown)).collect());
        }
    }
    all
}

fn map(context: &Context<'_>, cells: &[&Measured], ours: &str, shown: &Shown) -> Map {
    let places: Vec<&Place> = cells.iter().filter_map(|cell| cell.cell.place.as_ref()).collect();
    let rows = distinct(places.iter().map(|place| place.row.clone()));
    let columns = distinct(places.iter().map(|place| place.column.clone()));
    let mut entries: Vec<Vec<Option<Entry>>> = vec![vec![None; columns.len()]; rows.len()];
    let mut summed = Vec::new();
    for (cell, place) in cells.iter().zip(&places) {
        let Some(compared) = context.compare(cell, ours, shown.figure, &shown.against) else { continue };
        summed.push((*cell, compared.clone()));
        let row = rows.iter().position(|row| *row == place.row);
        let column = columns.iter().position(|column| *column == place.column);
        if let Some((row, column)) = row.zip(column) {
            let goodness = if shown.figure.more_is_better() { compared.ratio } else { 1.0 / compared.ratio };
            entries[row][column] =
                Some(Entry { loss: Loss::of(shown.figure, &compared), compared, goodness });
        }
    }
    Map {
        plane: places[0].plane.clone(),
        table: places[0].table.clone(),
        ours: ours.to_owned(),
        rows,
        columns,
        entries,
        summary: Summary::of(shown.figure, summed),
    }
}
