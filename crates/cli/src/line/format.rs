//! `--format` and `--json`: the same in every command.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

/// Help of `--json`.
pub const JSON: &str = "Write all data as JSON to this file; without a file or with `-` to standard output, and the tables to standard error";

/// The same where no tables are printed then.
pub const JSON_ONLY: &str =
    "Write all data as JSON to this file; without a file or with `-` to standard output, instead of tables";

/// Help of `--seed` where it decides the order of runs.
pub const SEED: &str = "Repeat the order of runs of an earlier result [default: random, and printed]";

/// What standard output gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Format {
    Table,
    Json,
    Csv,
    Markdown,
}

/// The outputs of a command that prints a table.
#[derive(Debug, Args)]
pub struct TableOrJson {
    /// Format of standard output [default: table]
    #[arg(long, value_name = "FORMAT", value_parser = parser([Format::Table, Format::Json]))]
    pub format: Option<Format>,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = JSON)]
    #[expect(missing_docs, reason = "its help is `JSON`")]
    pub json: Option<PathBuf>,
}

/// A parser of those formats that a command has.
pub fn parser<const N: usize>(formats: [Format; N]) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(formats.map(|format| format.to_possible_value().expect("none is skipped")))
        .try_map(|word| Format::from_str(&word, false))
}

/// Makes `--format json` the same as `--json` without a file.
///
/// # Errors
///
/// If both are given.
pub fn to_json(format: Option<Format>, json: &mut Option<PathBuf>) -> Result<(), String> {
    if format == Some(Format::Json) { to_stdout("json", json) } else { Ok(()) }
}

/// Makes `--format csv` the same as `--csv -`.
///
/// # Errors
///
/// If both are given.
pub fn to_csv(format: Option<Format>, csv: &mut Option<PathBuf>) -> Result<(), String> {
    if format == Some(Format::Csv) { to_stdout("csv", csv) } else { Ok(()) }
}

fn to_stdout(name: &str, file: &mut Option<PathBuf>) -> Result<(), String> {
    if file.is_some() {
        return Err(format!(
            "--format {name} prints to standard output, and --{name} writes a file: leave one of them out"
        ));
    }
    *file = Some(PathBuf::from("-"));
    Ok(())
}
