//! The command line of `spinpark-lab bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::grid::{Grid, GridShown};
use spinpark_cli::line::format::{self, Format};
use spinpark_cli::line::numbers::{ROUNDS, THREADS, whole};
use spinpark_cli::line::units::whole_ms;

const EXAMPLES: &str = "\
Examples:
  spinpark-lab bench locks --quick                      all implementations, in about 10 minutes
  spinpark-lab bench list                               workloads, implementations and grids
  spinpark-lab bench locks --bounds                     the project's goals: which hold?
  spinpark-lab bench locks --workload saturated --threads 2,16 --locks glibc,parking_lot,spinpark
  spinpark-lab bench locks --preset pthread             the drop-in against glibc only
  spinpark-lab bench locks --preset profiler --bounds   what the profiler costs; are its bounds met?
  spinpark-lab bench grid --quick                       planes of parameters, as heat maps
  spinpark-lab bench show records/2026-11-22-some-cpu.json --format markdown";

/// Measure locks by themselves, side by side
///
/// The workloads of the four documents are in `spinpark-lab documents`.
#[derive(Debug, Subcommand)]
#[command(after_long_help = EXAMPLES)]
pub(crate) enum Bench {
    /// Measure implementations side by side, workload by workload
    ///
    /// Every run is a fresh process that does nothing but lock, and checks its own result. A round visits
    /// every cell (a workload at a number of threads) in shuffled order, and runs every implementation in it
    /// once, and the baseline twice.
    #[command(after_long_help = LOCKS_EXAMPLES)]
    Locks(Box<BenchLocks>),
    Grid(Box<Grid>),
    /// List workloads, implementations and grids
    #[command(after_long_help = LIST_EXAMPLES)]
    List(List),
    /// Print an earlier result again, from its JSON file
    ///
    /// The file can be the result of any measuring command: `bench`, `documents` or `compare`.
    #[command(after_long_help = SHOW_EXAMPLES)]
    Show(Show),
}

const LOCKS_EXAMPLES: &str = "\
Examples:
  spinpark-lab bench locks --quick --plots plots            10 minutes, with an SVG per workload
  spinpark-lab bench locks --bounds --check                 exit with 1 if a goal is missed
  spinpark-lab bench locks --workload mixed-10 --threads 2,16 --rounds 15 --details
  spinpark-lab bench locks --locks glibc,drop-in,drop-in+SPINPARK_DISABLE=1 --workload pair-threaded
  spinpark-lab bench locks --definition my-workloads.toml   your own workloads and bounds
  spinpark-lab bench locks --record                         a dated record, to be kept

glibc's pthread locks and the drop-in's:
  spinpark-lab bench locks --preset pthread                                    all its workloads
  spinpark-lab bench locks --preset pthread --workload pair-threaded --rounds 30
  spinpark-lab bench locks --preset pthread --locks drop-in-disabled,drop-in   both interposed
  spinpark-lab bench locks --preset pthread --format markdown

What the recorder of `spinpark profile` costs, by how much it records:
  spinpark-lab bench locks --preset profiler --bounds --check
  spinpark-lab bench locks --preset profiler --workload pair-threaded --rounds 40
  spinpark-lab bench locks --preset profiler --baseline drop-in --locks drop-in-recorded-contended
What it costs your own program: `spinpark profile --overhead -- PROGRAM`.

`spinpark-lab bench list` lists workloads and implementations; docs/bench.md describes them and the JSON.";

const LIST_EXAMPLES: &str = "\
Examples:
  spinpark-lab bench list
  spinpark-lab bench list --definition my-workloads.toml    with what this file adds";

const SHOW_EXAMPLES: &str = "\
Examples:
  spinpark-lab bench show records/2026-11-22-some-cpu.json --format markdown
  spinpark-lab bench show locks.json --details --plots plots
  spinpark-lab bench show grid.json --figure cpu --against glibc --html grid.html";

