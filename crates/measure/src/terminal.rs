//! How wide lines are, and whether they are coloured.

use std::borrow::Cow;
use std::env;
use std::fmt::Write;
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// The widest line that we print, except on a terminal that is wider.
pub const WIDTH: u16 = 100;

/// The width of tables: that of the terminal, or what `COLUMNS` says if `stream` is none, from 80 to 160
/// columns; [`WIDTH`] if neither is known.
#[must_use]
pub fn width(stream: &impl AsFd) -> u16 {
    let named = || env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(0);
    match rustix::termios::tcgetwinsize(stream).map_or_else(|_| named(), |size| size.ws_col) {
        0 => WIDTH,
        columns => columns.clamp(80, 160),
    }
}

/// Whether `stream` is a terminal that takes colours and bold text: unless `NO_COLOR` is set
/// (<https://no-color.org>) or `TERM` is `dumb`.
#[must_use]
pub fn has_color(stream: &impl IsTerminal) -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !refused
}

/// `text` with nothing in it that steers a terminal: a measured program chooses its name, its output, and the
/// names of its threads and locks. Control characters and marks that change the direction of text are escaped
/// (`\u{1b}`). Line ends, tabs and the colours of our own tables stay.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| {
        let is_control = c.is_control() && c != '\n' && c != '\t';
        let turns = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}'];
        is_control
            || turns.contains(&c)
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match colour(rest) {
            0 => c.len_utf8(),
            length => length,
        };
        let (part, after) = rest.split_at(length);
        match part.len() == c.len_utf8() && is_bad(c) {
            // Cannot fail: it is a string.
            true => drop(write!(shown, "{}", c.escape_default())),
            false => shown.push_str(part),
        }
        rest = after;
    }
    Cow::Owned(shown)
}

/// The length of the colour that `text` begins with: `ESC [`, digits and semicolons, `m`; but not one that
/// hides text.
fn colour(text: &str) -> usize {
    let Some(after) = text.strip_prefix("\u{1b}[") else { return 0 };
    let Some((parameters, _)) = after.split_once('m') else { return 0 };
    let is_colour = parameters.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
    let hides = parameters.split(';').any(|parameter| parameter == "8");
    if is_colour && !hides { 2 + parameters.len() + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_steers_a_terminal_is_escaped() {
        for (text, shown) in [
            ("plain – ü\n\tnext", "plain – ü\n\tnext"),
            ("\u{1b}[38;5;9mred\u{1b}[0m", "\u{1b}[38;5;9mred\u{1b}[0m"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}", r"\u{1b}[2J\u{1b}]0;title\u{7}"),
            ("\u{1b}[8mhidden", r"\u{1b}[8mhidden"),
            ("over\rwritten\u{8}", r"over\rwritten\u{8}"),
            ("C1 \u{9b}2J", r"C1 \u{9b}2J"),
            ("abc\u{202e}fed\u{2066}x\u{200f}", r"abc\u{202e}fed\u{2066}x\u{200f}"),
            ("\u{1b}", r"\u{1b}"),
            ("\u{1b}[31", r"\u{1b}[31"),
        ] {
            assert_eq!(harmless(text), shown);
        }
    }
}
