//! The `spinpark` command: would better locks make this program faster?

#[macro_use]
mod say;

mod cli;
mod commands;
mod directory;
mod exit;
mod libraries;
mod progress;
mod renamed;
mod session;
mod tips;

use std::process::ExitCode;

use crate::cli::{Command, Compare};

fn main() -> ExitCode {
    let command =
        tips::parse().command.unwrap_or_else(|| Command::Compare(Box::new(Compare::demonstration())));
    let is_run = matches!(command, Command::Run(_));
    let result = match command {
        Command::Run(run) => commands::run::run(&run),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::Profile(profile) => commands::profile::run(&profile),
        Command::Report(report) => commands::profile::report(&report),
        Command::Diff(diff) => commands::profile::diff(&diff),
        Command::Top(top) => commands::profile::top::run(&top),
        Command::ProfileCost => commands::profile::calibrate(),
        Command::Bench(bench) => commands::bench::run(&bench, commands::show::run),
        Command::Sim(sim) => commands::sim::run(&sim),
        Command::Documents(documents) => commands::documents::run(&documents, commands::show::run),
        Command::Libraries(libraries) => commands::libraries::run(&libraries),
        Command::Completions(completions) => commands::documentation::completions(&completions),
        Command::Man(man) => commands::documentation::man(&man),
        Command::Demo(demo) => commands::demo::run(&demo),
        Command::Worker(worker) => commands::worker::run(&worker),
        Command::WorkloadWorker(worker) => commands::worker::run_workload(&worker),
        Command::MailServer(server) => commands::worker::serve_mail(&server),
    };
    let result = result.and_then(|code| say::check().map(|()| code));
    result.unwrap_or_else(|error| {
        say::error(&exit::in_full(&error));
        if is_run { exit::code_of_run(&error) } else { exit::code_of(&error) }
    })
}
