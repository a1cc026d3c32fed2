//! Whether a program can run on our locks at all, found out before anything is measured.
//!
//! `LD_PRELOAD` is a request to glibc's dynamic loader. A program that does not start through that loader, or
//! that the loader must not trust, ignores it silently; a comparison would then report "no change".

pub mod elf;
pub mod preload;
pub mod preload_list;
pub mod privilege;
pub mod program;
pub mod usage;

pub use self::elf::{Elf, Machine};
pub use self::preload::{DropIn, DropInError, Library};
pub use self::program::{Blocker, Executable, locate};
