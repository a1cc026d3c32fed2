//! Why functions have no names.

use std::io;

use serde::{Deserialize, Serialize};

/// Why functions of a program or library have no names, where they have none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unnamed {
    /// It has no symbols but those that it exports, and no debug file was found.
    Stripped,
    /// It has symbols, and none for this code: assembly, or functions that a linker made.
    NoSymbol,
    /// The file is not there any more.
    Gone,
    /// Another file has its name now.
    Replaced,
    /// It cannot be read: the system's reason.
    Unreadable(String),
    /// It is no ELF file, or a damaged one.
    NotElf,
    /// The code was made at run time, and its compiler wrote no perf map.
    Jit,
}

impl Unnamed {
    /// Why a file could not be opened.
    #[must_use]
    pub(crate) fn of_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Gone,
            _ => Self::Unreadable(error.to_string()),
        }
    }

    /// A sentence about a file, after its name and a colon.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Stripped => String::from("it is stripped."),
            Self::NoSymbol => String::from("it has no symbols for some of its code."),
            Self::Gone => {
                String::from("the file was deleted after it was loaded, so its functions have no names.")
            }
            Self::Replaced => String::from(
                "the file was replaced after it was loaded, so the functions that ran have no names. Record again.",
            ),
            Self::Unreadable(error) => {
                format!("the file cannot be read ({error}), so its functions have no names.")
            }
            Self::NotElf => String::from("the file is not an ELF file, so its functions have no names."),
            Self::Jit => String::from("code that was made at run time has no names."),
        }
    }
}
