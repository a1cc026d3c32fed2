//! Errors in a command line: programs in the place of commands, and no tips about commands that are not
//! shown.

use std::io::{self, Write};
use std::path::Path;
use std::process::exit;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use spinpark_measure::terminal::{ascii, is_ascii_only};

use crate::cli::{self, Cli, is_internal};
use crate::exit::BAD_INPUT;
use crate::say;

/// The command line; ends the process if it makes no sense, or help was wanted.
pub(crate) fn parse() -> Cli {
    let words: Vec<_> = std::env::args_os().collect();
    let parsed = cli::command().try_get_matches_from(&words).and_then(|found| Cli::from_arg_matches(&found));
    let mut cli = parsed.unwrap_or_else(|error| {
        if let Some(program) = program(&error) {
            say::error(&format!(
                "`{program}` is a program, not a command of spinpark\n`spinpark profile -- {program}` shows where its \
                 threads wait, `spinpark compare -- {program}` whether better locks help"
            ));
            exit(BAD_INPUT.into());
        }
        end(&public(error))
    });
    if let Err(conflict) = cli.apply_formats() {
        Cli::command().error(ErrorKind::ArgumentConflict, conflict).exit();
    }
    cli
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

/// The word in the place of a command, if that is a file by its path.
fn program(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(word) if word.contains('/') && Path::new(word).is_file() => Some(word),
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
    use clap::Parser;

    use super::*;

    #[test]
    fn tips_are_about_public_commands() {
        let said =
            |word| public(Cli::try_parse_from(["spinpark", word]).expect_err("no command")).to_string();
        for slip in ["profil", "profile-cost", "__profile", "bench-worker", "demo"] {
            let said = said(slip);
            let tip = said.lines().find(|line| line.contains("tip:")).unwrap_or_default();
            assert!(!tip.contains("__"), "{slip}: {said}");
        }
        assert!(said("profil").contains("'profile'"), "{}", said("profil"));
    }
}
