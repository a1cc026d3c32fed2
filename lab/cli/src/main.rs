//! The command `spinpark-lab`: which lock on which machine, and the four documents again.

#[macro_use(note)]
extern crate spinpark_cli;

mod cells;
mod cli;
mod commands;

use std::process::ExitCode;

use spinpark_cli::line::{documentation, tips};
use spinpark_cli::{exit, files, own};

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    own::is(cli::NAME);
    let mut cli: Cli = tips::parse(cli::command(), cli::hint);
    if let Err(conflict) = cli.command.apply_formats() {
        tips::conflict(&mut cli::command(), conflict);
    }
    files::find_temporary_directory();
    let result: anyhow::Result<ExitCode> = match cli.command {
        Command::Bench(bench) => commands::bench::run(&bench, commands::show::run),
        Command::Sim(sim) => commands::sim::run(&sim),
        Command::Documents(documents) => commands::documents::run(&documents, commands::show::run),
        Command::Completions(wanted) => documentation::completions(&wanted, cli::public()),
        Command::Man(man) => documentation::man(&man, cli::public()),
        Command::Worker(worker) => commands::worker::run(&worker),
        Command::WorkloadWorker(worker) => commands::worker::run_workload(&worker),
        Command::MailServer(server) => commands::worker::serve_mail(&server),
    };
    exit::finish(result.map(exit::Exit::from), exit::code_of)
}
