//! Processes of a directory that were not recorded.

use std::ffi::OsStr;
use std::fs;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use spinpark_observe::format::ROOM_FILE;
use spinpark_observe::format::RoomCount;

use crate::model::Profile;
use crate::model::Warning;
use crate::units::{bytes, count};

/// How the sentence on the bound ends.
const BOUND: &str = "(`--max-size`).";
/// How that on files that could not be created does.
const FAILED: &str = "its directory and limits.";

/// How many processes of a directory were not recorded, as their recorders have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unrecorded {
    /// For want of room.
    pub refused: u32,
    /// Their file could not be created.
    pub failed: u32,
    /// The bound, bytes.
    pub most: u64,
}

impl Unrecorded {
    /// What the recorders have counted in `directory`; zeros if there is no such count.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        let Ok(page) = fs::read(directory.join(OsStr::from_bytes(ROOM_FILE.to_bytes()))) else {
            return Self::default();
        };
        let number = |at: usize, length: usize| {
            let mut bytes = [0; 8];
            if let Some(found) = page.get(at..at + length) {
                bytes[..length].copy_from_slice(found);
            }
            u64::from_le_bytes(bytes)
        };
        let number_of = |at| u32::try_from(number(at, 4)).unwrap_or(u32::MAX);
        Self {
            refused: number_of(offset_of!(RoomCount, refused)),
            failed: number_of(offset_of!(RoomCount, failed)),
            most: number(offset_of!(RoomCount, most), 8),
        }
    }

    /// Whole sentences; none if all were recorded.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let processes = |number: u32| match number {
            1 => String::from("1 process was"),
            number => format!("{} processes were", count(u64::from(number))),
        };
        let refused = (self.refused > 0).then(|| {
            format!(
                "{} not recorded: the recording would have exceeded {} {BOUND}",
                processes(self.refused),
                bytes(self.most)
            )
        });
        let failed = (self.failed > 0).then(|| {
            format!(
                "{} not recorded: no file could be created in the directory of the recording; a process that changes its user or \
                 root, or enters a sandbox, loses {FAILED}",
                processes(self.failed)
            )
        });
        refused.into_iter().chain(failed).collect()
    }

    /// Replaces these sentences in a profile of that directory.
    pub fn tell(&self, profile: &mut Profile) {
        let is_old = |text: &str| {
            text.contains(" not recorded: ") && (text.ends_with(BOUND) || text.ends_with(FAILED))
        };
        profile.warnings.retain(|warning| !is_old(warning.text()));
        profile.warnings.extend(self.sentences().into_iter().map(Warning::Loss));
    }
}
