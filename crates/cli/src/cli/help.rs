//! Help of one screen (`-h`), which has the first example of the long one (`--help`).

use clap::{Command, CommandFactory};

use super::Cli;

/// The command line with its help.
pub(crate) fn command() -> Command {
    with_short_help(Cli::command(), "spinpark")
}

fn with_short_help(command: Command, path: &str) -> Command {
    let example = command.get_after_long_help().and_then(|help| {
        let help = help.to_string();
        help.lines().find(|line| line.starts_with("  ")).map(str::to_owned)
    });
    let command = match example {
        Some(example) => command.after_help(format!("Example:\n{example}\n\n`{path} --help` has more.")),
        None => command,
    };
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        with_short_help(sub, &path)
    })
}
