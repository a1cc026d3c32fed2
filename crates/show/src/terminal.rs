//! How wide lines are, and whether they are coloured.

use std::env;
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// The widest line that we print, except on a terminal that is wider.
pub const WIDTH: u16 = 100;

/// The width of tables: that of the terminal, or what `COLUMNS` says if `stream` is none, from 80 to 160 columns; [`WIDTH`]
/// if neither is known.
#[must_use]
pub fn width(stream: &impl AsFd) -> u16 {
    let named = || env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(0);
    match rustix::termios::tcgetwinsize(stream).map_or_else(|_| named(), |size| size.ws_col) {
        0 => WIDTH,
        columns => columns.clamp(80, 160),
    }
}

/// Whether `stream` is a terminal that takes colours and bold text: unless `NO_COLOR` is set (<https://no-color.org>) or `TERM` is
/// `dumb`.
#[must_use]
pub fn has_color(stream: &impl IsTerminal) -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !refused
}
