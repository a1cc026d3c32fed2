//! What people read goes to standard output, unless data goes there. All of it passes here, and [`harmless`]
//! with it: nothing that a program prints or is called can steer the terminal. In a locale without UTF-8
//! (`LC_ALL=C`) it is ASCII.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::bail;
use spinpark_measure::report::json::Output;
use spinpark_measure::report::{Style, compare_table};
use spinpark_measure::rounds::warnings::Warning;
use spinpark_measure::text::terminal::{ascii, harmless, is_ascii_only};

use crate::own;

/// The first output that could not be written, and why.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Where people read.
#[derive(Debug, Clone, Copy)]
pub struct Say {
    /// Standard output is taken.
    pub on_stderr: bool,
}

impl Say {
    /// On standard output, unless one of the files is that.
    pub fn apart_from(files: &[&Option<PathBuf>]) -> Self {
        Self { on_stderr: files.iter().filter_map(|file| file.as_deref()).any(Output::is_stdout) }
    }

    /// The style of tables there.
    pub fn style(self) -> Style {
        if self.on_stderr { Style::of(&io::stderr()) } else { Style::of_stdout() }
    }

    /// Prints a sentence, broken where lines end; further lines are indented.
    pub fn wrapped(self, text: &str, indent: usize) {
        self.line(self.style().wrap(text, indent));
    }

    /// Prints a line, or several. The reader may have gone (`| head`): that is no error. Whatever else fails
    /// (a full disk) is remembered for [`check`].
    pub fn line(self, text: impl Display) {
        let text = text.to_string();
        let text = printable(&text);
        let written = if self.on_stderr {
            writeln!(io::stderr().lock(), "{text}")
        } else {
            let mut stdout = io::stdout().lock();
            writeln!(stdout, "{text}").and_then(|()| stdout.flush())
        };
        if let Err(error) = written
            && error.kind() != ErrorKind::BrokenPipe
            && let Ok(mut lost) = LOST.lock()
        {
            lost.get_or_insert(error);
        }
    }
}

/// What the terminal can show of `text`.
fn printable(text: &str) -> Cow<'_, str> {
    match (is_ascii_only(), harmless(text)) {
        (false, text) => text,
        (true, Cow::Borrowed(text)) => ascii(text),
        (true, Cow::Owned(text)) => Cow::Owned(ascii(&text).into_owned()),
    }
}

/// Prints a line to standard error, as `eprintln` does; but the reader may have gone (`2>&1 | head`), which
/// is no error.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => {
        $crate::say::note(format_args!("{}\n", format_args!($($text)*)))
    };
}

/// Prints to standard error, if it has a reader.
pub fn note(text: std::fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_all(printable(&text.to_string()).as_bytes());
}

/// Prints an error to standard error. On a terminal, lines are broken where it ends; elsewhere (a log, a
/// pipe), they are not.
pub fn error(text: &str) {
    let text = format!("{}: {text}", own::name());
    let stderr = io::stderr();
    let text = if stderr.is_terminal() { broken(&text, Style::of(&stderr)) } else { text };
    note(format_args!("{text}\n"));
}

/// The same lines, broken where they are too long, with the indentation that they have.
fn broken(text: &str, style: Style) -> String {
    let line = |line: &str| style.wrap(line, line.len() - line.trim_start_matches(' ').len());
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Prints warnings to standard error.
pub fn warnings(warnings: &[Warning]) {
    note(format_args!("{}", compare_table::warnings(warnings, Style::of(&io::stderr()))));
}

/// Whether all output could be written.
///
/// # Errors
///
/// If not.
pub fn check() -> anyhow::Result<()> {
    match LOST.lock().ok().and_then(|mut lost| lost.take()) {
        Some(error) => bail!("cannot write to standard output: {error}\nNot all of the result was printed"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_of_errors_are_broken() {
        let style = Style { width: 80, ..Style::PLAIN };
        let said = broken(
            &format!("spinpark: {}\nshort\n  {}", "word ".repeat(30).trim(), "output ".repeat(20).trim()),
            style,
        );
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
        assert!(said.contains("\nword word") && said.contains("\nshort\n  output"), "{said}");
        assert!(said.lines().last().is_some_and(|line| line.starts_with("  output")), "{said}");
    }
}
