//! The command line of `spinpark-lab documents`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::bench::{Locks, Show};
use super::delays::DelaysMap;
use super::grid::GridShown;
use super::programs::{Mail, Select};
use super::workloads::{Condvar, Creat, Faults, Jobs, Mmap, Scan};
use spinpark_cli::line::format::{self, Format};
use spinpark_cli::line::numbers::whole;

const EXAMPLES: &str = "\
Examples:
  spinpark-lab documents run --quick --output report  all four in one report, in about 3 minutes
  spinpark-lab documents list                         the workloads, and the document of each
  spinpark-lab documents mmap --touch all             002: is mapping memory faster under a mutex?
  spinpark-lab documents condvar                     003: what a signal of a condvar costs
  spinpark-lab documents mtx                          004: why a profiler once made a lock faster
  spinpark-lab documents delays --machine e4500-12   004: where would a delay make it faster?
  spinpark-lab documents select --clients 10          004: our locks in MariaDB
  spinpark-lab documents show report/documents.json";

/// Run the workloads of four documents about locks again, on this machine
///
/// 001: optimistic spinning of the kernel's mutex (2010). 002: a mutex around the kernel's mmap_sem (2013).
/// 003: FUTEX_WAKE_OP (2005). 004: mutex profiling in FreeBSD (2006). docs/documents.md describes them.
#[derive(Debug, Subcommand)]
#[command(after_long_help = EXAMPLES)]
pub(crate) enum Documents {
    Run(DocumentsRun),
    /// List the workloads, and the document of each
    #[command(after_long_help = "Examples:\n  spinpark-lab documents list")]
    List,
    Show(DocumentsShow),
    Creat(Box<Creat>),
    Mmap(Box<Mmap>),
    Faults(Box<Faults>),
    Scan(Box<Scan>),
    Jobs(Box<Jobs>),
    Condvar(Box<Condvar>),
    Mail(Box<Mail>),
    Select(Box<Select>),
    /// Measure FreeBSD's mutex of 2006, and each ingredient of its profiling by itself (document 004)
    ///
    /// In 2006, a kernel became 38 % faster on one hot lock when its mutex profiling was compiled in, for an
    /// unknown reason. This is `bench locks --preset mtx`: that mutex is the baseline, and there is one
    /// implementation for each thing that the profiling changes.
    #[command(after_long_help = MTX_EXAMPLES)]
    Mtx(Box<Locks>),
    Delays(Box<DelaysMap>),
}

impl Documents {
    /// The `--format` and the `--json` of a command that measures.
    pub(super) fn output(&mut self) -> Option<(Option<Format>, &mut Option<PathBuf>)> {
        let common = match self {
            Self::Run(it) => return Some((it.format, &mut it.json)),
            Self::Mtx(it) => return Some((it.format, &mut it.json)),
            Self::Delays(it) => return Some((it.out.format, &mut it.out.json)),
            Self::List | Self::Show(_) => return None,
            Self::Creat(it) => &mut it.common,
            Self::Mmap(it) => &mut it.common,
            Self::Faults(it) => &mut it.common,
            Self::Scan(it) => &mut it.common,
            Self::Jobs(it) => &mut it.common,
            Self::Condvar(it) => &mut it.common,
            Self::Mail(it) => &mut it.common,
            Self::Select(it) => &mut it.common,
        };
        Some((common.out.format, &mut common.out.json))
    }
}

const RUN_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents run --quick --output report     a first look, in about 3 minutes
  spinpark-lab documents run --output report             all of it: documents.md, .html and .json
  spinpark-lab documents run --only 001,003              Markdown on standard output
  spinpark-lab documents run --only 002 --html 002.html --rounds 20

What a machine cannot run (no MariaDB, no tmpfs) is said in its place, and the rest goes on.";

/// Measure all four documents in one report: their published tables and this machine's
///
/// Runs the workloads that correspond to the tables of the four documents, each as its own command would, and
/// writes Markdown and one HTML file with plots that needs nothing else. Each part names the command that
/// repeats it.
#[derive(Debug, Args)]
#[command(after_long_help = RUN_EXAMPLES)]
pub(crate) struct DocumentsRun {
    /// Only these documents: 001, 002, 003, 004
    #[arg(long, value_name = "NUMBER", num_args = 1.., value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// Fewer numbers of tasks, shorter runs: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Rounds of every part; 6 or more for intervals and verdicts [default: each part's own]
    #[arg(short, long, value_name = "N", value_parser = whole::<usize>(1..=100_000, 10))]
    pub(crate) rounds: Option<usize>,

    /// Write documents.md, documents.html and documents.json into this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Write the report as HTML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Format of standard output [default: markdown, if no file is named]
    #[arg(long, value_name = "FORMAT", value_parser = format::parser([Format::Markdown, Format::Json]))]
    pub(crate) format: Option<Format>,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = format::JSON)]
    pub(crate) json: Option<PathBuf>,

    #[arg(long, value_name = "N", help = format::SEED, value_parser = whole::<u64>(0..=u64::MAX, 1))]
    pub(crate) seed: Option<u64>,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents show report/documents.json
  spinpark-lab documents show mmap.json --details";

/// Print an earlier result again, from its JSON file
#[derive(Debug, Args)]
#[command(after_long_help = SHOW_EXAMPLES)]
pub(crate) struct DocumentsShow {
    /// A file that --json or --output wrote
    pub(crate) file: PathBuf,

    /// Print what operations cost, how evenly tasks were served, and more
    #[arg(long)]
    pub(crate) details: bool,
}

impl From<&DocumentsShow> for Show {
    fn from(show: &DocumentsShow) -> Self {
        let DocumentsShow { file, details } = show;
        Self { file: file.clone(), details: *details, format: None, plots: None, grid: GridShown::default() }
    }
}

const MTX_EXAMPLES: &str = "\
Examples:
  spinpark-lab documents mtx                              1, 2, 4 and 16 threads, about 4 minutes
  spinpark-lab documents mtx --threads 2 --rounds 40      one number of threads, more precisely
  spinpark-lab documents mtx --workload long,five-lines   other sections
  spinpark-lab documents mtx --locks classic-mtx,classic-mtx-counter,classic-mtx-add
  spinpark-lab documents mtx --locks classic-mtx,classic-mtx-delayed+attempt=1us

A delay of any length at any place: `spinpark-lab documents delays`.";
