//! `spinpark __demo`: the program that `spinpark compare` runs if it is given none.

use std::process::ExitCode;

use spinpark_bench::demo;

use crate::cli::Demo;

/// Runs the workload and prints its number.
pub(crate) fn run(demo: &Demo) -> anyhow::Result<ExitCode> {
    let done = demo::run(demo.operations)?;
    println!("{} operations, all accounted for", done.operations);
    println!("{}: {:.0}", demo::LABEL, done.per_second());
    Ok(ExitCode::SUCCESS)
}
