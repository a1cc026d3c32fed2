//! The directory of a recording.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use spinpark_measure::report::unwritten::Unwritten;
use spinpark_profile::read::QUOTA_FILE;

use crate::files;

/// The directory if none is named.
const NAME: &str = "spinpark-profile";
/// The most directories with generated names: then the user should remove some.
const MOST: u32 = 1000;

/// Makes a directory: `wanted`, or one with a generated name that is not taken.
///
/// # Errors
///
/// If there is something in it already, or it cannot be made.
pub(crate) fn create(wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    let made = match wanted {
        Some(wanted) => {
            files::create("--output", wanted)?;
            let mut entries =
                fs::read_dir(wanted).with_context(|| format!("cannot read {}", wanted.display()))?;
            if entries.next().is_some() {
                bail!("{} is not empty; name an empty or a new directory with --output", wanted.display());
            }
            wanted.to_owned()
        }
        None => fresh()?,
    };
    // The program may change its directory before the recorder reads it.
    made.canonicalize().with_context(|| format!("cannot find {}", made.display()))
}

fn fresh() -> anyhow::Result<PathBuf> {
    for number in 1..=MOST {
        let name = if number == 1 { PathBuf::from(NAME) } else { PathBuf::from(format!("{NAME}-{number}")) };
        match fs::create_dir(&name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let Unwritten { why, remedy } = Unwritten::of(&name, &error, None);
                let remedy = remedy.map_or_else(
                    || String::from("Name one in which you may write with --output"),
                    |remedy| format!("{remedy} (--output)"),
                );
                bail!("cannot create the directory {} here: {why}\n{remedy}", name.display())
            }
        }
    }
    bail!("there are {MOST} recordings here already; remove some, or name a directory with --output")
}

/// Removes a directory in which nothing was recorded.
pub(crate) fn remove_if_empty(directory: &Path) {
    let is_count = |name: std::ffi::OsString| name == OsStr::from_bytes(QUOTA_FILE.to_bytes());
    let is_empty = fs::read_dir(directory)
        .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| is_count(entry.file_name()))));
    if is_empty {
        let _ = fs::remove_file(directory.join(OsStr::from_bytes(QUOTA_FILE.to_bytes())));
    }
    let _ = fs::remove_dir(directory); // it refuses if something is there
}
