//! The file of a recording's directory that has its profiles with symbols, so that a report needs no programs any
//! more.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::json::text;
use crate::model::Profile;

/// Its name.
pub const FILE: &str = "profile.json";

/// Writes [`FILE`] in `directory`, and returns its path. Readers see the old file until the new one is
/// complete.
///
/// The directory then has at most `max_size` bytes on the disk: the profiles that waited most are written, as
/// many as fit, and nothing if none fits. The others are read from their recordings again.
///
/// # Errors
/// As the system has them.
pub fn save(directory: &Path, profiles: &[Profile], max_size: u64) -> io::Result<PathBuf> {
    let path = directory.join(FILE);
    let unfinished = directory.join(format!(".{FILE}.{}", std::process::id()));
    let fitting = fitting(profiles, bytes_left(directory, max_size)?);
    if fitting.is_empty() && !profiles.is_empty() {
        return Ok(path);
    }
    let written = fs::write(&unfinished, text(&fitting)).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.map(|()| path)
}

/// Bytes that [`FILE`] has with all of these profiles.
#[must_use]
pub fn needed(profiles: &[Profile]) -> u64 {
    text(profiles).len() as u64
}

/// Bytes that a directory has left on the disk of `max_size`, without [`FILE`].
///
/// # Errors
/// As the system has them.
pub fn bytes_left(directory: &Path, max_size: u64) -> io::Result<u64> {
    Ok(max_size.saturating_sub(bytes_in(directory)?))
}

/// Bytes on the disk of a directory's files, without [`FILE`].
fn bytes_in(directory: &Path) -> io::Result<u64> {
    const BLOCK: u64 = 512;
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() != FILE {
            bytes += entry.metadata()?.blocks() * BLOCK;
        }
    }
    Ok(bytes)
}

/// The profiles whose text fits into this many bytes: those that waited most are chosen first. They keep
/// their order.
fn fitting(profiles: &[Profile], most: u64) -> Vec<Profile> {
    /// Files take whole pages, and the array has brackets.
    const BESIDES: u64 = 8192;
    let mut order: Vec<usize> = (0..profiles.len()).collect();
    order.sort_by_key(|at| Reverse((profiles[*at].waited(), profiles[*at].signal_wait())));
    let mut left = most.saturating_sub(BESIDES);
    let mut fits = vec![false; profiles.len()];
    for at in order {
        let length = text(&profiles[at..=at]).len() as u64;
        if let Some(rest) = left.checked_sub(length) {
            (left, fits[at]) = (rest, true);
        }
    }
    profiles.iter().zip(fits).filter(|(_, fits)| *fits).map(|(profile, _)| profile.clone()).collect()
}
