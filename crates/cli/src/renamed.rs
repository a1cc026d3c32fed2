//! Commands and options with another name today: one sentence names the new one.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What was a subcommand of `bench`, and what it is now.
const COMMANDS: [(&str, &str); 12] = [
    ("pthread", "bench locks --preset pthread"),
    ("mtx", "bench locks --preset mtx"),
    ("profiler", "bench locks --preset profiler"),
    ("documents", "documents run"),
    ("creat", "documents creat"),
    ("mmap", "documents mmap"),
    ("faults", "documents faults"),
    ("scan", "documents scan"),
    ("jobs", "documents jobs"),
    ("condvar", "documents condvar"),
    ("mail", "documents mail"),
    ("select", "documents select"),
];

/// An option of old.
struct Renamed {
    /// The commands that had it: all that begin so, or all commands.
    of: &'static [&'static str],
    old: &'static str,
    new: &'static str,
    /// What else is to be known.
    more: &'static str,
}

impl Renamed {
    /// Whether the command with this path had it.
    fn is_of(&self, path: &str) -> bool {
        self.of.iter().any(|of| of.is_empty() || path == *of || path.starts_with(&format!("{of} ")))
    }

    /// Whether a command has the new one.
    fn is_in(&self, command: &Command) -> bool {
        let name = self.new.split(' ').next().unwrap_or_default().trim_start_matches('-');
        command.get_arguments().any(|arg| {
            arg.get_long() == Some(name) || arg.get_short().map(String::from).as_deref() == Some(name)
        })
    }
}

const ALL: &[&str] = &[""];

/// Options, the first that fits.
const OPTIONS: [Renamed; 24] = [
    Renamed { of: ALL, old: "--target", new: "--locks A,B", more: "" },
    Renamed { of: ALL, old: "--targets", new: "--locks A,B", more: "" },
    Renamed { of: ALL, old: "--lock", new: "--locks A,B", more: "" },
    Renamed { of: &["bench"], old: "-t", new: "-l A,B", more: "" },
    Renamed { of: ALL, old: "--shape", new: "--workload A,B", more: "" },
    Renamed { of: &["bench"], old: "-s", new: "-w A,B", more: "" },
    Renamed { of: ALL, old: "--millis", new: "--duration TIME", more: ", with a unit: 200ms" },
    Renamed { of: ALL, old: "--seconds", new: "--duration TIME", more: ", with a unit: 10s" },
    Renamed { of: ALL, old: "--for", new: "--duration TIME", more: ", with a unit: 10s" },
    Renamed { of: &["sim"], old: "--repeat", new: "--seeds N", more: "" },
    Renamed { of: &["sim run", "sim sweep"], old: "-r", new: "--seeds N", more: "" },
    Renamed { of: ALL, old: "--repeat", new: "--rounds N", more: "" },
    Renamed { of: ALL, old: "--out", new: "--output", more: "" },
    Renamed {
        of: &["documents run"],
        old: "--markdown",
        new: "--format markdown",
        more: ", on standard output",
    },
    Renamed { of: ALL, old: "--markdown", new: "--format markdown", more: "" },
    Renamed { of: &["profile", "report", "diff"], old: "--top", new: "--rows N", more: "" },
    Renamed { of: &["documents select"], old: "--rows", new: "--table-rows N", more: "" },
    Renamed { of: &["compare"], old: "-m", new: "--metric-from-output REGEX", more: "" },
    Renamed { of: &["top"], old: "-i", new: "--interval TIME", more: "" },
    Renamed { of: &["documents mail", "documents select"], old: "--threads", new: "--clients N", more: "" },
    Renamed { of: &["documents mail", "documents select"], old: "--tasks", new: "--clients N", more: "" },
    Renamed { of: &["documents jobs"], old: "--tasks", new: "--users N", more: "" },
    Renamed { of: &["documents jobs"], old: "--threads", new: "--users N", more: "" },
    Renamed { of: &["documents"], old: "--tasks", new: "--threads N", more: "" },
];

/// The sentence about what clap does not know, if it was known once. `words` is the command line without the program.
pub(crate) fn sentence(root: &Command, error: &clap::Error, words: &[String]) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let (command, path) = subcommand(root, words);
    match error.kind() {
        ErrorKind::InvalidSubcommand if path == "bench" => {
            let word = context(ContextKind::InvalidSubcommand)?;
            let (_, new) = COMMANDS.iter().find(|(old, _)| *old == word)?;
            Some(format!("`spinpark bench {word}` is now `spinpark {new}`"))
        }
        ErrorKind::UnknownArgument => {
            let word = context(ContextKind::InvalidArg)?;
            let is_it =
                |option: &&Renamed| option.old == word && option.is_of(&path) && option.is_in(command);
            let renamed = OPTIONS.iter().find(is_it)?;
            let Renamed { new, more, .. } = renamed;
            Some(format!("`{word}` of `spinpark {path}` is now `{new}`{more}"))
        }
        _ => None,
    }
}

