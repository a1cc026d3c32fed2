//! Directories that a user names for results.

use std::fs;
use std::path::Path;

use anyhow::anyhow;

/// Creates the directory that `option` names, and its parents, unless it is there.
///
/// # Errors
///
/// If it cannot be created; with what to do then.
pub(crate) fn create(option: &str, directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).map_err(|error| {
        let path = directory.display();
        anyhow!(
            "cannot create the directory {path}: {error}\nGive {option} a directory in which you may write"
        )
    })
}
