//! What is wrong with a command line, without tips that nobody can follow: internal commands are ours alone.

use clap::Parser;
use clap::error::{ContextKind, ContextValue};

use crate::cli::{Cli, is_internal};

/// The command line; ends the process if it makes no sense, or help was wanted.
pub(crate) fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| public(error).exit())
}

/// The error, with tips about commands for everybody only.
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
