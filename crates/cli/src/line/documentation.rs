//! Completions and manual pages: generated from the definitions of a command line.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::say::Say;

/// Print completions for a shell
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell to complete for
    pub shell: Shell,
}

/// Write a manual page for each command
#[derive(Debug, Args)]
pub struct Man {
    /// The directory to write to; it is created if it is missing
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Gives the subcommands `completions` and `man` of the command `name` their examples; `page` is one of its
/// subcommands.
#[must_use]
pub fn with_examples(command: Command, name: &str, page: &str) -> Command {
    let completions = format!(
        "Examples:
  {name} completions bash    to ~/.local/share/bash-completion/completions/{name}
  {name} completions zsh     to ~/.zfunc/_{name}, with ~/.zfunc in fpath
  {name} completions fish    to ~/.config/fish/completions/{name}.fish"
    );
    let man = format!("Examples:\n  {name} man ~/.local/share/man/man1\n  man {name}-{page}");
    command
        .mut_subcommand("completions", |completion| completion.after_long_help(completions))
        .mut_subcommand("man", |pages| pages.after_long_help(man))
}

/// Prints the completions of a shell for `command`, which is [`public`].
///
/// # Errors
///
/// If they are not UTF-8.
pub fn completions(wanted: &Completions, mut command: Command) -> anyhow::Result<ExitCode> {
    let (mut script, name) = (Vec::new(), command.get_name().to_owned());
    clap_complete::generate(wanted.shell, &mut command, name, &mut script);
    Say { on_stderr: false }.line(String::from_utf8(script)?.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual pages of `command`, which is [`public`].
///
/// # Errors
///
/// If they cannot be written there.
pub fn man(man: &Man, command: Command) -> anyhow::Result<ExitCode> {
    let (directory, name) = (man.directory.display(), command.get_name().to_owned());
    fs::create_dir_all(&man.directory)
        .and_then(|()| clap_mangen::generate_to(command, &man.directory))
        .map_err(|error| {
            anyhow!(
                "cannot write manual pages to {directory}: {error}\nName a directory in which you may write"
            )
        })?;
    note!("Manual pages are in {directory}: man -l {directory}/{name}.1 shows the first one.");
    Ok(ExitCode::SUCCESS)
}

/// Whether a command is one that this command starts for itself.
#[must_use]
pub fn is_internal(name: &str) -> bool {
    name.starts_with("__")
}

/// The command line of `name` as its users know it, with the commands that the first screen of help leaves out.
#[must_use]
pub fn public(all: &Command, name: &'static str) -> Command {
    // A command cannot be taken out: build the same one without them. Completions would have hidden ones too.
    let mut public = Command::new(name).version(env!("CARGO_PKG_VERSION"));
    if let Some(about) = all.get_about() {
        public = public.about(about.clone());
    }
    if let Some(about) = all.get_long_about() {
        public = public.long_about(about.clone());
    }
    if let Some(help) = all.get_after_long_help() {
        public = public.after_long_help(help.clone());
    }
    public.subcommands(
        all.get_subcommands()
            .filter(|command| !is_internal(command.get_name()))
            .map(|command| shown(command.clone())),
    )
}

/// The command with its subcommands, none of them hidden.
fn shown(command: Command) -> Command {
    command.hide(false).mut_subcommands(shown)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::ValueEnum;

    use super::*;

    /// The full name of each command, such as `spinpark profile`.
    fn names(command: &Command, above: &str) -> Vec<String> {
        let name = format!("{above}{}", command.get_name());
        let below = command.get_subcommands().flat_map(|below| names(below, &format!("{name} ")));
        std::iter::once(name.clone()).chain(below).collect()
    }

    /// Those of the definitions that are parsed with.
    fn all_names() -> Vec<String> {
        let mut names = names(&crate::cli::command(), "");
        names.retain(|name| !name.contains("__"));
        assert!(names.contains(&"spinpark profile".to_owned()) && names.contains(&"spinpark man".to_owned()));
        names
    }

    #[test]
    fn manual_pages_cover_every_command() {
        let directory = tempfile::tempdir().unwrap();
        man(&Man { directory: directory.path().join("man1") }, crate::command_line()).unwrap();
        let pages = fs::read_dir(directory.path().join("man1")).unwrap();
        let mut pages: Vec<_> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
        // `help` has no options of its own.
        pages.retain(|page| !page.contains("-help"));
        pages.sort();
        let mut expected: Vec<_> =
            all_names().iter().map(|name| format!("{}.1", name.replace(' ', "-"))).collect();
        expected.sort();
        assert_eq!(pages, expected);
        let page = fs::read_to_string(directory.path().join("man1/spinpark.1")).unwrap();
        assert!(page.contains("SPINPARK_PRELOAD") && !page.contains("__"), "{page}");
    }

    #[test]
    fn completions_cover_every_command() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut crate::command_line(), "spinpark", &mut script);
            let script = String::from_utf8(script).unwrap();
            for name in all_names() {
                let last = name.rsplit(' ').next().unwrap();
                assert!(script.contains(last), "{shell}: no {name}");
            }
            for internal in
                crate::cli::command().get_subcommands().filter(|command| is_internal(command.get_name()))
            {
                assert!(!script.contains(internal.get_name()), "{shell}: {}", internal.get_name());
            }
        }
    }

    #[test]
    fn the_first_screen_of_help_leaves_them_out() {
        let help = crate::cli::command().render_help().to_string();
        let list = help.split("Commands:").nth(1).and_then(|rest| rest.split("Options:").next()).unwrap();
        assert!(
            list.contains("profile") && !list.contains("completions") && !list.contains("libraries"),
            "{list}"
        );
    }
}
