//! Saying what was found: tables for people, JSON for programs, Markdown for documents.

pub mod baseline;
pub mod compare_table;
pub mod gate;
mod head;
pub mod json;
mod metric_text;
pub mod page;
pub mod reading;
pub mod scaling_table;
pub mod unwritten;
pub mod whatif;

use std::io::IsTerminal;
use std::os::fd::AsFd;

use crate::text::terminal;
pub use crate::text::terminal::WIDTH;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, Table, Width,
};

pub use self::head::Head;
pub use self::metric_text::{Goodness, Printed, interval, interval_of, metric_name, value, verdict_word};

/// Each of them once, in the order in which they come: the rows or columns of a table.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// How tables look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Colours are welcome.
    pub color: bool,
    /// The widest line of a table.
    pub width: u16,
}

impl Style {
    /// As wide as the terminal, and coloured if it has colours.
    #[must_use]
    pub fn of(stream: &(impl AsFd + IsTerminal)) -> Self {
        Self { color: terminal::has_color(stream), width: terminal::width(stream) }
    }

    /// As [`Style::of`] standard output.
    #[must_use]
    pub fn of_stdout() -> Self {
        Self::of(&std::io::stdout())
    }

    /// Less wide than what everything fits into.
    pub fn is_narrow(self) -> bool {
        self.width < WIDTH
    }

    /// Breaks `text` at blanks so that no line is longer than a table may be, nor than [`WIDTH`]; further
    /// lines are indented.
    #[must_use]
    pub fn wrap(self, text: &str, indent: usize) -> String {
        crate::text::wrap(text, self.width.min(WIDTH).into(), indent)
    }

    /// No colours.
    pub const PLAIN: Self = Self { color: false, width: WIDTH };

    /// A cell with `word`, coloured by whether that is good.
    pub fn verdict(self, word: &str, goodness: Goodness) -> Cell {
        let cell = Cell::new(word);
        match goodness {
            _ if !self.color => cell,
            Goodness::Good => cell.fg(Color::Green).add_attribute(Attribute::Bold),
            Goodness::Bad => cell.fg(Color::Red).add_attribute(Attribute::Bold),
            Goodness::Neither => cell,
        }
    }
}

/// An empty table in our style: the first column to the left, the others to the right.
pub fn table(style: Style, header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(style.width);
    if style.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.style_mut().row_separator = LineStyle::none();
    table.set_header(header.to_vec());
    for index in 1..header.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// How a table is made narrower, step by step: the blanks of each column, and what is longer may be broken at
/// blanks.
const STEPS: [(u16, usize); 3] = [(2, 24), (1, 24), (1, 12)];

/// A table as text, without blanks at line ends. Where it is narrow, headers and sentences are broken, at
/// blanks, then columns move together, then shorter names are broken; what does not fit even so are long
/// names in the first column, which are broken at hyphens and the like. Numbers are not, as long as it fits.
pub fn text(table: &Table) -> String {
    let mut table = table.clone();
    if is_wide_enough(&table, &natural_widths(&table)) {
        table.set_content_arrangement(ContentArrangement::Disabled);
    } else if let Some((blanks, widths)) = STEPS
        .iter()
        .map(|&(blanks, long)| (blanks, least_widths(&table, blanks.into(), long)))
        .find(|(_, widths)| is_wide_enough(&table, widths))
        .or_else(|| with_broken_names(&mut table))
    {
        for (column, width) in table.column_iter_mut().zip(widths) {
            column.set_padding((1, blanks - 1));
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width as u16)));
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Whether columns of these widths fit.
fn is_wide_enough(table: &Table, widths: &[usize]) -> bool {
    let available = table.width().map_or(usize::MAX, usize::from);
    widths.iter().sum::<usize>() + widths.len() < available
}

/// Whether nothing has to be broken.
pub fn fits(table: &Table) -> bool {
    is_wide_enough(table, &natural_widths(table))
}

/// Characters of the longest line.
pub fn length(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
}

/// Breaks the names in the first column, so that the table fits: the blanks of each column then, and the
/// widths.
fn with_broken_names(table: &mut Table) -> Option<(u16, Vec<usize>)> {
    let available = table.width().map_or(usize::MAX, usize::from);
    let mut widths = least_widths(table, 1, 12);
    let others: usize = widths.iter().skip(1).sum();
    let mut broken = table.clone();
    widths[0] = break_names(&mut broken, available.saturating_sub(others + widths.len() + 2)) + 1;
    is_wide_enough(&broken, &widths).then(|| {
        *table = broken;
        (1, widths)
    })
}

/// Breaks what stands in the first column so that it takes `available` columns, if it has hyphens where that
/// is possible; what it takes.
fn break_names(table: &mut Table, available: usize) -> usize {
    let mut widest = 0;
    for row in table.row_iter_mut() {
        let mut cells: Vec<Cell> = row.cell_iter().cloned().collect();
        let Some(first) = cells.first_mut() else { continue };
        let mut lines = vec![String::new()];
        for part in first.content().split_inclusive(['-', '+', '_', '=', ' ']) {
            let line = lines.last_mut().expect("there is one");
            if !line.is_empty() && line.chars().count() + part.trim_end().chars().count() > available {
                lines.push(String::from(part));
            } else {
                *line += part;
            }
        }
        widest = lines.iter().map(|line| line.trim_end().chars().count()).max().unwrap_or(0).max(widest);
        if lines.len() > 1 {
            *first = Cell::new(lines.join("\n"));
            *row = cells.into();
        }
    }
    widest
}

/// The width of each column with its two blanks, if nothing is broken.
fn natural_widths(table: &Table) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for row in table.header().into_iter().chain(table.row_iter()) {
        for (index, cell) in row.cell_iter().enumerate() {
            let width = length(&cell.content()) + 2;
            match widths.get_mut(index) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    widths
}

/// The least width of each column with its blanks, if what is longer than `long` may be broken.
fn least_widths(table: &Table, blanks: usize, long: usize) -> Vec<usize> {
    let word =
        |text: &str| text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or_default();
    let header = table.header().into_iter().flat_map(|row| row.cell_iter().map(|cell| word(&cell.content())));
    let mut widths: Vec<usize> = header.collect();
    for row in table.row_iter() {
        for (width, cell) in widths.iter_mut().zip(row.cell_iter()) {
            let content = cell.content();
            let lines =
                content.lines().map(|line| if length(line) > long { word(line) } else { length(line) });
            *width = lines.fold(*width, usize::max);
        }
    }
    widths.into_iter().map(|width| width + blanks).collect()
}
