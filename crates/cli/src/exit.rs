//! Exit codes, as `spinpark --help` documents them.

use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use rustix::process::DumpableBehavior;
use spinpark_measure::process::executable::Blocker;
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::measure::End;

use crate::say;

/// The program under test failed, or did not print its number; or a requested bound does not hold.
pub const FAILED: u8 = 1;
/// The request is invalid. clap exits with the same code.
pub const BAD_INPUT: u8 = 2;
/// `gate`: the measurement does not decide whether the bound holds.
pub const UNDECIDED: u8 = 3;
/// Ctrl-C, as a shell reports it.
pub const INTERRUPTED: u8 = 130;

/// `run` stands in for the program, so its own failures have the codes of env(1) and nohup(1).
const RUN_FAILED: u8 = 125;
const RUN_NOT_EXECUTABLE: u8 = 126;
const RUN_NOT_FOUND: u8 = 127;

/// How a command ends.
#[derive(Debug, Clone, Copy)]
pub enum Exit {
    /// With this code.
    Code(ExitCode),
    /// By this signal, as the program ended.
    Signal(i32),
}

impl From<ExitCode> for Exit {
    fn from(code: ExitCode) -> Self {
        Self::Code(code)
    }
}

impl From<ExitStatus> for Exit {
    /// As the program did. A shell and a service manager tell a signal from a status.
    fn from(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Self::Signal(signal),
            None => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
                .into(),
        }
    }
}

impl Exit {
    /// The exit code; if it is a signal, this process ends here.
    pub fn code(self) -> ExitCode {
        let signal = match self {
            Self::Code(code) => return code,
            Self::Signal(signal) => signal,
        };
        // The program has left its core dump.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
        // SAFETY: the default is a valid disposition.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        let mut only = MaybeUninit::uninit();
        // SAFETY: the call initialises the set.
        unsafe { libc::sigemptyset(only.as_mut_ptr()) };
        // SAFETY: initialised above.
        unsafe { libc::sigaddset(only.as_mut_ptr(), signal) };
        // SAFETY: the set is initialised; no old mask is wanted.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, only.as_ptr(), std::ptr::null_mut()) };
        // SAFETY: no handler runs.
        unsafe { libc::raise(signal) };
        // The code of a shell, in case this signal does not end processes.
        ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }
}

/// Ends a command: its exit code; an error is printed, and `code_of` has its code.
pub fn finish(result: anyhow::Result<Exit>, code_of: impl FnOnce(&anyhow::Error) -> ExitCode) -> ExitCode {
    match result.and_then(|exit| say::check().map(|()| exit)) {
        Ok(exit) => exit.code(),
        Err(error) => {
            say::error(&in_full(&error));
            code_of(&error)
        }
    }
}

/// The exit code for an error.
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref() {
        Some(RunError::Interrupted) => ExitCode::from(INTERRUPTED),
        Some(_) => ExitCode::from(FAILED),
        None => ExitCode::from(BAD_INPUT),
    }
}

/// An error with its causes, each once: some say those below them themselves.
pub fn in_full(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| match cause.to_string() {
        cause if said.is_empty() => cause,
        cause if said.contains(&cause) => said,
        cause => format!("{said}: {cause}"),
    })
}

/// The exit code for the end of a measurement; its error, if it failed.
pub fn code_of_end(end: End) -> anyhow::Result<ExitCode> {
    match end {
        End::Complete => Ok(ExitCode::SUCCESS),
        End::Interrupted => Ok(ExitCode::from(INTERRUPTED)),
        End::Failed(error) => Err(error.into()),
    }
}

/// The exit code for an error of `spinpark run`.
pub fn code_of_run(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref() {
        Some(Blocker::NotFound { .. }) => RUN_NOT_FOUND,
        Some(Blocker::NotExecutable(_) | Blocker::Directory(_) | Blocker::NotAProgram(_)) => {
            RUN_NOT_EXECUTABLE
        }
        _ => RUN_FAILED,
    })
}

/// How a batch of runs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEnd {
    /// All are done.
    Complete,
    /// The user stopped them.
    Interrupted,
    /// One failed, or there was no memory for the rest.
    Failed,
}

impl BatchEnd {
    /// The word for data files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }

    /// The exit code, if something `failed` or not.
    pub fn code(self, failed: bool) -> ExitCode {
        match (self, failed) {
            (Self::Interrupted, _) => ExitCode::from(INTERRUPTED),
            (Self::Failed, _) | (Self::Complete, true) => ExitCode::from(FAILED),
            (Self::Complete, false) => ExitCode::SUCCESS,
        }
    }
}
