//! How wide lines are, and whether they are coloured.

use std::borrow::Cow;
use std::env;
use std::fmt::Write;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// The widest line that we print, except on a terminal that is wider.
pub const WIDTH: u16 = 100;

/// The width of tables: that of the terminal, or the value of `COLUMNS` if `stream` is none, from 80 to 160
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

/// Whether the locale that was asked for has ASCII only: `LC_ALL=C`. Without any, terminals have UTF-8.
#[must_use]
pub fn is_ascii_only() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    let named = || {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set)
    };
    *IS.get_or_init(|| named().is_some_and(|locale| !is_utf8(&locale)))
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// `text` in ASCII. What takes more room takes it from blanks beside it, so that columns stay columns.
#[must_use]
pub fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    // Characters that are too many in this line so far.
    let mut excess = 0;
    for c in text.chars() {
        match c {
            '\n' => excess = 0,
            // A gap of one blank is needed.
            ' ' if excess > 0 && shown.ends_with(' ') => {
                excess -= 1;
                continue;
            }
            _ => {}
        }
        if c.is_ascii() {
            shown.push(c);
            continue;
        }
        let word = in_ascii(c);
        excess += word.len() - 1;
        // Not from the indentation.
        let is_gap = !matches!(shown.trim_end_matches(' ').chars().next_back(), None | Some('\n'));
        while is_gap && excess > 0 && shown.ends_with("  ") {
            shown.pop();
            excess -= 1;
        }
        shown.push_str(word);
    }
    Cow::Owned(shown)
}

/// What stands for a character that is not ASCII.
fn in_ascii(c: char) -> &'static str {
    match c {
        '–' | '—' | '−' | '‑' | '─' | '━' | '═' => "-",
        '…' => "...",
        '±' => "+-",
        '×' => "x",
        '÷' => "/",
        'µ' | 'μ' => "u",
        '→' => "->",
        '←' => "<-",
        '≥' => ">=",
        '≤' => "<=",
        '≈' => "~",
        '≡' => "==",
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        '·' | '•' => ".",
        '│' | '┃' | '║' => "|",
        '█' | '▉' | '▊' | '▋' | '▌' | '▓' | '■' | '▇' | '▆' | '▅' => "#",
        '▍' | '▎' | '▏' | '░' | '▒' | '▄' | '▃' | '▂' | '▁' => ":",
        '\u{a0}' => " ",
        'é' => "e",
        'ü' => "u",
        'ö' => "o",
        'ä' => "a",
        '²' => "^2",
        '⁵' => "^5",
        '₁' => "1",
        '₂' => "2",
        'σ' => "sigma",
        '▼' => "v",
        '●' => "*",
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' => "+",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::{ascii, harmless, is_utf8};

    #[test]
    fn text_in_ascii_keeps_its_columns() {
        for (text, shown) in [
            ("plain", "plain"),
            ("wait … and go", "wait ... and go"),
            ("  1.2 µs   ±4.3 %   next", "  1.2 us  +-4.3 %   next"),
            ("a…  b\n  … c", "a... b\n  ... c"),
            ("f → g ×", "f -> g x"),
            ("\u{4e2d}", "?"),
        ] {
            assert_eq!(ascii(text), shown);
        }
        assert!(is_utf8("de_DE.UTF-8") && is_utf8("C.utf8") && !is_utf8("C") && !is_utf8("POSIX"));
    }

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
