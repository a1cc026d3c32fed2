//! Processes of a directory that were not recorded.

use std::ffi::OsStr;
use std::fs;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use spinpark_measure::text::units::{count, size};
use spinpark_recorder::format::{CAUSES, QuotaCount};
pub use spinpark_recorder::format::{Cause, QUOTA_FILE};

use crate::model::Warning;

/// How the sentence on the bound ends.
const BOUND: &str = "(`--max-size`).";

/// Why files could not be created, by [`Cause`], and what to do.
const CAUSES_IN_WORDS: [&str; CAUSES] = [
    "it may not write in the directory of the recording, for example because it became another user. Name a directory in which \
     that user may write with `--output`.",
    "the directory of the recording is not there for it, for example because it changed its root directory (chroot, a \
     container). Name a directory that it sees with `--output`.",
    "the disk is full. Delete files, or name a directory on another disk with `--output`.",
    "it could not open another file. Raise its limit of open files (`ulimit -n`).",
    "its files may not be long enough. Raise its limit (`ulimit -f`).",
    "it has no memory or addresses left for the tables. Raise its limit (`ulimit -v`).",
    "it had entered a sandbox before its first wait, in which creating a file might have ended it.",
    "its file could not be created.",
];

/// How many processes of a directory were not recorded, as their recorders have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unrecorded {
    /// Because of the bound.
    pub refused: u32,
    /// Their file could not be created, by [`Cause`].
    pub failed: [u32; CAUSES],
    /// The bound, bytes.
    pub most: u64,
}

impl Unrecorded {
    /// What the recorders have counted in `directory`; zeros if there is no such count.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        let Ok(page) = fs::read(directory.join(OsStr::from_bytes(QUOTA_FILE.to_bytes()))) else {
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
            refused: number_of(offset_of!(QuotaCount, refused)),
            failed: std::array::from_fn(|cause| number_of(offset_of!(QuotaCount, failed) + 4 * cause)),
            most: number(offset_of!(QuotaCount, most), 8),
        }
    }

    /// How many there are for a reason.
    #[must_use]
    pub fn for_cause(&self, cause: Cause) -> u32 {
        self.failed[cause as usize]
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
                size(self.most)
            )
        });
        let failed = self.failed.into_iter().zip(CAUSES_IN_WORDS).filter(|(failed, _)| *failed > 0);
        let failed = failed.map(|(failed, why)| format!("{} not recorded: {why}", processes(failed)));
        refused.into_iter().chain(failed).collect()
    }

    /// The warnings of a profile of that directory, with these sentences in the place of older ones.
    #[must_use]
    pub(crate) fn added_to(&self, warnings: Vec<Warning>) -> Vec<Warning> {
        let is_old = |text: &str| {
            let ends = CAUSES_IN_WORDS.into_iter().chain([BOUND]).any(|end| text.ends_with(end));
            text.contains(" not recorded: ") && ends
        };
        let others = warnings.into_iter().filter(|warning| !is_old(warning.text()));
        others.chain(self.sentences().into_iter().map(Warning::Loss)).collect()
    }
}