/// What can be listed.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Add the workloads and implementations of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
}

/// A choice of workloads and implementations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetChoice {
    /// All mutexes and rwlocks that are built in
    Locks,
    /// glibc's pthread locks and the drop-in's, in workloads that every program has
    Pthread,
    /// FreeBSD's mutex of 2006, and each ingredient of its profiling by itself (document 004)
    Mtx,
    /// glibc's locks without a recorder, and with each --detail of `spinpark profile`
    Profiler,
}

impl PresetChoice {
    /// Its name in the definitions.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Locks => "locks",
            Self::Pthread => "pthread",
            Self::Mtx => "mtx",
            Self::Profiler => "profiler",
        }
    }
}

/// `bench locks`: a preset, and what is different.
#[derive(Debug, Args)]
pub(crate) struct BenchLocks {
    /// The workloads and implementations, unless --workload and --locks choose others
    #[arg(long, value_enum, default_value_t = PresetChoice::Locks)]
    pub(crate) preset: PresetChoice,

    #[command(flatten)]
    pub(crate) locks: Locks,
}

/// What is measured, how, and where the result goes.
#[derive(Debug, Args)]
pub(crate) struct Locks {
    /// Only these implementations; NAME+VARIABLE=VALUE sets an environment variable
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) locks: Vec<String>,

    /// Only these workloads
    #[arg(short, long = "workload", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) workloads: Vec<String>,

    /// Numbers of threads, for workloads that allow several
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = whole::<usize>(THREADS, 16))]
    pub(crate) threads: Vec<usize>,

    /// Rounds over all cells; at least 6 [default: 7; pthread, mtx and profiler 15; --quick 6]
    #[arg(short, long, value_name = "N", value_parser = whole::<usize>(ROUNDS, 10))]
    pub(crate) rounds: Option<usize>,

    /// Length of a measured run [default: 100ms; pthread, profiler and --bounds 200ms; --quick 40ms]
    #[arg(long, value_name = "TIME", value_parser = whole_ms("60s"))]
    pub(crate) duration: Option<Duration>,

    /// The implementation to compare with; it runs twice per round [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,

    /// Fewer numbers of threads, shorter runs: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure exactly what the bounds need, and print which of them hold
    #[arg(long)]
    pub(crate) bounds: bool,

    /// Exit with 1 unless all bounds hold
    #[arg(long, requires = "bounds")]
    pub(crate) check: bool,

    /// Print all figures of every cell: CPU time, context switches, futex calls, waits, fairness
    #[arg(long)]
    pub(crate) details: bool,

    /// Format of standard output [default: table]
    #[arg(long, value_name = "FORMAT", value_parser = format::parser([Format::Table, Format::Json, Format::Markdown]))]
    pub(crate) format: Option<Format>,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = format::JSON)]
    pub(crate) json: Option<PathBuf>,

    /// Write a dated record, `DATE-CPU.json`, into this directory [without a value: records]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "records")]
    pub(crate) record: Option<PathBuf>,

    /// Draw a plot per workload, and of locks one of throughput and CPU time (SVG) into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,

    /// Add the workloads, implementations and bounds of this file, and run its workloads
    ///
    /// With --workload, only the named workloads run.
    #[arg(long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,

    #[arg(long, value_name = "N", help = format::SEED, value_parser = whole::<u64>(0..=u64::MAX, 1))]
    pub(crate) seed: Option<u64>,
}

/// Which result, and how.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A file that --json or --record wrote
    pub(crate) file: PathBuf,

    /// Print all figures of every cell
    #[arg(long)]
    pub(crate) details: bool,

    /// Format of standard output [default: table]
    #[arg(long, value_name = "FORMAT", value_parser = format::parser([Format::Table, Format::Csv, Format::Markdown]))]
    pub(crate) format: Option<Format>,

    /// Draw a plot per workload, and of locks one of throughput and CPU time (SVG) into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) grid: GridShown,
}
