//! Errors in a command line: programs in the place of commands, what an option has taken that was meant for the command,
//! and no tips about commands that are not shown.

use std::io::{self, Write};
use std::path::Path;
use std::process::exit;
use std::{env, iter};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, FromArgMatches};
use spinpark_measure::text::terminal::{ascii, is_ascii_only};

use super::documentation::is_internal;
use crate::exit::BAD_INPUT;
use crate::{own, say};

/// The command line of this process, by `command`; ends the process if it makes no sense, or help was wanted.
/// `hint` is what to say of a word in the place of a command.
pub fn parse<C: FromArgMatches>(command: Command, hint: impl Fn(&str) -> Option<String>) -> C {
    let words: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let definitions = command.clone();
    let parsed = command.try_get_matches().and_then(|found| C::from_arg_matches(&found));
    parsed.unwrap_or_else(|error| {
        if let Some(taken) = taken(&definitions, &words, &error) {
            say::error(&taken);
            exit(BAD_INPUT.into());
        }
        if let Some(hint) = word(&error).and_then(hint) {
            say::error(&hint);
            exit(BAD_INPUT.into());
        }
        end(&public(error))
    })
}

/// Ends the process: two of its options cannot both be.
pub fn conflict(command: &mut Command, what: String) -> ! {
    command.error(ErrorKind::ArgumentConflict, what).exit()
}

/// Whether a word in the place of a command is a file by its path.
#[must_use]
pub fn is_program(word: &str) -> bool {
    word.contains('/') && Path::new(word).is_file()
}

/// Prints an error or help, and ends the process.
fn end(error: &clap::Error) -> ! {
    if !is_ascii_only() {
        error.exit();
    }
    let text = error.render().to_string();
    let text = ascii(&text);
    // The reader may have gone.
    let _ = match error.use_stderr() {
        true => io::stderr().write_all(text.as_bytes()),
        false => io::stdout().write_all(text.as_bytes()),
    };
    exit(error.exit_code());
}

/// The word in the place of a command, if there is no such command.
fn word(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(word) => Some(word),
        _ => None,
    }
}

/// What to say if something is missing because an option has taken it, which need not have a value: in `why --json 4711`,
/// 4711 is the file. Such an option does better behind.
fn taken(command: &Command, words: &[String], error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return None;
    }
    let mut command = command;
    let mut at = 0;
    while let Some(inner) = words.get(at).and_then(|word| command.find_subcommand(word)) {
        (command, at) = (inner, at + 1);
    }
    let is_optional = |argument: &&Arg| {
        argument.get_num_args().is_some_and(|values| values.min_values() == 0 && values.takes_values())
    };
    let named = |word: &str| {
        let mut optional = command.get_arguments().filter(is_optional);
        optional.find(|argument| Some(word) == argument.get_long().map(|long| format!("--{long}")).as_deref())
    };
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut pairs = (at..end.saturating_sub(1)).rev();
    let (at, option) = pairs.find_map(|at| Some((at, named(&words[at])?)))?;
    let value = &words[at + 1];
    if value.starts_with('-') {
        return None;
    }
    // A program and its arguments come last, behind `--`.
    let has_program = command.get_positionals().any(|it| it.is_trailing_var_arg_set() || it.is_last_set());
    let has_other = command.get_positionals().any(|it| !it.is_trailing_var_arg_set() && !it.is_last_set());
    let (before, behind) = (&words[..at], &words[at + 2..]);
    let own = |word: &str| String::from(word);
    let better: Vec<String> = iter::once(own(own::name()))
        .chain(before.iter().cloned())
        .chain((has_program && !has_other).then(|| [own(&words[at]), own("--")]).into_iter().flatten())
        .chain(iter::once(value.clone()))
        .chain(behind.iter().cloned())
        .chain((!has_program || has_other).then(|| words[at].clone()))
        .collect();
    let name = option.get_value_names().and_then(|names| names.first()).map_or("VALUE", |name| name.as_str());
    let missing = match error.get(ContextKind::InvalidArg) {
        // What else is missing, that error says.
        Some(ContextValue::Strings(missing)) if missing.iter().all(|name| !name.starts_with('-')) => {
            missing.join(", ")
        }
        _ => return None,
    };
    Some(format!(
        "{} has taken `{value}` as its {name}, so that {missing} is missing\nWrite: {}",
        words[at],
        own::line(&better)
    ))
}

/// The error, with tips about shown commands only.
fn public(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::Strings(tips)) = error.remove(ContextKind::SuggestedSubcommand) {
        let tips: Vec<String> = tips.into_iter().filter(|tip| !is_internal(tip)).collect();
        if !tips.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(tips));
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tips_are_about_public_commands() {
        let said = |word| {
            public(crate::cli::command().try_get_matches_from(["spinpark", word]).expect_err("no command"))
                .to_string()
        };
        for slip in ["profil", "profile-cost", "__profile", "bench-worker", "demo"] {
            let said = said(slip);
            let tip = said.lines().find(|line| line.contains("tip:")).unwrap_or_default();
            assert!(!tip.contains("__"), "{slip}: {said}");
        }
        assert!(said("profil").contains("'profile'"), "{}", said("profil"));
    }

    #[test]
    fn what_an_option_has_taken() {
        let said = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let all = iter::once("spinpark").chain(words.iter().map(String::as_str));
            let error = crate::cli::command().try_get_matches_from(all).expect_err(line);
            taken(&crate::cli::command(), &words, &error)
        };
        for (line, better) in [
            ("why --json 4711", "why 4711 --json"),
            ("why --stop --json 4711 -n 5", "why --stop 4711 -n 5 --json"),
            ("record --for 3s --json 4711", "record --for 3s 4711 --json"),
            ("report --json spinpark-profile", "report spinpark-profile --json"),
            ("report --folded spinpark-profile", "report spinpark-profile --folded"),
            ("report --slow spinpark-profile", "report spinpark-profile --slow"),
            ("diff --json a b", "diff a b --json"),
            ("gate waits --at-most 5% --json a", "gate waits --at-most 5% a --json"),
            ("profile --json ./job", "profile --json -- ./job"),
            (
                "gate compare --against ./old --markdown ./new",
                "gate compare --against ./old --markdown -- ./new",
            ),
        ] {
            let said = said(line).expect(line);
            assert!(said.ends_with(&format!("\nWrite: spinpark {better}")), "{line}: {said}");
            // As it says, it is right.
            let words = std::iter::once("spinpark").chain(better.split(' '));
            crate::cli::command().try_get_matches_from(words).expect(better);
        }
        let one = said("why --json 4711").expect("it is taken");
        assert!(
            one.starts_with("--json has taken `4711` as its FILE, so that <PID | CORE> is missing"),
            "{one}"
        );
        for other in ["why", "why --json", "why --json=4711", "report --html x", "gate waits --json a"] {
            assert_eq!(said(other), None, "{other}");
        }
    }
}
