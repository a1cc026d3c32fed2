//! Real programs on both configurations: what the tests in `tests/it/programs.rs` share.
//!
//! ```no_run
//! use spinpark_testkit::programs::{PIGZ, prove, same_results, turn};
//!
//! let Some(_turn) = turn(&[PIGZ]) else { return };
//! same_results(|configuration| prove(PIGZ.run().args(["-p4", "-c"]).input("a text"), configuration).stdout);
//! ```
//!
//! Nothing here uses a fixed port or a file outside a directory of its own, which goes away with its owner,
//! as does every process.

mod data;
mod mariadb;
mod memcached;
mod package;
mod parsing;
mod service;

pub use data::{Digest, text, video};
pub use mariadb::MariaDb;
pub use memcached::Memcached;
pub use package::*;
pub use parsing::{ends_with_ok, field, lines_with};
pub use service::Service;

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::{Configuration, ProgramResult, Run};

/// Keeps the other loads from starting until it is dropped.
pub type Turn = MutexGuard<'static, ()>;

/// If all `programs` are installed, waits for the other loads to end. Otherwise see [`installed`].
pub fn turn(programs: &[Program]) -> Option<Turn> {
    static TURN: Mutex<()> = Mutex::new(());
    // A load that failed leaves nothing behind that could spoil the next one.
    installed(programs).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs a load with and without the drop-in and asserts that it returns the same.
///
/// # Panics
/// If it does not.
#[track_caller]
pub fn same_results<R: PartialEq + Debug>(load: impl FnMut(Configuration) -> R) {
    let [glibc, spinpark] = Configuration::BOTH.map(load);
    assert_eq!(glibc, spinpark, "left: without the drop-in, right: with it");
}

/// Runs a program to its end on `configuration`; asserts that it exits with status 0, in time, and that it
/// really had the locks of that configuration.
///
/// # Panics
/// If not.
#[track_caller]
pub fn prove(run: Run, configuration: Configuration) -> ProgramResult {
    let outcome = verbose(run, configuration).succeed();
    assert_configuration(&outcome);
    outcome
}

/// Makes the drop-in announce itself, for [`assert_configuration`].
pub(crate) fn verbose(run: Run, configuration: Configuration) -> Run {
    run.configuration(configuration).env("SPINPARK_VERBOSE", "1")
}

/// Asserts that the drop-in announced itself if, and only if, the program was to run on it.
#[track_caller]
pub(crate) fn assert_configuration(outcome: &ProgramResult) {
    let active = outcome.stderr_text().lines().any(|line| line.starts_with("spinpark: "));
    assert_eq!(
        active,
        outcome.configuration != Configuration::Glibc,
        "whether the drop-in announced itself\n{}",
        outcome.report()
    );
    // Shown for a test that fails, and by `cargo test -- --nocapture`.
    eprintln!("{}", outcome.report().lines().take(2).collect::<Vec<_>>().join(": "));
}

/// An empty directory whose path is short enough for the sockets in it: `sun_path` holds 108 bytes.
pub fn private_dir() -> TempDir {
    let base = std::env::temp_dir();
    let base = if base.as_os_str().len() <= 60 { base } else { "/tmp".into() };
    tempfile::Builder::new()
        .prefix("sp-")
        .tempdir_in(&base)
        .unwrap_or_else(|error| panic!("{}: {error}; set TMPDIR", base.display()))
}
