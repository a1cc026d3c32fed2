//! Help of one screen (`-h`), which has the first example of the long one (`--help`).

use clap::Command;

/// The command line with both helps.
#[must_use]
pub fn with_short_help(command: Command) -> Command {
    let name = command.get_name().to_owned();
    below(command, &name)
}

fn below(command: Command, path: &str) -> Command {
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
        below(sub, &path)
    })
}
