//! The command under test.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;

/// The command, with a stand-in for the drop-in.
pub(crate) fn spinpark<const N: usize>(args: [&str; N]) -> Command {
    spinpark_fixtures::command::command(cargo_bin!("spinpark"), args)
}
