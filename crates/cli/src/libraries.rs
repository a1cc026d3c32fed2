//! The library to put in front of a program, wherever this command is.

use anyhow::anyhow;
use spinpark_measure::executable::{DropIn, Library};

/// The library that its variable names, else the one that is installed with the command or carried by it.
///
/// # Errors
///
/// If it is unusable, or there is no place for it; with what to do then.
pub(crate) fn find(library: Library) -> anyhow::Result<DropIn> {
    if let Some(named) = DropIn::named(library)? {
        return Ok(named);
    }
    let found = spinpark_libraries::find(library.file()).map_err(|error| way_out(library, &error))?;
    Ok(DropIn::open(library, found.path)?)
}

/// What the user can do.
pub(crate) fn way_out(library: Library, error: &spinpark_libraries::NoPlace) -> anyhow::Error {
    let (file, variable) = (library.file(), library.variable());
    let copy = if spinpark_libraries::version().is_some() {
        "Copy it with `spinpark libraries --to DIR`, and set"
    } else {
        "Set"
    };
    anyhow!("{error}\n{copy} {variable} to the path of {file}")
}
