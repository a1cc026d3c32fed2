//! Where the verdict of a gate goes: a sentence, JSON, Markdown, JUnit, annotations.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;
use spinpark_measure::report::gate::{Document, Judged, Verdict};
use spinpark_measure::report::json::{Output, Unwritable};

use crate::cli::GateOutputs;
use crate::exit;
use crate::files::open;
use crate::say::Say;

/// All of them, known to be writable.
pub(super) struct Outputs {
    pub(super) say: Say,
    is_strict: bool,
    json: Option<Output>,
    markdown: Option<Markdown>,
    junit: Option<Output>,
}

enum Markdown {
    Stdout,
    /// What other steps wrote to a job's summary stays.
    Append(PathBuf, File),
}

impl Outputs {
    /// Opens them before anything is measured.
    ///
    /// # Errors
    ///
    /// If one cannot be written, or two are standard output.
    pub(super) fn open(wanted: &GateOutputs) -> anyhow::Result<Self> {
        let GateOutputs { strict, json, markdown, junit } = wanted;
        let on_stdout = [json, markdown, junit].into_iter().flatten().filter(|path| Output::is_stdout(path));
        if on_stdout.count() > 1 {
            bail!(
                "two of --json, --markdown and --junit would write to standard output\nName a file for all but one of them"
            );
        }
        let append = |path: &PathBuf| match Output::is_stdout(path) {
            true => Ok(Markdown::Stdout),
            false => match OpenOptions::new().append(true).create(true).open(path) {
                Ok(file) => Ok(Markdown::Append(path.clone(), file)),
                Err(error) => Err(Unwritable { path: path.clone(), error, needed: None }),
            },
        };
        Ok(Self {
            say: Say::apart_from(&[json, markdown, junit]),
            is_strict: *strict,
            json: open(json)?,
            markdown: markdown.as_ref().map(append).transpose()?,
            junit: open(junit)?,
        })
    }

    /// Says the sentence and what `print` prints after it, and writes the files; the exit code of the verdict.
    ///
    /// # Errors
    ///
    /// If a file cannot be written after all. The others are.
    pub(super) fn report(
        self,
        judged: &Judged,
        measurement: &impl Serialize,
        print: impl FnOnce(Say),
    ) -> anyhow::Result<ExitCode> {
        let Self { say, is_strict, json, markdown, junit } = self;
        let code = match judged.verdict {
            Verdict::Passed => 0,
            Verdict::Failed => exit::FAILED,
            Verdict::Undecided if is_strict => exit::FAILED,
            Verdict::Undecided => exit::UNDECIDED,
        };
        let is_red = code == exit::FAILED;
        say.wrapped(&judged.sentence, 0);
        print(say);
        judged.notes.iter().for_each(|note| say.wrapped(note, 2));
        if env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
            say.line(judged.annotation(is_red));
        }
        let document = Document::new(judged, code, measurement);
        let written = [
            json.map(|file| file.write(&document)),
            markdown.map(|markdown| markdown.write(&judged.markdown(is_red))),
            junit.map(|file| file.write_plain(&judged.junit(is_red))),
        ];
        written.into_iter().flatten().collect::<Result<Vec<()>, Unwritable>>()?;
        Ok(code.into())
    }
}

impl Markdown {
    fn write(self, text: &str) -> Result<(), Unwritable> {
        match self {
            Self::Stdout => {
                Say { on_stderr: false }.line(text.trim_end());
                Ok(())
            }
            Self::Append(path, mut file) => {
                let needed = Some(text.len() as u64);
                file.write_all(text.as_bytes()).map_err(|error| Unwritable { path, error, needed })
            }
        }
    }
}
