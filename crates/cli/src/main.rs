//! The `spinpark` command: would better locks make this program faster?

#[macro_use]
mod say;

mod cli;
mod commands;
mod exit;
mod files;
mod libraries;
mod own;
mod progress;
mod session;
mod tips;

use std::process::ExitCode;

use crate::cli::{Command, Compare};
use crate::exit::Exit;

fn main() -> ExitCode {
    let command =
        tips::parse().command.unwrap_or_else(|| Command::Compare(Box::new(Compare::demonstration())));
    files::find_temporary_directory();
    let is_run = matches!(command, Command::Run(_));
    let result: anyhow::Result<Exit> = match command {
        Command::Profile(profile) => commands::profile::run(&profile),
        Command::Top(top) => commands::profile::top::run(&top),
        Command::Run(run) => commands::run::run(&run).map(Exit::from),
        Command::Compare(compare) => commands::compare::run(&compare).map(Exit::from),
        Command::Report(report) => commands::profile::report(&report).map(Exit::from),
        Command::Diff(diff) => commands::profile::diff(&diff).map(Exit::from),
        Command::ProfileCost => commands::profile::calibrate().map(Exit::from),
        Command::Bench(bench) => commands::bench::run(&bench, commands::show::run).map(Exit::from),
        Command::Sim(sim) => commands::sim::run(&sim).map(Exit::from),
        Command::Documents(documents) => {
            commands::documents::run(&documents, commands::show::run).map(Exit::from)
        }
        Command::Libraries(libraries) => commands::libraries::run(&libraries).map(Exit::from),
        Command::Completions(completions) => {
            commands::documentation::completions(&completions).map(Exit::from)
        }
        Command::Man(man) => commands::documentation::man(&man).map(Exit::from),
        Command::Demo(demo) => commands::demo::run(&demo).map(Exit::from),
        Command::Worker(worker) => commands::worker::run(&worker).map(Exit::from),
        Command::WorkloadWorker(worker) => commands::worker::run_workload(&worker).map(Exit::from),
        Command::MailServer(server) => commands::worker::serve_mail(&server).map(Exit::from),
    };
    let result = result.and_then(|exit| say::check().map(|()| exit));
    result.map(Exit::code).unwrap_or_else(|error| {
        say::error(&exit::in_full(&error));
        if is_run { exit::code_of_run(&error) } else { exit::code_of(&error) }
    })
}
