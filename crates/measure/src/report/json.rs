//! All data of a measurement as one JSON document: for statistics of one's own.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::process::executable::usage::Usage;
use crate::rounds::compare::Comparison;
use crate::rounds::configuration::Baseline;
use crate::rounds::environment::Environment;
use crate::rounds::machine::Noise;
use crate::rounds::measure::Run;
use crate::rounds::warnings::Warning;

use super::unwritten::Unwritten;
use super::{Printed, reading};
use crate::rounds::sample::Metric;

/// The version of the documents' structure. It grows when a field changes its meaning or goes.
pub const FORMAT_VERSION: u32 = 2;

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark compare";

/// What is enough to say everything about a comparison again.
#[derive(Debug, Deserialize)]
pub struct Record {
    /// How it was measured.
    pub settings: RecordedSettings,
    /// Where and when.
    pub environment: Environment,
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// That of `--against`.
    #[serde(default)]
    pub against: Option<Against>,
    /// Every run.
    pub runs: Vec<Run>,
}

/// The program that a comparison of two programs has as its baseline, and what both ran on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Against {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether both ran on spinpark's drop-in.
    pub on_drop_in: bool,
}

/// What of the [`Settings`] tables need.
#[derive(Debug, Deserialize)]
pub struct RecordedSettings {
    /// Decides the intervals.
    pub seed: u64,
    /// What the program's own number means.
    pub printed: Printed,
    /// Least peak memory that can be seen, in bytes.
    pub memory_floor_bytes: u64,
}

impl Record {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// The reason why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        reading::parse(text, FORMAT, FORMAT_VERSION)
    }

    /// The comparison, from its runs.
    #[must_use]
    pub fn comparison(&self) -> Comparison {
        let has_own = self.runs.iter().any(|run| run.sample.printed.is_some());
        Comparison::new(&self.runs, &metrics(has_own), self.settings.seed)
    }
}

/// What is compared; the first one is what it is about. `has_own`: the program's own number.
#[must_use]
pub fn metrics(has_own: bool) -> Vec<Metric> {
    let own = has_own.then_some(Metric::Printed);
    own.into_iter().chain([Metric::Wall, Metric::Cpu, Metric::Switches, Metric::Memory]).collect()
}

/// A comparison with everything that was measured.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// "spinpark compare".
    pub format: &'static str,
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// "complete", "interrupted" or "failed".
    pub end: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// That of `--against`, if two programs were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<&'a Against>,
    /// The drop-in, if one was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_in: Option<String>,
    /// How it was measured.
    pub settings: Settings<'a>,
    /// Where and when.
    pub environment: &'a Environment,
    /// What else the machine did.
    pub noise: &'a Noise,
    /// What the drop-in saw in the unmeasured run before, if it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The results.
    pub comparison: &'a Comparison,
    /// What makes them weak.
    pub warnings: &'a [Warning],
    /// Every run, in the order in which they were made.
    pub runs: &'a [Run],
}

/// How a comparison was measured.
#[derive(Debug, Serialize)]
pub struct Settings<'a> {
    /// Requested blocks.
    pub rounds: usize,
    /// Decides the order of runs, the padding of the environment, and the intervals.
    pub seed: u64,
    /// What the glibc configurations run; none if two programs were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The expression for the program's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_from_output: Option<&'a str>,
    /// What that number means.
    pub printed: &'a Printed,
    /// Least peak memory that can be seen, in bytes.
    pub memory_floor_bytes: u64,
}

/// A file that cannot be written.
#[derive(Debug, Error)]
#[error("cannot write {}: {}", .path.display(), self.why())]
pub struct Unwritable {
    /// Its name.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
    /// How many bytes were to be written, if that was known by then.
    pub needed: Option<u64>,
}

impl Unwritable {
    /// Why, and what to do, on a line of its own.
    fn why(&self) -> String {
        const USUAL: &str = "Give it as a file in a directory that exists and that you may write to";
        let Unwritten { why, remedy } = Unwritten::of(&self.path, &self.error, self.needed);
        format!("{why}\n{}", remedy.as_deref().unwrap_or(USUAL))
    }
}

/// A file that is known to be writable before anything was measured, and is left alone until there is
/// something to write. Then it is replaced in one step: half a document is never seen, whatever ends the
/// process.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout,
    /// What cannot be replaced is written to: a device, a pipe, a file in a directory that is not ours.
    InPlace(File),
    /// A file that may be there or not.
    Replace(PathBuf),
}

impl Output {
    /// Whether `path` means standard output.
    #[must_use]
    pub fn is_stdout(path: &Path) -> bool {
        path.as_os_str() == "-"
    }

    /// Finds out that `path` can be written, without changing what is in it. `-` is standard output.
    ///
    /// # Errors
    ///
    /// If that is not possible.
    pub fn open(path: &Path) -> Result<Self, Unwritable> {
        let to = if Self::is_stdout(path) { Ok(To::Stdout) } else { To::find(path) };
        let to = to.map_err(|error| Unwritable { path: path.into(), error, needed: None })?;
        Ok(Self { path: path.into(), to })
    }

