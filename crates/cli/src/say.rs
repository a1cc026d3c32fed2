//! What people read goes to standard output, unless data goes there.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;

use anyhow::bail;

/// The first thing that could not be said, and why.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Where people read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Say {
    /// Standard output is taken.
    pub(crate) on_stderr: bool,
}

impl Say {
    /// Prints a line, or several. The reader may have gone (`| head`): that is no error. Whatever else fails
    /// (a full disk) is remembered for [`check`].
    pub(crate) fn line(self, text: impl Display) {
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

/// Prints a line to standard error, as `eprintln` does; but the reader may have gone (`2>&1 | head`), which is no error.
macro_rules! note {
    ($($text:tt)*) => {
        $crate::say::note(format_args!("{}\n", format_args!($($text)*)))
    };
}

/// Prints to standard error, if it has a reader.
pub(crate) fn note(text: std::fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Whether all that was to be said could be written.
///
/// # Errors
///
/// If not.
pub(crate) fn check() -> anyhow::Result<()> {
    match LOST.lock().ok().and_then(|mut lost| lost.take()) {
        Some(error) => bail!("cannot write to standard output: {error}\nNot all of the result was printed"),
        None => Ok(()),
    }
}
