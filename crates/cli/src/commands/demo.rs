//! `spinpark __demo`: the program that `spinpark compare` runs if it is given none.

use std::process::ExitCode;

use spinpark_demo::server as demo;

use crate::cli::Demo;
use crate::say::Say;

/// Runs the workload and prints its number.
pub(crate) fn run(demo: &Demo) -> anyhow::Result<ExitCode> {
    let done = demo::run(demo.operations)?;
    Say { on_stderr: false }.line(format_args!("{} operations, all accounted for", done.operations));
    Say { on_stderr: false }.line(format_args!("{}: {:.0}", demo::LABEL, done.per_second()));
    Ok(ExitCode::SUCCESS)
}
