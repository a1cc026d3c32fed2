//! The command line of `spinpark bench documents`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  spinpark bench documents --quick --out report      a first look, in about 3 minutes
  spinpark bench documents --out report              all of it: documents.md, .html and .json
  spinpark bench documents --only 001,003            Markdown on standard output
  spinpark bench documents --only 002 --html 002.html --repeat 20

What a machine cannot run (no MariaDB, no tmpfs) is said in its place, and the rest goes on.";

/// One report of the four documents: their published tables beside what this machine measures
///
/// Runs the workloads that correspond to the tables of the four documents, each as its own command would, and writes
/// Markdown and one HTML file with plots that needs nothing else. Each part names the command that repeats it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Documents {
    /// Only these documents: 001, 002, 003, 004
    #[arg(long, value_name = "NUMBER", num_args = 1.., value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// Fewer numbers of tasks, shorter runs: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Rounds of every part; 6 or more for intervals and verdicts [default: each part's own]
    #[arg(short, long, visible_alias = "rounds", value_name = "N",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub(crate) repeat: Option<usize>,

    /// Write documents.md, documents.html and documents.json into this directory
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,

    /// Write the report as HTML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the report as Markdown to this file [default: standard output, if no file is named]
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    /// Write all data to this file. Without a file, or with `-`: to standard output, and messages to standard error
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Repeat the order of runs of an earlier report; otherwise it is random, and printed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
