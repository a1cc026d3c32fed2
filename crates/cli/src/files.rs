//! Files and directories that a user names for results.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use spinpark_measure::report::json::Output;

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

/// Opens the file that an option names, if it names one.
pub(crate) fn open(file: &Option<PathBuf>) -> anyhow::Result<Option<Output>> {
    Ok(file.as_deref().map(Output::open).transpose()?)
}

/// Writes plots, each a file name and the SVG.
pub(crate) fn draw(directory: &Path, plots: Vec<(String, String)>) -> anyhow::Result<()> {
    for (name, svg) in plots {
        let path = directory.join(name);
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        note!("Plot: {}", path.display());
    }
    Ok(())
}
