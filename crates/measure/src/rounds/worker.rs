//! Worker processes: their reports, or a message with the reason why there is none.

use std::process::Command;
use std::time::Duration;

use crate::process::ended::{Tail, in_words};
use crate::process::{Interrupt, ProcessError, run};
use crate::rounds::failure::RunError;

/// Which run a worker makes: what an error says.
#[derive(Debug)]
pub struct Worker {
    /// Which workload at how many threads.
    pub cell: String,
    /// The name of the configuration.
    pub configuration: String,
}

impl Worker {
    /// What becomes of the run if `what` happened and `output` was printed.
    #[must_use]
    pub fn fails(&self, what: String, output: &str) -> RunError {
        RunError::Worker {
            cell: self.cell.clone(),
            configuration: self.configuration.clone(),
            what,
            tail: Tail::of(output),
        }
    }

    /// Runs `command` to its end: what it printed. One that takes longer than `patience` hangs, and is ended.
    ///
    /// # Errors
    ///
    /// If it is interrupted, or does not end well. It and its children are gone in each case.
    pub fn run(
        &self,
        command: &mut Command,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<String, RunError> {
        let finished = match run(command, Some(patience), interrupt) {
            Ok(finished) => finished,
            Err(ProcessError::Interrupted) => return Err(RunError::Interrupted),
            Err(ProcessError::TimedOut { after, output }) => {
                let seconds = after.as_secs();
                let what = format!("the worker hangs: it still ran after {seconds} s and was ended");
                return Err(self.fails(what, &output));
            }
            Err(error) => return Err(self.fails(error.to_string(), "")),
        };
        if !finished.status.success() {
            return Err(self.fails(format!("the worker {}", in_words(finished.status)), &finished.output));
        }
        Ok(finished.output)
    }

    /// Reads a report from what the worker has printed.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn report<R, E: std::fmt::Display>(
        &self,
        output: &str,
        parse: impl FnOnce(&str) -> Result<R, E>,
    ) -> Result<R, RunError> {
        parse(output)
            .map_err(|error| self.fails(format!("the worker's report cannot be read: {error}"), output))
    }
}
