//! `spinpark-lab sim`: locks on simulated machines.

mod many;
mod merge;
mod one;
mod replay;
mod sweep;
mod swept;
mod tables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use spinpark_documents::registry::tables as documents_tables;
use spinpark_experiments::lists;
use spinpark_measure::report::Style;
use spinpark_measure::report::json::Output;
use spinpark_sim::machine::Machine;

use crate::cli::{ShowMachine, Sim};
use spinpark_cli::say::Say;
use spinpark_cli::session::on_interrupt;

/// Carries out a subcommand.
pub(crate) fn run(sim: &Sim) -> anyhow::Result<ExitCode> {
    match sim {
        Sim::List => {
            Say { on_stderr: false }.line(list(Style::of_stdout()).trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Sim::Machine(wanted) => show_machine(wanted),
        Sim::Run(wanted) => one::run(wanted),
        Sim::Sweep(wanted) => sweep::run(wanted),
        Sim::Merge(wanted) => merge::run(wanted),
        Sim::Replay(wanted) => replay::run(wanted),
        Sim::Tables(wanted) => tables::run(wanted),
        Sim::Calibrate(calibrate) => super::calibrate::run(calibrate),
        Sim::Native(native) => super::native::run(native),
    }
}

fn list(style: Style) -> String {
    let tables: Vec<_> = documents_tables().iter().map(|table| (table.name, table.about)).collect();
    lists::everything(&tables, style)
}

fn show_machine(wanted: &ShowMachine) -> anyhow::Result<ExitCode> {
    let description = Machine::describe(&wanted.machine)?;
    match &wanted.json {
        Some(path) => Output::open(path)?.write(&description)?,
        None => {
            Say { on_stderr: false }.line(lists::machine(&description, Style::of_stdout()).trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Each option has a file of its own, and one of them at most standard output: else one would overwrite the
/// other, or both mix.
pub(in crate::commands) fn distinct(outputs: &[(&str, &Option<PathBuf>)]) -> anyhow::Result<()> {
    let given: Vec<_> = outputs.iter().filter_map(|(name, path)| Some((name, path.as_deref()?))).collect();
    let place = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    for (number, (name, path)) in given.iter().enumerate() {
        let Some((first, _)) = given[..number].iter().find(|(_, other)| place(other) == place(path)) else {
            continue;
        };
        if Output::is_stdout(path) {
            bail!("{first} and {name} cannot both go to standard output\nGive one of them a file");
        }
        // A device takes everything, and keeps nothing: /dev/null.
        if path.is_file() || !path.exists() {
            bail!("{first} and {name} are the same file, {}\nGive each a file of its own", path.display());
        }
    }
    Ok(())
}

/// From here on, Ctrl-C ends the simulations instead of the process.
fn stop_on_ctrl_c() -> anyhow::Result<()> {
    on_interrupt(spinpark_sim::stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_every_terminal() {
        for width in 80..160 {
            for line in list(Style { width, ..Style::PLAIN }).lines() {
                assert!(line.chars().count() <= width.into(), "{width}: {line}");
            }
        }
    }
}
