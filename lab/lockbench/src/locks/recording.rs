//! The recorder of `spinpark profile` in front of a worker's locks: what it costs is measured as an
//! implementation's locks are.
//!
//! Each run has a directory of its own, which goes when the run has ended, however it ended. A run that left
//! no recording there yields nothing: it would say that recording costs nothing.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use spinpark_measure::process::executable::Library;
use spinpark_measure::rounds::configuration::{DETAIL, DIRECTORY, PARENT};
use tempfile::TempDir;

/// How much is recorded: `--detail` of `spinpark profile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// Nothing: the recorder is there and lets every call through.
    Off,
    /// Waits, and the threads that caused them.
    Contended,
    /// Waits, and how often each lock is taken, and for how long by samples.
    Sampled,
    /// Every acquisition.
    Full,
}

impl Detail {
    /// As the recorder knows it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Contended => "contended",
            Self::Sampled => "sampled",
            Self::Full => "full",
        }
    }
}

/// How the name of a recording ends.
const EXTENSION: &str = "spinprof";
/// How a recording begins; the recorder writes it last, when it has begun.
const MAGIC: &[u8; 8] = b"SPINPROF";

/// Where one run is recorded.
#[derive(Debug)]
pub(crate) struct Recording(TempDir);

impl Recording {
    /// Makes its directory, and tells `command` about it.
    pub(crate) fn of(command: &mut Command, detail: Detail) -> Result<Self, String> {
        let directory =
            tempfile::Builder::new().prefix("spinpark-recording-").tempdir().map_err(|error| {
                format!("cannot make a temporary directory for the recording ({error}); is TMPDIR writable?")
            })?;
        command.env(DIRECTORY, directory.path()).env(DETAIL, detail.word());
        command.env(PARENT, std::process::id().to_string());
        Ok(Self(directory))
    }

    /// The run has ended. Removes the directory, and says whether it was recorded.
    pub(crate) fn end(self) -> Result<(), String> {
        let directory = self.0.path().to_path_buf();
        let is_there = has_recording(&directory);
        self.0
            .close()
            .map_err(|error| format!("cannot remove {}: {error}; remove it by hand", directory.display()))?;
        match is_there {
            true => Ok(()),
            false => Err(format!(
                "the recorder recorded nothing: it was not loaded, or could not write to {}\n\
                 See that {} names the {} of this version, if it is set, and that TMPDIR has free space",
                directory.parent().unwrap_or(&directory).display(),
                Library::Profiler.variable(),
                Library::Profiler.file(),
            )),
        }
    }
}

/// Whether a recording was begun there.
fn has_recording(directory: &Path) -> bool {
    let files = fs::read_dir(directory).into_iter().flatten().flatten().map(|file| file.path());
    let begins_as_one = |path: PathBuf| {
        let mut start = [0; MAGIC.len()];
        File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *MAGIC
    };
    files.filter(|path| path.extension().is_some_and(|it| it == EXTENSION)).any(begins_as_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin() -> (Recording, PathBuf) {
        let mut command = Command::new("true");
        let recording = Recording::of(&mut command, Detail::Sampled).unwrap();
        let of = |name: &str| command.get_envs().find(|(key, _)| *key == name).and_then(|(_, value)| value);
        assert_eq!(of(DETAIL).unwrap(), "sampled");
        let path = recording.0.path().to_path_buf();
        assert_eq!(of(DIRECTORY).unwrap(), path);
        (recording, path)
    }

    #[test]
    fn a_recording_must_be_there_and_goes() {
        let (recording, path) = begin();
        fs::write(path.join("17.spinprof"), "SPINPROF and so on").unwrap();
        assert_eq!(recording.end(), Ok(()));
        assert!(!path.exists());
        for (name, text) in [("17.spinprof", "\0\0\0\0\0\0\0\0"), ("17.spinprof", ""), ("17.txt", "SPINPROF")]
        {
            let (recording, path) = begin();
            fs::write(path.join(name), text).unwrap();
            let said = recording.end().unwrap_err();
            assert!(said.contains("recorded nothing") && said.contains("SPINPARK_PROFILER"), "{said}");
            assert!(!path.exists());
        }
    }

    #[test]
    fn gone_when_a_run_is_given_up() {
        let (recording, path) = begin();
        drop(recording);
        assert!(!path.exists());
    }

    /// As definition files have them, and as the recorder does.
    #[test]
    fn words() {
        for detail in [Detail::Off, Detail::Contended, Detail::Sampled, Detail::Full] {
            assert_eq!(serde_json::to_value(detail).unwrap(), detail.word());
        }
    }
}
