//! `--format` and `--json`: the same in every command.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

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

/// A parser of those formats that a command has.
pub(crate) fn parser<const N: usize>(formats: [Format; N]) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(formats.map(|format| format.to_possible_value().expect("none is skipped")))
        .try_map(|word| Format::from_str(&word, false))
}
