//! `--format` and `--json`: the same in every command.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

/// Help of `--json`.
pub(crate) const JSON: &str = "Write all data as JSON to this file; without a file or with `-` to standard output, and the tables to standard error";

/// The same where no tables are printed then.
pub(crate) const JSON_ONLY: &str =
    "Write all data as JSON to this file; without a file or with `-` to standard output, instead of tables";

/// Help of `--seed` where it decides the order of runs.
pub(crate) const SEED: &str = "Repeat the order of runs of an earlier result [default: random, and printed]";

/// What standard output gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
    Markdown,
}

/// The outputs of a command that prints a table.
#[derive(Debug, Args)]
pub(crate) struct TableOrJson {
    /// Format of standard output [default: table]
    #[arg(long, value_name = "FORMAT", value_parser = parser([Format::Table, Format::Json]))]
    pub(crate) format: Option<Format>,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = JSON)]
    pub(crate) json: Option<PathBuf>,
}

/// A parser of those formats that a command has.
pub(crate) fn parser<const N: usize>(formats: [Format; N]) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(formats.map(|format| format.to_possible_value().expect("none is skipped")))
        .try_map(|word| Format::from_str(&word, false))
}
