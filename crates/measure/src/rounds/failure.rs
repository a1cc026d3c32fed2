//! How measurements end. Runs that yield no sample, in words: under which configuration, what happened, and
//! the end of the output.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::process::ProcessError;
use crate::process::ended::Tail;
use crate::rounds::configuration::Configuration;
use crate::rounds::metric::NoNumber;

/// A run that yields no sample.
#[derive(Debug, Error)]
pub enum RunError {
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// The input file cannot be read.
    #[error("cannot read the input file {}: {}", .0.display(), .1)]
    Input(PathBuf, io::Error),
    /// A command around the runs failed.
    #[error(
        "the command of {option}, `{command}`, {what}{tail}\nIt must succeed: run it by hand with `sh -c`; append `|| true` if its \
         failure does not matter"
    )]
    Around {
        /// "--setup", "--prepare" or "--cleanup".
        option: &'static str,
        /// What was given.
        command: String,
        /// What happened.
        what: String,
        /// The end of its output.
        tail: Tail,
    },
    /// The process did not run to its end.
    #[error("`{configuration}`: {error}{tail}")]
    Process {
        /// Under which configuration.
        configuration: Configuration,
        /// What happened.
        error: ProcessError,
        /// The end of its output.
        tail: Tail,
    },
    /// The process ended badly.
    #[error("the program {ended} {}{tail}\n{}", configuration_in_words(*.configuration), advice(*.configuration))]
    Failed {
        /// Under which configuration.
        configuration: Configuration,
        /// How.
        ended: String,
        /// The end of its output.
        tail: Tail,
    },
    /// The process ended well but did not print its number.
    #[error("{reason} (run of configuration `{configuration}`){tail}")]
    NoNumber {
        /// Under which configuration.
        configuration: Configuration,
        /// What is missing.
        reason: NoNumber,
        /// The end of its output.
        tail: Tail,
    },
    /// A worker process did not report.
    #[error("{cell}, configuration `{configuration}`: {what}{tail}")]
    Worker {
        /// Which workload at how many threads.
        cell: String,
        /// Its name.
        configuration: String,
        /// What happened.
        what: String,
        /// The end of its output.
        tail: Tail,
    },
}

/// How a measurement ended: why there are no more runs.
#[derive(Debug)]
pub enum End {
    /// All blocks were run.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// A run failed.
    Failed(RunError),
}

impl End {
    /// The word for data files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
        }
    }

    pub(crate) fn from_error(error: RunError) -> Self {
        if matches!(error, RunError::Interrupted) { Self::Interrupted } else { Self::Failed(error) }
    }
}

/// What to do about a program that ends badly.
fn advice(configuration: Configuration) -> &'static str {
    match configuration {
        Configuration::Spinpark => {
            "If it does so only on spinpark's locks (compare `SPINPARK_DISABLE=1 spinpark run -- …`), that is a bug: \
             please report it. If this is how it always ends, use --ignore-failure"
        }
        Configuration::Before | Configuration::After | Configuration::BeforeAgain => {
            "Make it succeed by itself first, or use --ignore-failure if this is how it always ends. If it fails \
             only with --locks spinpark, that is a bug: please report it"
        }
        Configuration::Glibc | Configuration::GlibcAgain => {
            "It does so without spinpark's locks: make it succeed by itself first, or use --ignore-failure if this is \
             how it always ends"
        }
    }
}

/// A configuration as part of a sentence.
fn configuration_in_words(configuration: Configuration) -> &'static str {
    match configuration {
        Configuration::Glibc | Configuration::GlibcAgain => "on glibc's locks (configuration `glibc`)",
        Configuration::Spinpark => "on spinpark's locks (configuration `spinpark`)",
        Configuration::Before | Configuration::BeforeAgain => "as configuration `before` (--against)",
        Configuration::After => "as configuration `after`",
    }
}
