//! What the drop-in reports about a run: which processes loaded it, and which of them ever took a lock.
//!
//! If `SPINPARK_REPORT` names a file, the drop-in appends `loaded <pid>` when a process starts, and `used
//! <pid>` at the first lock call of that process; before that `off <pid>`, if it left all to glibc because of
//! a race detector, or `disabled <pid>`, because of `SPINPARK_DISABLE`. This is the only reliable answer to
//! "does it use pthread locks": symbol tables know nothing about libraries that are loaded later, or about a
//! child process.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use thiserror::Error;

use crate::process::ended::Tail;

/// Processes of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// How many loaded the drop-in.
    pub loaded: usize,
    /// How many called a lock function.
    pub used: usize,
    /// How many of these left all to glibc: a race detector would not have seen the drop-in's locks.
    pub off: usize,
    /// How many of these passed every call to glibc, as configured.
    #[serde(skip)]
    pub disabled: usize,
}

/// Nothing that could differ.
#[derive(Debug, Error)]
pub enum NoUse {
    /// The loader ignored us.
    #[error(
        "the drop-in was not loaded into the program: it, or the programs that it starts, ignores LD_PRELOAD\nThere is nothing to compare. Statically linked and setuid programs do so; also see that nothing resets the environment{0}"
    )]
    NotLoaded(Tail),
    /// It was loaded, but the program called none of its functions.
    #[error(
        "the program uses no pthread locks (no mutex, rwlock or condition variable was touched in the whole run)\nThere is nothing to compare. Programs with locks of their own do not change: Go, Rust's std::sync, Java's synchronized; for Rust, use the spinpark crate"
    )]
    NotUsed,
    /// It switched itself off.
    #[error(
        "the drop-in was off: the program runs under a race detector (ThreadSanitizer, Helgrind or DRD), which cannot see its locks\nThere is nothing to compare. Measure a build without it, or set SPINPARK_FORCE=1 and ignore what it reports"
    )]
    Off,
    /// The program switched it off.
    #[error(
        "the drop-in was off: something sets SPINPARK_DISABLE=1 on the way to the program, perhaps a script\nThere is nothing to compare. Remove the variable there"
    )]
    Disabled,
    /// Our locks are in the program whatever is done.
    #[error(
        "the program runs on spinpark's locks by itself, also with SPINPARK_DISABLE=1: something resets the environment on the way to it, or its libspinpark_preload.so is older than this command\nThere is no baseline on glibc's locks. Compare a build that is not linked with -lspinpark_preload and sets no LD_PRELOAD"
    )]
    NoBaseline,
}

impl Usage {
    /// Reads the report file of a run.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn read(report: &Path) -> io::Result<Self> {
        Ok(Self::parse(&fs::read_to_string(report)?))
    }

    fn parse(text: &str) -> Self {
        let of = |word: &str| -> Vec<&str> {
            text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).collect()
        };
        let used = of("used");
        let those = |word| {
            let processes = of(word);
            used.iter().filter(|process| processes.contains(process)).count()
        };
        Self { loaded: of("loaded").len(), used: used.len(), off: those("off"), disabled: those("disabled") }
    }

    /// Whether a process ran on the drop-in's locks.
    #[must_use]
    pub fn has_our_locks(self) -> bool {
        self.used > self.off + self.disabled
    }

    /// Checks that there is something to compare. `output` is what the run printed.
    ///
    /// # Errors
    ///
    /// If not.
    pub fn check(self, output: &str) -> Result<(), NoUse> {
        match self {
            Self { loaded: 0, .. } => Err(NoUse::NotLoaded(Tail::of(output))),
            Self { used: 0, .. } => Err(NoUse::NotUsed),
            Self { used, off, .. } if used == off => Err(NoUse::Off),
            Self { disabled, .. } if !self.has_our_locks() && disabled > 0 => Err(NoUse::Disabled),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_processes() {
        let usage = Usage::parse("loaded 10\nloaded 11\nused 11\n");
        assert_eq!(usage, Usage { loaded: 2, used: 1, off: 0, disabled: 0 });
        assert!(usage.check("").is_ok());
        let usage = Usage::parse("loaded 10\noff 10\nloaded 11\nused 11\nused 10\n");
        assert_eq!(usage, Usage { loaded: 2, used: 2, off: 1, disabled: 0 });
        assert!(usage.check("").is_ok());
    }

    #[test]
    fn whose_locks_a_program_had() {
        assert!(Usage::parse("loaded 1\nused 1\n").has_our_locks());
        assert!(Usage::parse("loaded 1\ndisabled 1\nused 1\nloaded 2\nused 2\n").has_our_locks());
        for glibcs in ["", "loaded 1\n", "loaded 1\ndisabled 1\nused 1\n", "loaded 1\noff 1\nused 1\n"] {
            assert!(!Usage::parse(glibcs).has_our_locks(), "{glibcs}");
        }
        let disabled = Usage::parse("loaded 1\ndisabled 1\nused 1\n");
        assert!(matches!(disabled.check(""), Err(NoUse::Disabled)));
    }

    #[test]
    fn nothing_to_compare() {
        assert!(matches!(Usage::parse("").check(""), Err(NoUse::NotLoaded(_))));
        assert!(matches!(Usage::parse("loaded 1\n").check(""), Err(NoUse::NotUsed)));
        assert!(matches!(Usage::parse("loaded 1\noff 1\n").check(""), Err(NoUse::NotUsed)));
        assert!(matches!(Usage::parse("loaded 1\noff 1\nused 1\n").check(""), Err(NoUse::Off)));
    }
}
