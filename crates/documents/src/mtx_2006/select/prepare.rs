//! Before all runs: an empty database with the table in it, and copies of it.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use spinpark_measure::failure::{Tail, in_words};

use super::load::{LoadError, fill};
use super::server::{Server, Start};
use crate::mariadb::Files;
use crate::workloads::job::JobError;

/// Makes the database and the table.
pub(super) fn prepare(files: &Files, install: &Path, start: &Start, rows: u64) -> Result<(), JobError> {
    make_empty(files, install)?;
    let server = Server::start(start, files, 1).map_err(LoadError::from)?;
    Ok(fill(server, files, rows)?)
}

/// Runs `mariadb-install-db`, and keeps what it says to itself unless it fails.
fn make_empty(files: &Files, install: &Path) -> Result<(), JobError> {
    let failed = || JobError::failed(format!("cannot run {}", install.display()));
    let log = files.directory().join("install.log");
    let output = File::create(&log).map_err(failed())?;
    let errors = output.try_clone().map_err(failed())?;
    let mut command = Command::new(install);
    command.args(files.install_args()).current_dir(files.directory());
    command.stdin(Stdio::null()).stdout(output).stderr(errors).env_remove("LD_PRELOAD");
    // SAFETY: the closure runs between fork and exec and only makes a system call: no allocation, no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
        })
    };
    let status = command.status().map_err(failed())?;
    if status.success() {
        return Ok(());
    }
    let said = Tail::of(&fs::read_to_string(log).unwrap_or_default());
    Err(JobError::Refused(format!("{} {}{said}", install.display(), in_words(status))))
}

/// Copies a directory with all files in it.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&entry.path(), &to)?,
            kind if kind.is_file() => fs::copy(entry.path(), &to).map(drop)?,
            // Nothing else belongs to a database.
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_everything() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("a"), directory.path().join("b"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::write(from.join("one"), "1").unwrap();
        fs::write(from.join("inner/two"), "2").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("one")).unwrap(), "1");
        assert_eq!(fs::read_to_string(to.join("inner/two")).unwrap(), "2");
        assert!(copy(&from, &to).is_err(), "it is there already");
    }

    #[test]
    fn what_the_installer_says_is_in_the_error() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::at(directory.path());
        let error = make_empty(&files, Path::new("/bin/false")).unwrap_err().to_string();
        assert!(error.contains("/bin/false exited with status 1") && error.contains("nothing"), "{error}");
    }
}
