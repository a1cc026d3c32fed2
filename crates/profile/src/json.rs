//! Profiles as JSON: an array with one [`Profile`] per process, each of which begins with `format` and
//! `version`.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::model::{FORMAT, Profile, VERSION};
use crate::read::{ReadError, Unrecorded, directory, profile};
use crate::symbols::Symbols;
use crate::watch;

/// The file of a directory that has its profiles with symbols, so that a report needs no programs any more.
pub const FILE: &str = "profile.json";

/// What was read.
#[derive(Debug)]
pub struct Loaded {
    /// One per process, the oldest first.
    pub profiles: Vec<Profile>,
    /// Files that are no profiles, and why.
    pub broken: Vec<ReadError>,
}

/// The document.
///
/// # Panics
/// Never: numbers and text can be written.
#[must_use]
pub fn text(profiles: &[Profile]) -> String {
    serde_json::to_string_pretty(profiles).expect("numbers and text can be written") + "\n"
}

/// Reads a document: an array of profiles, or one.
///
/// # Errors
/// [`ReadError`]: it is missing or unreadable, no JSON, another format, or an unknown version.
pub fn read(path: &Path) -> Result<Vec<Profile>, ReadError> {
    #[derive(Deserialize)]
    struct Start {
        format: Option<String>,
        version: Option<u32>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Starts {
        Several(Vec<Start>),
        One(Start),
    }
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing(path.to_owned()),
        _ => ReadError::Unreadable(path.to_owned(), error),
    })?;
    let broken = |error| ReadError::Json(path.to_owned(), error);
    // Format and version first: another version may have unknown fields.
    let value: serde_json::Value = serde_json::from_str(&text).map_err(broken)?;
    let is_array = value.is_array();
    let starts = match serde_json::from_value(value).map_err(|_| ReadError::Foreign(path.to_owned()))? {
        Starts::Several(starts) => starts,
        Starts::One(start) => vec![start],
    };
    for start in starts {
        if start.format.as_deref() != Some(FORMAT) {
            return Err(ReadError::Foreign(path.to_owned()));
        }
        let version = start.version.unwrap_or(0);
        if version != VERSION {
            return Err(ReadError::Version(path.to_owned(), version));
        }
    }
    match is_array {
        true => serde_json::from_str(&text).map_err(broken),
        false => serde_json::from_str(&text).map(|profile| vec![profile]).map_err(broken),
    }
}

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

/// The profiles of `path`: a directory, a recording, or a JSON document.
///
/// In a directory, a process is taken from [`FILE`] if that has it, since its symbols were looked up when the
/// programs were what they had been. A process that was still running then is read again, and all are with a
/// user's table of waits.
///
/// # Errors
/// [`ReadError`], if there is no profile that can be read.
pub fn load(path: &Path, symbols: &mut Symbols) -> Result<Loaded, ReadError> {
    if path.extension().is_some_and(|extension| extension == "json") && !path.is_dir() {
        return Ok(Loaded { profiles: read(path)?, broken: Vec::new() });
    }
    let mut broken = Vec::new();
    let saved = match read(&path.join(FILE)) {
        Ok(profiles) => profiles,
        // Not a directory, or without the file.
        Err(ReadError::Missing(_) | ReadError::Unreadable(..)) => Vec::new(),
        Err(error) => {
            broken.push(error);
            Vec::new()
        }
    };
    let recordings = match directory(path) {
        Ok(found) => {
            broken.extend(found.broken);
            found.recordings
        }
        Err(ReadError::Empty(_)) if !saved.is_empty() => Vec::new(),
        // The reason of a file that exists helps more than that of a missing one.
        Err(ReadError::Empty(_)) if !broken.is_empty() => return Err(broken.remove(0)),
        Err(error) => return Err(error),
    };
    let mut profiles = saved;
    for recording in &recordings {
        let view = recording.view();
        let header = view.header();
        let is_it = |profile: &Profile| profile.pid == header.pid && profile.started == header.start_realtime;
        match profiles.iter().position(is_it) {
            // Another table determined then what waits are for.
            Some(at)
                if profiles[at].ended != crate::model::RecordingEnd::Running
                    && !symbols.has_users_waits() => {}
            Some(at) => profiles[at] = profile(recording, symbols),
            None => profiles.push(profile(recording, symbols)),
        }
    }
    profiles.sort_by_key(|profile| (profile.started, profile.pid));
    watch::attach(path, &mut profiles);
    let unrecorded = Unrecorded::of(path);
    profiles.iter_mut().for_each(|profile| unrecorded.tell(profile));
    Ok(Loaded { profiles, broken })
}
