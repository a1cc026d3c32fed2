//! The two libraries to preload, carried inside the command, and a path for each that the dynamic loader can open.
//!
//! `LD_PRELOAD` takes a path, and each program that is started later opens it again, perhaps long after the command has
//! ended. So a carried library becomes a file. The order in which [`find`] looks for one:
//!
//! 1. beside the command, in `../lib`, in `../lib/spinpark`: a file with exactly the carried content;
//! 2. the carried library, written once to the first [private directory](places) that works.
//!
//! A file is used only if no other user can replace it between the check and the load ([`trusted`]): each directory of its
//! path belongs to root or to the user, and others cannot write to it, or it is sticky. That makes a shared temporary
//! directory a possible place: another user can occupy our name there, which is noticed, but cannot supply the file.
//!
//! A path such as `/proc/self/fd/3` on a memory file needs no directory at all, and is not used: a program that closes the
//! files it has not opened (daemons, Python's `subprocess`) gives the number to another file, and its children would load
//! or block on that one. Where no place works, [`NoPlace`] says why for each, and what to set.

mod place;
mod places;
mod private;
mod refusal;
mod sweep;
mod trusted;

#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use self::place::{Found, Origin};
pub use self::places::{Parent, Places};
pub use self::refusal::Refusal;

/// A library that the command carries.
#[derive(Clone, Copy)]
pub struct Library {
    /// Its file name.
    pub file: &'static str,
    /// Its bytes.
    pub content: &'static [u8],
}

/// What the build script generates.
struct Carried {
    /// The first 16 digits of the SHA-256 over both contents.
    hash: &'static str,
    drop_in: Library,
    profiler: Library,
}

include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// The carried libraries; none if the command was built with `SPINPARK_LIBRARIES=none`.
pub fn carried() -> impl Iterator<Item = Library> {
    CARRIED.iter().flat_map(|carried| [carried.drop_in, carried.profiler])
}

/// The name of the directory that has this version's libraries, such as `0.1.0-89abcdef01234567`. None are carried: `None`.
#[must_use]
pub fn version() -> Option<String> {
    CARRIED.as_ref().map(|carried| format!("{}-{}", env!("CARGO_PKG_VERSION"), carried.hash))
}

/// No file that a program could load.
#[derive(Debug, Error)]
pub enum NoPlace {
    /// This command carries no library, and none is installed with it.
    #[error("cannot find {file}; looked for\n{}", list(.places.iter().map(|path| path.display())))]
    NotInstalled {
        /// The file name.
        file: String,
        /// Where it was looked for.
        places: Vec<PathBuf>,
    },
    /// The carried library cannot become a file.
    #[error("no directory is fit for {file}, which programs have to load:\n{}", list(.refusals))]
    Nowhere {
        /// The file name.
        file: String,
        /// What is wrong with each place.
        refusals: Vec<Refusal>,
    },
}

fn list(lines: impl IntoIterator<Item = impl Display>) -> String {
    lines.into_iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// The file to preload for the library called `file`.
///
/// # Errors
///
/// If there is no place for it; the message says what is wrong with each.
pub fn find(file: &str) -> Result<Found, NoPlace> {
    find_in(file, &Places::of_this_process())
}

/// As [`find`], in these places.
///
/// # Errors
///
/// As [`find`].
pub fn find_in(file: &str, places: &Places) -> Result<Found, NoPlace> {
    match (carried().find(|library| library.file == file), version()) {
        (Some(library), Some(version)) => place::carried(library, &version, places),
        _ => place::installed(file, places),
    }
}

/// Copies the carried libraries to `directory`, for `SPINPARK_PRELOAD` and `SPINPARK_PROFILER`.
///
/// # Errors
///
/// If a file cannot be written.
pub fn copy_to(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let copy = |library: Library| {
        let path = directory.join(library.file);
        // A running program may have the old file mapped: replace it, never overwrite it.
        let new = directory.join(format!(".{}.{}", library.file, std::process::id()));
        let mut file = fs::File::create_new(&new)?;
        let written = file.write_all(library.content).and_then(|()| fs::rename(&new, &path));
        written.inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })?;
        Ok(path)
    };
    fs::create_dir_all(directory)?;
    carried().map(copy).collect()
}
