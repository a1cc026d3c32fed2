//! The harness of the drop-in's tests: it builds the drop-in, compiles C programs, and runs programs with and
//! without it.
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
//! A program that hangs is a failed test: every run has a timeout, after which the whole process group is
//! killed. Before that, if `gdb` is installed, the stacks of all its threads are put into the failure's
//! message.

mod compile;
mod dropin;
pub mod profiled;
pub mod programs;
pub mod recordings;
mod run;

pub use compile::{compile_c, scratch_dir};
pub use dropin::{dropin, profiler, workspace_root};
pub use run::{Configuration, ProgramResult, Run, Running};
pub use spinpark_documents::installed::find_program;