    /// As it was named.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the contents by `document`.
    ///
    /// # Errors
    ///
    /// If writing fails after all: the disk may be full.
    pub fn write(self, document: &impl Serialize) -> Result<(), Unwritable> {
        self.write_text(serde_json::to_string_pretty(document))
    }

    /// As [`write`](Self::write), but all on one line: for documents that only programs read.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn write_compact(self, document: &impl Serialize) -> Result<(), Unwritable> {
        self.write_text(serde_json::to_string(document))
    }

    /// Replaces the contents by `text`, which is no document.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn write_plain(self, text: &str) -> Result<(), Unwritable> {
        self.write_text(Ok(text.trim_end().to_owned()))
    }

    /// Replaces the contents by `bytes`.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn write_bytes(self, bytes: &[u8]) -> Result<(), Unwritable> {
        let needed = Some(bytes.len() as u64);
        self.to.write(bytes).map_err(|error| Unwritable { path: self.path, error, needed })
    }

    fn write_text(self, text: serde_json::Result<String>) -> Result<(), Unwritable> {
        match text {
            Ok(text) => self.write_bytes(&[text.as_bytes(), b"\n"].concat()),
            Err(error) => Err(Unwritable { path: self.path, error: error.into(), needed: None }),
        }
    }
}

impl To {
    fn find(path: &Path) -> io::Result<Self> {
        // `--json ./program` is a slip, and no program is to be overwritten by it.
        if path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() {
            return Err(io::Error::other("it is a program; write `--json -- PROGRAM` for standard output"));
        }
        let old = if path.exists() { Some(OpenOptions::new().write(true).open(path)?) } else { None };
        // A link stays one.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match old {
            Some(file) if !file.metadata()?.is_file() => Ok(Self::InPlace(file)),
            old => match (Self::try_temporary(&target), old) {
                (Ok(()), _) => Ok(Self::Replace(target)),
                (Err(_), Some(file)) => Ok(Self::InPlace(file)),
                (Err(error), None) => Err(error),
            },
        }
    }

    /// Where the new contents are before they take the place of the old ones.
    fn temporary(target: &Path) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.new", std::process::id()));
        target.with_file_name(name)
    }

    fn try_temporary(target: &Path) -> io::Result<()> {
        let temporary = Self::temporary(target);
        File::create(&temporary)?;
        std::fs::remove_file(temporary)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => match write_to(io::stdout().lock(), bytes) {
                // The reader may have gone (`| head`).
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => written,
            },
            Self::InPlace(file) => {
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                write_to(file, bytes)
            }
            Self::Replace(target) => {
                let temporary = Self::temporary(target);
                let replaced = Self::replace(target, &temporary, bytes);
                if replaced.is_err() {
                    let _ = std::fs::remove_file(&temporary);
                }
                replaced
            }
        }
    }

    fn replace(target: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = File::create(temporary)?;
        if let Ok(old) = target.metadata() {
            file.set_permissions(old.permissions())?;
        }
        write_to(&file, bytes)?;
        std::fs::rename(temporary, target)
    }
}

fn write_to(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::configuration::Configuration;

    #[test]
    fn an_old_result_survives_until_there_is_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        std::fs::write(&path, "old and rather long").unwrap();
        drop(Output::open(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old and rather long");
        Output::open(&path).unwrap().write(&[1]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n  1\n]\n");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no other file");
    }

    #[test]
    fn a_file_is_replaced_with_its_mode_and_a_link_is_not() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("result.json"), directory.path().join("link.json"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let old = File::open(&path).unwrap();
        Output::open(&link).unwrap().write_plain("new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(io::read_to_string(old).unwrap(), "old", "an open descriptor keeps the old contents");
        Output::open(Path::new("/dev/null")).unwrap().write_plain("new").unwrap();
    }

    #[test]
    fn other_versions_are_refused() {
        let run = r#"{"block":0,"order":0,"KEY":"glibc again","padding":3,"wall_s":1.5,"cpu_s":1.0,
            "voluntary_switches":1,"involuntary_switches":2,"peak_bytes":4096}"#;
        let text = format!(
            r#"{{"format":"{FORMAT}","format_version":VERSION,"settings":{{"seed":1,"printed":{{"unit":"",
            "higher_is_better":false}},"memory_floor_bytes":0}},"environment":{{"spinpark":"0.1.0","rustc":"",
            "kernel":"","glibc":"","cpu":"","cpus":2,"virtual_machine":true,"date":""}},"runs":[{run}]}}"#
        );
        let with = |version: &str, key: &str| text.replace("VERSION", version).replace("KEY", key);
        let record = Record::parse(&with("2", "configuration")).unwrap();
        assert_eq!(record.runs[0].plan.configuration, Configuration::GlibcAgain);
        assert!(Record::parse(&with("2", "no such key")).is_err());
        assert!(Record::parse(&with("3", "configuration")).unwrap_err().contains("measure again"));
    }

    #[test]
    fn nothing_is_left_behind_without_a_result() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        drop(Output::open(&path).unwrap());
        assert!(!path.exists());
        assert!(Output::open(&directory.path().join("no/such/result.json")).is_err());
        assert!(Output::open(&std::env::current_exe().unwrap()).is_err());
    }
}
