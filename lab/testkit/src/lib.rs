//! The drop-in and the profiler under programs whose behaviour is known, and under real ones.
//!
//! ```no_run
//! use spinpark_testkit::{Configuration, Run, compile_c};
//!
//! let program = compile_c("posix/mutex_errors.c", &[]);
//! for configuration in Configuration::ALL {
//!     Run::new(&program).configuration(configuration).succeed();
//! }
//! ```
//!
//! How they are compiled and run is in `spinpark-fixtures`, which the product's tests have, too; here are the
//! programs, and servers that are [installed](programs).

pub mod programs;

use std::path::{Path, PathBuf};

pub use spinpark_documents::installed::find_program;
pub use spinpark_fixtures::{
    Configuration, ProgramResult, Run, Running, both_configurations, dropin, profiled, profiler, recordings,
    scratch_dir, workspace_root,
};

/// Compiles a program, by its path in this crate, or an absolute one: see [`spinpark_fixtures::compile`].
///
/// # Panics
/// If the compiler is missing or unhappy.
pub fn compile_c(source: impl AsRef<Path>, flags: &[&str]) -> PathBuf {
    spinpark_fixtures::compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join(source), flags)
}
