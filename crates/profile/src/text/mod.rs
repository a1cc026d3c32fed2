//! Tables for terminals.
//!
//! | module     | what it shows                                                                  |
//! |------------|--------------------------------------------------------------------------------|
//! | `overview` | the first screen: what a person acts on                                        |
//! | `report`   | the whole report: the summary first                                            |
//! | `locks`    | locks: taken, waited for, held                                                 |
//! | `merged`   | several processes added up: how their waiting is spread                        |
//! | `steps`    | what to do first                                                               |
//! | `waits`    | waits by waiter and holder, by call site, one by one, for signals and for work |

mod locks;
mod merged;
mod overview;
mod report;
mod steps;
mod waits;

use std::io::IsTerminal;
use std::os::fd::AsFd;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};
use spinpark_measure::text::terminal;
pub use spinpark_measure::text::wrap;

pub use self::locks::{locks, outcomes, processes, rates, split};
pub use self::merged::{places, spread, sums};
pub use self::overview::overview;
pub use self::report::report;
pub use self::steps::steps;
pub use self::waits::{blocking, condvars, freebsd, held_waits, other_waits, part, sites, slow, waiting};
use crate::fit::{fit_all, share};

/// The widest line that we print, except on a terminal that is wider.
pub const WIDTH: usize = terminal::WIDTH as usize;

/// How tables look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Bold text is allowed.
    pub color: bool,
    /// The widest line.
    pub width: usize,
    /// Rows of a table at most; a last line counts the others.
    pub rows: usize,
}

impl Style {
    /// Plain text.
    pub const PLAIN: Self = Self { color: false, width: WIDTH, rows: 20 };

    /// As [`Style::of`] standard output.
    #[must_use]
    pub fn of_stdout() -> Self {
        Self::of(&std::io::stdout())
    }

    /// As wide as the terminal; bold if it has that.
    #[must_use]
    pub fn of(stream: &(impl AsFd + IsTerminal)) -> Self {
        Self {
            color: terminal::has_color(stream),
            width: usize::from(terminal::width(stream)),
            ..Self::PLAIN
        }
    }
}

/// In a cell that has nothing to show.
fn dash() -> String {
    String::from("–")
}

/// A table under its title; nothing if it has no rows.
///
/// The first `names` columns hold names, aligned left. The longest of them are shortened to the width that
/// the numbers leave; names that differ still look different. Rows beyond `style.rows` are counted, and not
/// created.
pub(crate) fn render<T>(
    style: Style,
    title: &str,
    header: &[&str],
    names: usize,
    (items, row): (impl Iterator<Item = T>, impl FnMut(T) -> Vec<String>),
) -> String {
    let items: Vec<T> = items.collect();
    let all = items.len();
    let rows: Vec<Vec<String>> = items.into_iter().take(style.rows).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let width = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let widest = |column: usize| {
        rows.iter().map(|row| width(&row[column])).max().unwrap_or(0).max(width(header[column]))
    };
    // Each column has two blanks before it.
    let numbers: usize = (names..header.len()).map(|column| widest(column) + 2).sum();
    let space = style.width.saturating_sub(numbers + 2 * names);
    let widths = share(&(0..names).map(widest).collect::<Vec<_>>(), space);
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled)
        .force_no_tty();
    table.style_mut().row_separator = LineStyle::none();
    table.set_header(header.to_vec());
    let fitted: Vec<Vec<String>> = widths
        .iter()
        .enumerate()
        .map(|(column, space)| fit_all(rows.iter().map(|row| (row[column].as_str(), *space))))
        .collect();
    for (index, mut row) in rows.into_iter().enumerate() {
        for (name, fitted) in row.iter_mut().zip(&fitted) {
            name.clone_from(&fitted[index]);
        }
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((1, 0));
        if index >= names {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let title = if style.color { format!("\x1b[1m{title}\x1b[0m") } else { title.to_owned() };
    let more = all.saturating_sub(style.rows);
    let more = if more > 0 { format!(" … and {more} more\n") } else { String::new() };
    let lines: String = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    format!("{title}\n{lines}{more}")
}
