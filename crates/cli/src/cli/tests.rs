//! The whole tree of commands: what each command and option has.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, Command};

use super::help;

/// Rows of a terminal on which `-h` is read.
const SCREEN: usize = 48;

/// Workers are ours alone, and `help` is clap's.
fn is_shown(name: &str) -> bool {
    !name.starts_with("__") && name != "help"
}

/// Calls `each` with every command that users see, and the words that name it.
fn walk(command: &Command, path: &str, each: &mut impl FnMut(&str, &Command)) {
    each(path, command);
    for sub in command.get_subcommands().filter(|sub| is_shown(sub.get_name())) {
        walk(sub, &format!("{path} {}", sub.get_name()), each);
    }
}

fn each_command(mut each: impl FnMut(&str, &Command)) {
    let mut command = help::command();
    command.build();
    walk(&command, "spinpark", &mut each);
}

/// The options of a command, without those that clap adds.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_own = |arg: &&Arg| {
        !matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        )
    };
    command.get_arguments().filter(|arg| !arg.is_positional()).filter(is_own)
}

fn help_of(arg: &Arg) -> String {
    arg.get_help().map(ToString::to_string).unwrap_or_default()
}

/// A bare noun ("Threads") says no more than the option's name.
fn is_sentence(help: &str) -> bool {
    let first = help.lines().next().unwrap_or_default();
    first.starts_with(char::is_uppercase) && first.split_whitespace().count() >= 3
}

#[test]
fn every_option_has_a_sentence_and_one_spelling_of_its_value() {
    const VALUES: [&str; 15] = [
        "FILE", "DIR", "NAME", "N", "TIME", "SIZE", "MB", "FORMAT", "REGEX", "UNIT", "PID", "NUMBER", "WHAT",
        "KIND", "WHERE",
    ];
    const MORE: [&str; 5] = ["MIX", "HOST:PORT", "OPTION", "K/N", "COMMAND"];
    each_command(|path, command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(is_sentence(&about), "{path}: {about:?}");
        for arg in command.get_arguments().filter(|arg| arg.is_positional()) {
            assert!(is_sentence(&help_of(arg)), "{path} <{}>: {:?}", arg.get_id(), help_of(arg));
        }
        for arg in options(command) {
            let (name, help) = (arg.get_long().expect("every option has a long name"), help_of(arg));
            assert!(is_sentence(&help), "{path} --{name}: {help:?}");
            if !arg.get_action().takes_values()
                || arg.get_possible_values().iter().any(|value| value.get_help().is_some())
            {
                continue;
            }
            let value = arg.get_value_names().and_then(|names| names.first()).expect("a name").to_string();
            let is_known =
                VALUES.contains(&&*value) || MORE.contains(&&*value) || !arg.get_possible_values().is_empty();
            assert!(is_known, "{path} --{name} <{value}>");
        }
    });
}

/// A length, a time or a size has its unit in its help or in the name of its value.
#[test]
fn every_quantity_has_a_unit() {
    let units = ["ms", " s", "10s", "1s", "2min", "MB", "MiB", "ns", "iterations", "us,"];
    each_command(|path, command| {
        for arg in options(command).filter(|arg| arg.get_action().takes_values()) {
            let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
            let (value, help) = (value.unwrap_or_default(), help_of(arg));
            let is_quantity = matches!(&*value, "TIME" | "SIZE")
                || (value == "N"
                    && ["length", "size", "time ", "work "]
                        .iter()
                        .any(|word| help.to_lowercase().contains(word)));
            let default = arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
            let said = format!("{value} {help} {}", default.unwrap_or_default());
            assert!(
                !is_quantity || units.iter().any(|unit| said.contains(unit)),
                "{path} --{:?}: {said}",
                arg.get_long()
            );
        }
    });
}

#[test]
fn every_command_has_an_example_of_its_own() {
    each_command(|path, command| {
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.starts_with("Examples:\n  "), "{path}: {help}");
        assert!(help.lines().any(|line| line.trim_start().starts_with(path)), "{path}: {help}");
    });
}

/// Examples are command lines that this command takes.
#[test]
fn examples_are_understood() {
    let mut wrong = Vec::new();
    each_command(|path, command| {
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let joined = help.replace("\\\n", " ");
        for line in joined.lines().filter(|line| line.starts_with("  spinpark ")) {
            if line.contains(['|', '\'', '{', '…']) {
                continue;
            }
            // What follows three blanks describes it.
            let line = line.trim().split("   ").next().unwrap_or_default();
            let words: Vec<&str> = line.split("    ").next().unwrap_or_default().split_whitespace().collect();
            if let Err(error) = help::command().try_get_matches_from(&words) {
                wrong.push(format!("{path}: {line}: {error}"));
            }
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_letter_means_one_thing_in_all_commands() {
    let mut meanings = BTreeMap::<char, BTreeMap<String, String>>::new();
    each_command(|path, command| {
        for arg in options(command) {
            if let (Some(short), Some(long)) = (arg.get_short(), arg.get_long()) {
                meanings.entry(short).or_default().insert(long.to_owned(), path.to_owned());
            }
        }
    });
    for (short, longs) in meanings {
        assert!(longs.len() == 1, "-{short} means {longs:?}");
        assert!(!"hV".contains(short), "-{short} is clap's");
    }
}

/// What a shell completes: no name stands for two things, and no old name is among them.
#[test]
fn names_are_unique() {
    each_command(|path, command| {
        let mut names: Vec<String> = Vec::new();
        for arg in options(command) {
            names.extend(arg.get_long().map(str::to_owned));
            names.extend(arg.get_all_aliases().unwrap_or_default().into_iter().map(str::to_owned));
        }
        let mut subs: Vec<String> = command
            .get_subcommands()
            .flat_map(|sub| {
                std::iter::once(sub.get_name())
                    .chain(sub.get_all_aliases())
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
        for names in [&mut names, &mut subs] {
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{path}: {names:?}");
        }
    });
}

#[test]
fn short_help_fits_a_screen() {
    each_command(|path, command| {
        let command = command.clone().term_width(100); // not as wide as the terminal that the tests run in
        let help = command.clone().render_help().to_string();
        assert!(help.lines().count() <= SCREEN, "{path} -h has {} lines:\n{help}", help.lines().count());
        assert!(help.contains("Example:"), "{path} -h has no example");
        for help in [help, command.clone().render_long_help().to_string()] {
            let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 100).collect();
            assert!(wide.is_empty(), "{path}: {wide:#?}");
        }
    });
}

#[test]
fn examples_stand_on_lines_of_their_own() {
    each_command(|path, command| {
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let wide: Vec<&str> =
            help.lines().filter(|line| line.starts_with("  ") && line.chars().count() > 100).collect();
        assert!(wide.is_empty(), "{path}: lines that a terminal of 100 columns breaks: {wide:#?}");
    });
}
