//! Why a file could not be written, and what mends that: where the disk has no room, how much there is.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfs, statvfs};
use rustix::process::{Resource, getrlimit};

use crate::text::units::bytes;

/// What an error of writing means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Why, behind `cannot write X:`.
    pub why: String,
    /// What to do; none if the error is another one than for want of room.
    pub remedy: Option<String>,
}

impl Unwritten {
    /// What `error` means of a file, or of a file in a directory. `needed`: bytes that were to be written, if that is known.
    #[must_use]
    pub fn of(path: &Path, error: &io::Error, needed: Option<u64>) -> Self {
        let known = |why: String, remedy: &str| Self { why, remedy: Some(remedy.to_owned()) };
        let place = place(path);
        match error.kind() {
            // Its own fault, if it is a device: `/dev/full`.
            _ if path.exists() && !path.is_file() && !path.is_dir() => {
                Self { why: error.to_string(), remedy: None }
            }
            io::ErrorKind::StorageFull => {
                known(full(&place, needed), "Make room there, or name a place on another disk")
            }
            io::ErrorKind::QuotaExceeded => known(
                format!("this user's quota on the disk of {} is used up", place.display()),
                "Delete files of this user there, or name a place on another disk",
            ),
            io::ErrorKind::FileTooLarge => {
                let most = getrlimit(Resource::Fsize).current.map(|most| bytes(most as f64));
                let most = most.map_or_else(|| String::from("so long"), |most| format!("longer than {most}"));
                let needed = needed
                    .map_or_else(String::new, |needed| format!(", and it has {}", bytes(needed as f64)));
                known(
                    format!("files may not be {most} here (ulimit -f){needed}"),
                    "`ulimit -f unlimited` before the command allows any length",
                )
            }
            io::ErrorKind::ReadOnlyFilesystem => known(
                format!("the file system of {} is read-only", place.display()),
                "Name a place on another one",
            ),
            _ => Self { why: error.to_string(), remedy: None },
        }
    }
}

/// On one line, with what to do if that is known.
impl Display for Unwritten {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(&self.why)?;
        match &self.remedy {
            Some(remedy) => write!(to, ". {remedy}"),
            None => Ok(()),
        }
    }
}

/// `the disk of /srv is full: 12 KiB are free, and 340 KiB are needed`.
fn full(place: &Path, needed: Option<u64>) -> String {
    let said = format!("the disk of {} is full", place.display());
    let Ok(disk) = statvfs(place) else { return said };
    let free = free(&disk);
    match needed {
        // A file system without a fixed number of files says 0 of all.
        _ if disk.f_files > 0 && disk.f_favail == 0 => format!("{said}: it has room for no further file"),
        Some(needed) if free < needed => {
            format!("{said}: {} are free, and {} are needed", bytes(free as f64), bytes(needed as f64))
        }
        // There is room by now; or the file system keeps it to itself.
        Some(_) => said,
        None => format!("{said}: {} are free", bytes(free as f64)),
    }
}

/// Bytes that others than root may use.
fn free(disk: &StatVfs) -> u64 {
    disk.f_bavail.saturating_mul(disk.f_frsize)
}

/// The directory that a file is in, or the nearest one that is there.
fn place(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_place_without_room() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("not/there/report.html");
        let full = |needed| Unwritten::of(&path, &io::ErrorKind::StorageFull.into(), needed);
        let place = directory.path().display().to_string();
        let one = full(Some(1 << 60));
        assert!(one.why.starts_with(&format!("the disk of {place} is full")), "{one:?}");
        assert!(one.why.contains(" are free, and ") && one.why.ends_with(" are needed"), "{one:?}");
        assert!(one.remedy.as_deref().is_some_and(|remedy| remedy.starts_with("Make room there")));
        assert!(full(None).why.ends_with(" are free"), "{:?}", full(None));
        assert!(!full(Some(0)).why.contains("needed"), "{:?}", full(Some(0)));
        let other = Unwritten::of(&path, &io::ErrorKind::PermissionDenied.into(), Some(1));
        assert_eq!((other.why.as_str(), other.remedy), ("permission denied", None));
        let device = Unwritten::of(Path::new("/dev/full"), &io::ErrorKind::StorageFull.into(), Some(1));
        assert_eq!(device.remedy, None, "no disk is full");
    }
}