/// The old options of a command.
#[cfg(test)]
pub(crate) fn options_of(path: &str) -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().filter(move |option| option.is_of(path)).map(|option| option.old)
}

/// The subcommand that a command line names, and its path: `bench locks`.
fn subcommand<'a>(root: &'a Command, words: &[String]) -> (&'a Command, String) {
    let (mut command, mut path) = (root, Vec::new());
    for word in words {
        match command.find_subcommand(word) {
            Some(found) => {
                command = found;
                path.push(found.get_name());
            }
            None => break,
        }
    }
    (command, path.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::{self, Cli};

    fn said(line: &str) -> Option<String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let all = std::iter::once(String::from("spinpark")).chain(words.clone());
        let error = cli::command().try_get_matches_from(all).expect_err(line);
        sentence(&Cli::command(), &error, &words)
    }

    #[test]
    fn old_commands_name_the_new_ones() {
        for (old, new) in COMMANDS {
            let said = said(&format!("bench {old} --quick")).expect(old);
            assert_eq!(said, format!("`spinpark bench {old}` is now `spinpark {new}`"));
            let words = std::iter::once("spinpark").chain(new.split(' '));
            cli::command().try_get_matches_from(words).expect(new);
        }
        assert_eq!(said("bench nothing"), None);
        assert_eq!(said("creat"), None);
    }

    #[test]
    fn old_options_name_the_new_ones() {
        for (line, new) in [
            ("bench locks --target glibc", "`--locks A,B`"),
            ("bench grid --targets=glibc", "`--locks A,B`"),
            ("bench locks -t glibc", "`-l A,B`"),
            ("bench locks --shape pair-single", "`--workload A,B`"),
            ("bench locks -s pair-single", "`-w A,B`"),
            ("bench locks --millis 20", "`--duration TIME`, with a unit: 200ms"),
            ("bench locks --markdown", "`--format markdown`"),
            ("documents mmap --lock glibc", "`--locks A,B`"),
            ("documents mmap --repeat 2", "`--rounds N`"),
            ("documents creat --seconds 10", "`--duration TIME`, with a unit: 10s"),
            ("documents creat --tasks 2", "`--threads N`"),
            ("documents jobs --tasks 2", "`--users N`"),
            ("documents mail --threads 2", "`--clients N`"),
            ("documents select --rows 2", "`--table-rows N`"),
            ("documents run --out x", "`--output`"),
            ("documents run --markdown x", "`--format markdown`, on standard output"),
            ("sim run --for 1s", "`--duration TIME`, with a unit: 10s"),
            ("sim sweep --repeat 2", "`--seeds N`"),
            ("sim run -r 2", "`--seeds N`"),
            ("sim calibrate --out x", "`--output`"),
            ("sim native --shape long", "`--workload A,B`"),
            ("profile --for 10s -- true", "`--duration TIME`, with a unit: 10s"),
            ("profile --out x true", "`--output`"),
            ("report --top 5 x", "`--rows N`"),
            ("compare -m x(y) true", "`--metric-from-output REGEX`"),
            ("top -i 1s 1", "`--interval TIME`"),
        ] {
            let said = said(line).unwrap_or_else(|| panic!("{line}: nothing is said"));
            assert!(said.ends_with(&format!("is now {new}")), "{line}: {said}");
        }
        assert_eq!(said("bench locks --no-such-option"), None);
        assert_eq!(said("run --for 1s -- true"), None, "it has no --duration");
    }

    /// Each new name is an option of a command that is named with it.
    #[test]
    fn new_options_are_there() {
        for renamed in &OPTIONS {
            for of in renamed.of.iter().filter(|of| !of.is_empty()) {
                let root = Cli::command();
                let found = of.split(' ').try_fold(&root, |command, word| command.find_subcommand(word));
                let found = found.expect(of);
                let is_there = renamed.is_in(found) || found.get_subcommands().any(|sub| renamed.is_in(sub));
                assert!(is_there, "{of}: {}", renamed.new);
            }
        }
    }
}
