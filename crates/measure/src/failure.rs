//! How measurements end. Runs that yield no sample, in words: under which configuration, what happened, and
//! the end of the output.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use thiserror::Error;

use crate::configuration::Configuration;
use crate::metric::NoNumber;
use crate::process::ProcessError;

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

/// More of a line is no help.
const LONGEST: usize = 400;

/// The last lines of a program's output, for an error message.
#[derive(Debug)]
pub struct Tail(String);

impl Tail {
    /// The last ten lines of `output`.
    #[must_use]
    pub fn of(output: &str) -> Self {
        const LINES: usize = 10;
        let lines: Vec<&str> = output.trim_end().lines().collect();
        Self(lines[lines.len().saturating_sub(LINES)..].join("\n"))
    }
}

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return write!(f, "\nIt printed nothing.");
        }
        write!(f, "\nThe end of its output:")?;
        self.0
            .lines()
            .try_for_each(|line| write!(f, "\n  | {}", line.chars().take(LONGEST).collect::<String>()))
    }
}

/// "exited with status 3", "was killed by SIGSEGV (segmentation fault)".
#[must_use]
pub fn in_words(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else {
        let code = status.code().unwrap_or_default();
        return format!("exited with status {code}");
    };
    let name = signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
    let core = if status.core_dumped() { ", core dumped" } else { "" };
    format!("was killed by {name}{core}")
}

/// The name of a signal that kills programs.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL (illegal instruction)",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT (abort)",
        libc::SIGBUS => "SIGBUS (bus error)",
        libc::SIGFPE => "SIGFPE (arithmetic error)",
        libc::SIGKILL => "SIGKILL (perhaps out of memory)",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV (segmentation fault)",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU (CPU time limit)",
        libc::SIGXFSZ => "SIGXFSZ (file size limit)",
        libc::SIGSYS => "SIGSYS (system call not allowed)",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_in_words() {
        assert_eq!(in_words(ExitStatus::from_raw(3 << 8)), "exited with status 3");
        assert_eq!(
            in_words(ExitStatus::from_raw(libc::SIGSEGV)),
            "was killed by SIGSEGV (segmentation fault)"
        );
        assert_eq!(
            in_words(ExitStatus::from_raw(libc::SIGABRT | 0x80)),
            "was killed by SIGABRT (abort), core dumped"
        );
        assert_eq!(in_words(ExitStatus::from_raw(40)), "was killed by signal 40");
    }

    #[test]
    fn the_tail_is_ten_lines() {
        let output: String = (0..20).map(|line| format!("line {line}\n")).collect();
        let tail = Tail::of(&output).to_string();
        assert!(tail.contains("| line 10\n") && tail.ends_with("| line 19") && !tail.contains("line 9\n"));
        assert_eq!(Tail::of("").to_string(), "\nIt printed nothing.");
    }
}
