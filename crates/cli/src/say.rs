//! What people read goes to standard output, unless data goes there.

/// Where people read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Say {
    /// Standard output is taken.
    pub(crate) on_stderr: bool,
}

impl Say {
    /// Prints a line, or several.
    pub(crate) fn line(self, text: impl std::fmt::Display) {
        if self.on_stderr {
            eprintln!("{text}");
        } else {
            println!("{text}");
        }
    }
}
