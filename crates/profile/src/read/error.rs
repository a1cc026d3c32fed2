//! Why something cannot be read as a profile, and what to do.

use std::io;
use std::path::PathBuf;

use spinpark_recorder::format::{self, Broken};
use thiserror::Error;

use crate::model;

/// Why something cannot be read as a profile, and what to do.
#[derive(Debug, Error)]
pub enum ReadError {
    /// There is nothing of that name.
    #[error(
        "{} does not exist\nName a directory that `spinpark profile` made, such as spinpark-profile; \
         `spinpark profile --output {} -- PROGRAM` makes this one",
        .0.display(), .0.display()
    )]
    Missing(PathBuf),
    /// The system does not let us.
    #[error("cannot read {}: {}{}", .0.display(), .1, permission(.1))]
    Unreadable(PathBuf, #[source] io::Error),
    /// A directory without a profile.
    #[error(
        "there is no recording in {}\nName a directory that `spinpark profile` made, such as spinpark-profile; \
         `spinpark profile --output {} -- PROGRAM` records into this one",
        .0.display(), .0.display()
    )]
    Empty(PathBuf),
    /// A directory with a count of processes that were not recorded, and no profile.
    #[error("there is no profile in {}: {}", .0.display(), .1)]
    Unrecorded(PathBuf, String),
    /// A file that is no recording.
    #[error("{} {}", .0.display(), broken(*.1))]
    Broken(PathBuf, Broken),
    /// A file that is not JSON, or another one's.
    #[error("{} is not a profile in JSON: {}; make it again with `spinpark report --json`", .0.display(), .1)]
    Json(PathBuf, #[source] serde_json::Error),
    /// A JSON document of another format.
    #[error("{} is not a profile in JSON: its first field must be `\"format\": \"{}\"`", .0.display(), model::FORMAT)]
    Foreign(PathBuf),
    /// A JSON document of another version.
    #[error(
        "{} has version {} of the JSON format, and this program reads version {}: make it again from the recording with \
         `spinpark report --json`, or use the spinpark that wrote it",
        .0.display(), .1, model::VERSION
    )]
    Version(PathBuf, u32),
}

/// What to do if that is what is missing.
fn permission(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "\nRead it as the user that recorded it, or with sudo",
        _ => "",
    }
}

fn broken(why: Broken) -> String {
    match why {
        Broken::Short => String::from(
            "is too short to be a profile: the disk may have been full, or the file was copied only in part; record again",
        ),
        Broken::Foreign => String::from(
            "is not a recording: it is another program's file, or its program ended before recording began\nName a directory that \
             `spinpark profile` made, such as spinpark-profile, or one *.spinprof file of it",
        ),
        Broken::Version(version) => format!(
            "was recorded in version {version} of the format, and this program reads version {}: read it with the spinpark \
             that recorded it, or record again",
            format::VERSION
        ),
        Broken::Region => {
            String::from("is damaged: its header has impossible offsets; copy it again, or record again")
        }
    }
}
