//! Errors in a command line: programs in the place of commands, and no tips about commands that are not
//! shown.

use std::io::{self, Write};
use std::path::Path;
use std::process::exit;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, FromArgMatches};
use spinpark_measure::text::terminal::{ascii, is_ascii_only};

use super::documentation::is_internal;
use crate::exit::BAD_INPUT;
use crate::say;

/// The command line of this process, by `command`; ends the process if it makes no sense, or help was wanted.
/// `hint` is what to say of a word in the place of a command.
pub fn parse<C: FromArgMatches>(command: Command, hint: impl Fn(&str) -> Option<String>) -> C {
    let parsed = command.try_get_matches().and_then(|found| C::from_arg_matches(&found));
    parsed.unwrap_or_else(|error| {
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
}
