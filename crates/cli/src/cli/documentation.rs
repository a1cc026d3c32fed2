//! Commands about this command: its libraries, completions, manual pages.

use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use super::Cli;

/// Show which libraries are preloaded, and from where
///
/// The command carries both libraries. It uses the files that SPINPARK_PRELOAD and SPINPARK_PROFILER name.
/// Otherwise it uses files with the carried content in its own directory, in ../lib or in ../lib/spinpark.
/// Otherwise it writes what it carries to a directory that only the user can read: in $XDG_CACHE_HOME or
/// ~/.cache, $XDG_RUNTIME_DIR, $TMPDIR, /tmp.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  spinpark libraries                       which files are used, and why others are not
  spinpark libraries --to /opt/spinpark    copies both libraries there")]
pub(crate) struct Libraries {
    /// Copy the carried libraries to this directory, for SPINPARK_PRELOAD and SPINPARK_PROFILER, or an
    /// LD_PRELOAD of your own
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
}

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  spinpark completions bash    redirect it to ~/.local/share/bash-completion/completions/spinpark
  spinpark completions zsh     to ~/.zfunc/_spinpark, with ~/.zfunc in fpath
  spinpark completions fish    to ~/.config/fish/completions/spinpark.fish")]
pub(crate) struct Completions {
    /// The shell to complete for
    pub(crate) shell: Shell,
}

/// Write a manual page for each command
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  spinpark man ~/.local/share/man/man1
  man spinpark-profile")]
pub(crate) struct Man {
    /// The directory to write to; it is created if it is missing
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// Whether a command is one that this command starts for itself.
pub(crate) fn is_internal(name: &str) -> bool {
    name.starts_with("__")
}

/// The command line as its users know it, with the commands that the first screen of help leaves out.
pub(crate) fn public() -> Command {
    let all = Cli::command();
    // A command cannot be taken out: build the same one without them. Completions would have hidden ones too.
    let mut public = Command::new("spinpark").version(env!("CARGO_PKG_VERSION"));
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

    /// The full name of each command, such as `spinpark bench locks`.
    fn names(command: &Command, above: &str) -> Vec<String> {
        let name = format!("{above}{}", command.get_name());
        let below = command.get_subcommands().flat_map(|below| names(below, &format!("{name} ")));
        std::iter::once(name.clone()).chain(below).collect()
    }

    /// Those of the definitions that are parsed with.
    fn all_names() -> Vec<String> {
        let mut names = names(&Cli::command(), "");
        names.retain(|name| !name.contains("__"));
        assert!(
            names.contains(&"spinpark bench locks".to_owned()) && names.contains(&"spinpark man".to_owned())
        );
        names
    }

    #[test]
    fn manual_pages_cover_every_command() {
        let directory = tempfile::tempdir().unwrap();
        crate::commands::documentation::man(&Man { directory: directory.path().join("man1") }).unwrap();
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
            clap_complete::generate(*shell, &mut public(), "spinpark", &mut script);
            let script = String::from_utf8(script).unwrap();
            for name in all_names() {
                let last = name.rsplit(' ').next().unwrap();
                assert!(script.contains(last), "{shell}: no {name}");
            }
            for internal in Cli::command().get_subcommands().filter(|command| is_internal(command.get_name()))
            {
                assert!(!script.contains(internal.get_name()), "{shell}: {}", internal.get_name());
            }
        }
    }

    #[test]
    fn the_first_screen_of_help_leaves_them_out() {
        let help = Cli::command().render_help().to_string();
        let list = help.split("Commands:").nth(1).and_then(|rest| rest.split("Options:").next()).unwrap();
        assert!(
            list.contains("profile") && !list.contains("completions") && !list.contains("libraries"),
            "{list}"
        );
    }
}
