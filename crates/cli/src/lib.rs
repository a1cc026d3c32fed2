//! The command `spinpark`, and what the laboratory's command shares with it.
//!
//! | what both commands have | where |
//! |---|---|
//! | parts of a command line: formats, numbers, units; help, pages, completions, tips | [`mod@line`] |
//! | what people read; progress; exit codes | [`say`], [`progress`], [`exit`] |
//! | a measurement in progress: Ctrl-C, orphans, a seed | [`session`] |
//! | files that a user names; the command itself; the libraries that it carries | [`files`], [`own`], [`libraries`] |
//! | the product's command line, for the book; an earlier result of `compare` | [`command_line`], [`show_comparison`] |
//!
//! The rest is the product's: `cli` has its names, help and examples, `commands` a file a command.

#[macro_use]
pub mod say;

mod cli;
mod commands;
pub mod exit;
pub mod files;
pub mod libraries;
pub mod line;
pub mod own;
mod policy;
pub mod progress;
pub mod session;

use std::process::ExitCode;

pub use crate::commands::compare::show as show_comparison;

use crate::cli::{Cli, Command, Compare, Report};
use crate::exit::Exit;

/// The command line as its users know it: for completions, manual pages and the book.
#[must_use]
pub fn command_line() -> clap::Command {
    cli::public()
}

/// The command `spinpark`: would better locks make this program faster?
#[must_use]
pub fn main() -> ExitCode {
    own::is("spinpark");
    let mut cli: Cli = line::tips::parse(cli::command(), cli::hint);
    if let Err(conflict) = cli.apply_formats() {
        line::tips::conflict(&mut cli::command(), conflict);
    }
    let command = cli.command.unwrap_or_else(|| Command::Compare(Box::new(Compare::demonstration())));
    files::find_temporary_directory();
    let is_run = matches!(command, Command::Run(_));
    let result: anyhow::Result<Exit> = match command {
        Command::Profile(profile) => commands::profile::run(&profile),
        Command::Record(record) => commands::profile::record_dormant(&record).map(Exit::from),
        Command::Top(top) => commands::profile::top::run(&top),
        Command::Export(export) => commands::export::run(&export).map(Exit::from),
        Command::Why(why) => commands::why::run(&why).map(Exit::from),
        Command::Run(run) => commands::run::run(&run).map(Exit::from),
        Command::Compare(compare) => commands::compare::run(&compare).map(Exit::from),
        Command::Tune(tune) => commands::tune::run(&tune).map(Exit::from),
        Command::Whatif(whatif) => commands::whatif::run(&whatif).map(Exit::from),
        Command::Gate(gate) => commands::gate::run(&gate).map(Exit::from),
        Command::Report(report) => report_of(&report).map(Exit::from),
        Command::Diff(diff) => commands::profile::diff(&diff).map(Exit::from),
        Command::ProfileCost => commands::profile::calibrate().map(Exit::from),
        Command::Libraries(libraries) => commands::libraries::run(&libraries).map(Exit::from),
        Command::Completions(wanted) => {
            line::documentation::completions(&wanted, command_line()).map(Exit::from)
        }
        Command::Man(man) => line::documentation::man(&man, command_line()).map(Exit::from),
        Command::Demo(demo) => commands::demo::run(&demo).map(Exit::from),
    };
    let code_of = if is_run { exit::code_of_run } else { exit::code_of };
    exit::finish(result, code_of)
}

/// What a path is, `report` finds out.
fn report_of(report: &Report) -> anyhow::Result<ExitCode> {
    if let Some(shown) = commands::why::of_report(report)? {
        return Ok(shown);
    }
    commands::compare::earlier(report)?.map_or_else(|| commands::profile::report(report), Ok)
}
