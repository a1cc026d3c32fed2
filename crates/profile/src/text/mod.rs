//! Tables for terminals.
//!
//! | module     | what it shows                                                  |
//! |------------|----------------------------------------------------------------|
//! | `report`   | the whole report: the answer first                              |
//! | `locks`    | locks: taken, waited for, held                                  |
//! | `blocking` | who waits for whom                                             |
//! | `held_waits`   | waits with another lock held                                    |
//! | `sites`    | places; FreeBSD's columns                                       |
//! | `waiting`  | waits that had not ended                                        |
//! | `condvars` | condition variables                                            |
//! | `outcomes` | what became of those who had to wait                            |
//! | `spark`    | histograms in a cell                                            |

mod blocking;
mod condvars;
mod freebsd;
mod held_waits;
mod locks;
mod outcomes;
mod report;
mod sites;
mod spark;
mod waiting;

use std::env;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};

pub use self::blocking::blocking;
pub use self::condvars::condvars;
pub use self::freebsd::freebsd;
pub use self::held_waits::held_waits;
pub use self::locks::locks;
pub use self::outcomes::outcomes;
pub use self::report::report;
pub use self::sites::sites;
pub use self::waiting::waiting;
pub use spinpark_show::text::wrap;

use crate::units::one_line;

/// The widest line that we print, except on a terminal that is wider.
pub const WIDTH: usize = 100;

/// How tables look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Bold is welcome.
    pub color: bool,
    /// The widest line.
    pub width: usize,
    /// Rows of a table at most; what is left out is said.
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

    /// As wide as the terminal, or as `COLUMNS` says if it is none, from 80 to 160 columns; bold on a terminal, unless
    /// `NO_COLOR` is set (<https://no-color.org>) or it is a dumb one.
    #[must_use]
    pub fn of(stream: &(impl AsFd + IsTerminal)) -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_none_or(|term| term == "dumb");
        let named = || env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(0);
        let columns =
            rustix::termios::tcgetwinsize(stream).map_or_else(|_| named(), |size| usize::from(size.ws_col));
        let width = if columns == 0 { WIDTH } else { columns.clamp(80, 160) };
        Self { color: stream.is_terminal() && !refused, width, ..Self::PLAIN }
    }
}

/// A table under its title; nothing if it has no rows.
///
/// The first `names` columns hold names, to the left; the longest of them are shortened to what the numbers leave. What
/// `style.rows` leaves out is counted, and not made.
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
    let room = style.width.saturating_sub(numbers + 2 * names);
    let rooms = share(&(0..names).map(widest).collect::<Vec<_>>(), room);
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled)
        .force_no_tty();
    table.style_mut().row_separator = LineStyle::none();
    table.set_header(header.to_vec());
    for mut row in rows {
        for (name, room) in row.iter_mut().zip(&rooms) {
            *name = fit(name, *room);
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

/// Shares `room` among columns that would like these widths: nobody gets more, and what is cut is the longest.
fn share(wanted: &[usize], room: usize) -> Vec<usize> {
    /// A name is not cut to less.
    const LEAST: usize = 8;
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|column| wanted[*column]);
    let (mut left, mut shares) = (room, vec![0; wanted.len()]);
    for (done, column) in order.into_iter().enumerate() {
        let fair = left / (wanted.len() - done);
        shares[column] = wanted[column].min(fair.max(LEAST));
        left = left.saturating_sub(shares[column]);
    }
    shares
}

/// `text` in at most `room` columns. What is longer loses its line, `(file.c:12)`, then the `mutex of` in front, then outer
/// namespaces, and then its middle, since both ends tell things apart.
pub(crate) fn fit(text: &str, room: usize) -> String {
    let text = one_line(text);
    if text.chars().count() <= room {
        return text;
    }
    let mut text = without_line(&text).unwrap_or(text);
    if text.chars().count() > room {
        let what = ["mutex of ", "mutex in ", "rwlock of ", "rwlock in ", "condvar of ", "condvar in "];
        text = what.iter().find_map(|what| text.strip_prefix(what)).unwrap_or(&text).to_owned();
    }
    while text.chars().count() > room
        && let Some(inner) = without_namespace(&text)
    {
        text = inner.to_owned();
    }
    let length = text.chars().count();
    if length <= room {
        return text;
    }
    let end = (room - 1) / 2;
    let start = room - 1 - end;
    let head: String = text.chars().take(start).collect();
    let tail: String = text.chars().skip(length - end).collect();
    format!("{head}…{tail}")
}

/// `b::c` of `a::b::c`; `<…>` stays whole.
fn without_namespace(text: &str) -> Option<&str> {
    let (outer, inner) = text.split_once("::")?;
    (!outer.contains(['<', ' ']) && !inner.is_empty()).then_some(inner)
}

/// `mutex of f #2` of `mutex of f (a.c:12) #2`.
pub(crate) fn without_line(text: &str) -> Option<String> {
    let (name, rest) = text.rsplit_once(" (")?;
    let (line, rest) = rest.split_once(')')?;
    let number = line.rsplit_once(':')?.1;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("{name}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitting() {
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("a\nb", 5), r"a\nb");
        assert_eq!(fit("a_very_long_name", 9), "a_ve…name");
        assert_eq!(fit("mutex of f (a.c:1) #2", 16), "mutex of f #2");
        assert_eq!(fit("mutex of f (a.c:1), read", 13), "f, read");
        assert_eq!(fit("mutex of a_name (a.c:1), read", 11), "a_nam… read");
        assert_eq!(fit("a::b::Table<x::y>::insert", 20), "Table<x::y>::insert");
        assert_eq!(share(&[30, 10, 20], 45), [18, 10, 17]);
        assert_eq!(share(&[30, 10], 50), [30, 10]);
    }
}
