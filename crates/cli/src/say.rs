//! What people read goes to standard output, unless data goes there.

use std::fmt::Display;
use std::io::{self, Write};

/// Where people read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Say {
    /// Standard output is taken.
    pub(crate) on_stderr: bool,
}

impl Say {
    /// Prints a line, or several. Nobody may be there to read them any more (`| head`): that is fine.
    pub(crate) fn line(self, text: impl Display) {
        let _ = if self.on_stderr {
            writeln!(io::stderr().lock(), "{text}")
        } else {
            writeln!(io::stdout().lock(), "{text}")
        };
    }
}
