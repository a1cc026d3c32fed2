//! The data of `spinpark whatif`, read for a report: what was measured takes the place of a bound.
//!
//! A lock is known by its class and what it is, as in `whatif --lock`. Whether the recording is one of the same program
//! and load is not known: a sentence names the command if it is another one.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use spinpark_measure::report::whatif::{FORMAT, VERSION};
use spinpark_measure::rounds::whatif::Verdict;
use thiserror::Error;

use crate::model::{Lock, Measured, Profile};

/// Why a file is of no use.
#[derive(Debug, Error)]
pub enum MeasuredError {
    /// It cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, std::io::Error),
    /// It is something else.
    #[error("{0} is no result of `spinpark whatif --json`: {1}")]
    Other(PathBuf, String),
    /// Another version wrote it.
    #[error(
        "{0} has version {1} of its format, and this command reads {VERSION}\nMeasure again: spinpark whatif"
    )]
    Version(PathBuf, u64),
    /// Its locks are not those of the recording.
    #[error(
        "the recording has none of the locks of {0}: {1}\nIs it a recording of the same program? Names are those of `spinpark report`"
    )]
    NoLock(PathBuf, String),
}

#[derive(Deserialize)]
struct Document {
    command: Vec<String>,
    #[serde(rename = "where")]
    place: String,
    locks: Vec<Answered>,
}

#[derive(Deserialize)]
struct Answered {
    name: String,
    noun: String,
    section_ns: Option<f64>,
    delay_ns: u64,
    answer: String,
    effect: Effect,
}

#[derive(Deserialize)]
struct Effect {
    slope: Option<Slope>,
    verdict: Verdict,
}

#[derive(Deserialize)]
struct Slope {
    median: f64,
}

/// Reads what `spinpark whatif --json` wrote.
///
/// # Errors
/// If it is not that, or another version's.
pub fn read(path: &Path) -> Result<Vec<Measured>, MeasuredError> {
    let text = fs::read(path).map_err(|error| MeasuredError::Unreadable(path.to_owned(), error))?;
    let other = |why: String| MeasuredError::Other(path.to_owned(), why);
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| other(error.to_string()))?;
    match (value["format"].as_str(), value["version"].as_u64()) {
        (Some(FORMAT), Some(version)) if version == u64::from(VERSION) => {}
        (Some(FORMAT), Some(version)) => return Err(MeasuredError::Version(path.to_owned(), version)),
        (Some(format), _) => return Err(other(format!("its format is `{format}`"))),
        (None, _) => return Err(other(String::from("it names no format"))),
    }
    let document: Document = serde_json::from_value(value).map_err(|error| other(error.to_string()))?;
    let is_inside = document.place == "inside";
    let measured = |lock: Answered| {
        let whole = lock.section_ns.map(|section| section / lock.delay_ns.max(1) as f64);
        let slope = lock.effect.slope.map(|slope| slope.median);
        Measured {
            name: lock.name,
            noun: lock.noun,
            is_of_sections: is_inside && whole.is_some(),
            verdict: lock.effect.verdict,
            cost: whole.zip(slope).map(|(whole, slope)| whole * slope),
            answer: lock.answer,
            command: document.command.clone(),
        }
    };
    Ok(document.locks.into_iter().map(measured).collect())
}

/// Adds what the file of this path has measured to the profiles that have these locks.
///
/// # Errors
/// If none has any of them, or the file is of no use.
pub fn add(profiles: &mut [Profile], path: &Path) -> Result<(), MeasuredError> {
    let measured = read(path)?;
    let mut is_any = false;
    for profile in profiles {
        for one in &measured {
            if profile.locks.iter().any(|lock| is_of(one, lock)) {
                profile.measured.push(one.clone());
                is_any = true;
            }
        }
    }
    if is_any {
        return Ok(());
    }
    let names: Vec<String> = measured.iter().map(|one| format!("`{}` ({})", one.name, one.noun)).collect();
    let names = if names.is_empty() { String::from("it has no lock") } else { names.join(", ") };
    Err(MeasuredError::NoLock(path.to_owned(), names))
}

/// Whether that was measured of this lock and its peers.
pub(crate) fn is_of(measured: &Measured, lock: &Lock) -> bool {
    measured.name == lock.class() && measured.noun == lock.noun()
}

/// The answer, as a sentence of a report on this profile.
pub(crate) fn sentence(measured: &Measured, profile: &Profile) -> String {
    let with = match measured.command == profile.arguments || measured.command.is_empty() {
        true => String::new(),
        false => format!(" with `{}`", measured.command.join(" ")),
    };
    let mut letters = measured.answer.chars();
    let first: String = letters.next().map(|first| first.to_lowercase().collect()).unwrap_or_default();
    format!("Measured{with}: {first}{}", letters.as_str())
}
