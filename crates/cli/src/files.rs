//! Files and directories that a user names for results.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::anyhow;
use rustix::fs::{Access, access};
use spinpark_measure::report::json::{Output, Unwritable};
use spinpark_measure::report::unwritten::Unwritten;

/// Creates the directory that `option` names, and its parents, unless it is there.
///
/// # Errors
///
/// If it cannot be created; with what to do then.
pub fn create(option: &str, directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).map_err(|error| {
        let path = directory.display();
        let Unwritten { why, remedy } = Unwritten::of(directory, &error, None);
        let remedy = remedy.unwrap_or_else(|| format!("Give {option} a directory in which you may write"));
        anyhow!("cannot create the directory {path}: {why}\n{remedy}")
    })
}

/// Opens the file that an option names, if it names one.
pub fn open(file: &Option<PathBuf>) -> anyhow::Result<Option<Output>> {
    Ok(file.as_deref().map(Output::open).transpose()?)
}

/// Lets temporary files be made elsewhere if they cannot be made in `TMPDIR` or `/tmp`: in a container with a
/// read-only root.
pub fn find_temporary_directory() {
    let is_open = |path: &Path| access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    if !is_open(&env::temp_dir()) {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let usual = ["/tmp", "/var/tmp", "/dev/shm", "/run"].map(PathBuf::from);
        if let Some(other) = runtime.into_iter().chain(usual).find(|path| path.is_absolute() && is_open(path))
        {
            // It fails if that is chosen already.
            let _ = tempfile::env::override_temp_dir(&other);
        }
    }
}

/// Writes plots, each a file name and the SVG.
pub fn draw(directory: &Path, plots: Vec<(String, String)>) -> anyhow::Result<()> {
    for (name, svg) in plots {
        let path = directory.join(name);
        let written = fs::write(&path, &svg);
        written.map_err(|error| Unwritable { path: path.clone(), error, needed: Some(svg.len() as u64) })?;
        note!("Plot: {}", path.display());
    }
    Ok(())
}
