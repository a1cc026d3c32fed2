//! Profiles as JSON: an array with one [`Profile`] per process, each of which begins with `format` and
//! `version`.

use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::error::Category;

use crate::model::{FORMAT, Profile, VERSION};
use crate::read::ReadError;

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
    // Format and version first: another version may have unknown fields, or lack some.
    #[derive(Deserialize)]
    struct Start {
        format: Option<String>,
        version: Option<u32>,
    }
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing(path.to_owned()),
        _ => ReadError::Unreadable(path.to_owned(), error),
    })?;
    let broken = |error: serde_json::Error| ReadError::Json(path.to_owned(), error);
    let other = |error: serde_json::Error| match error.classify() {
        // It is JSON, of another shape.
        Category::Data => ReadError::Foreign(path.to_owned()),
        _ => broken(error),
    };
    let is_array = text.trim_start().starts_with('[');
    let starts: Vec<Start> = match is_array {
        true => serde_json::from_str(&text).map_err(other)?,
        false => vec![serde_json::from_str(&text).map_err(other)?],
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
