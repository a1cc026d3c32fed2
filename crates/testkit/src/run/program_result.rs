//! How a run went, and how that is told.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use super::Configuration;

/// How a run went.
#[derive(Debug)]
pub struct ProgramResult {
    /// Whose locks it ran on.
    pub configuration: Configuration,
    /// Exit code or signal; `SIGKILL` if it hung.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: Vec<u8>,
    /// From start to end.
    pub elapsed: Duration,
    pub(super) hang: Option<Hang>,
    pub(super) command: String,
}

#[derive(Debug)]
pub(super) struct Hang {
    pub(super) after: Duration,
    pub(super) stacks: String,
}

impl ProgramResult {
    /// Whether it exited with status 0, in time.
    pub fn success(&self) -> bool {
        self.status.success() && !self.timed_out()
    }

    /// Whether it had to be killed because its time was over.
    pub fn timed_out(&self) -> bool {
        self.hang.is_some()
    }

    /// Standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Returns itself if the program exited with status 0, in time.
    ///
    /// # Panics
    /// If not, with [`ProgramResult::report`].
    #[track_caller]
    pub fn assert_success(self) -> ProgramResult {
        assert!(self.success(), "{}", self.report());
        self
    }

    /// Command, configuration, end, output and, after a hang, stacks, for a human reader.
    pub fn report(&self) -> String {
        let end = match (&self.hang, self.status.signal()) {
            (Some(hang), _) => format!("HUNG: killed after {:?}", hang.after),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => self.status.to_string(),
        };
        let stacks = self.hang.as_ref().map_or("", |hang| &hang.stacks);
        format!(
            "[{}] {}\n{end}, {:.1?} after its start\n--- stdout\n{}\n--- stderr\n{}\n{stacks}",
            self.configuration,
            self.command,
            self.elapsed,
            tail(&self.stdout_text()),
            tail(&self.stderr_text()),
        )
    }
}

/// The end of a text that may be very long; the end is where programs say why they stop.
pub(super) fn tail(text: &str) -> &str {
    const LIMIT: usize = 16 * 1024;
    let start = text.ceil_char_boundary(text.len().saturating_sub(LIMIT));
    &text[start..]
}
