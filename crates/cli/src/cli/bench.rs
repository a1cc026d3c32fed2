//! The command line of `spinpark bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::documents::Documents;
use super::grid::{Grid, GridShown};
use super::programs::{Mail, Select};
use super::workloads::{Condvar, Creat, Faults, Jobs, Mmap, Scan};

const EXAMPLES: &str = "\
Examples:
  spinpark bench list                                shapes, targets and workloads
  spinpark bench locks --quick                       everybody's locks, in some minutes
  spinpark bench locks --bounds                      the project's goals: which hold?
  spinpark bench locks --shape saturated --threads 2,16 --target glibc,parking_lot,spinpark
  spinpark bench grid --quick                        planes instead of single shapes, as heat maps
  spinpark bench pthread                             the drop-in against glibc only
  spinpark bench mtx                                 why a profiler once made a lock faster
  spinpark bench profiler --bounds                   what `spinpark profile` costs: do its goals hold?
  spinpark bench condvar                             document 003: what a signal of a condition variable costs
  spinpark bench mmap --touch all                    a workload of the documents: is it faster under a mutex?
  spinpark bench documents --quick --out report      all four documents in one report
  spinpark bench select --clients 10                 our locks inside a real database, against glibc's
  spinpark bench show records/2026-11-22-some-cpu.json --markdown";

/// Measure locks by themselves, and the workloads of the four documents
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Bench {
    /// List shapes, targets and workloads
    List(List),
    /// Many locks side by side, shape by shape
    ///
    /// Every run is a fresh process that does nothing but lock, and checks its own result. A round visits every cell (a
    /// shape at a number of threads) in shuffled order, and runs every target in it once, and the baseline twice.
    #[command(after_help = LOCKS_EXAMPLES)]
    Locks(Box<Locks>),
    Grid(Box<Grid>),
    /// pthread locks, glibc's against spinpark's
    ///
    /// As `bench locks`, with the drop-in against glibc, in shapes of which every program has some.
    #[command(after_help = PTHREAD_EXAMPLES)]
    Pthread(Box<Locks>),
    /// FreeBSD's mutex of 2006, each ingredient of its profiling by itself
    ///
    /// In 2006, a kernel became 38 % faster on one hot lock when its mutex profiling was compiled in, and nobody could say
    /// why. As `bench locks`, with that mutex as the baseline, and one target per thing that the profiling changes: which of
    /// them has an effect, here?
    #[command(after_help = MTX_EXAMPLES)]
    Mtx(Box<Locks>),
    /// What the recorder of `spinpark profile` costs, by how much it records
    ///
    /// As `bench locks`, with glibc's locks as the baseline, and the same locks with the recorder in front, once for each
    /// --detail: in pairs that nobody else wants, and on a lock that is always wanted. Each run records into a temporary
    /// directory of its own (in TMPDIR), which is removed after it.
    #[command(after_help = PROFILER_EXAMPLES)]
    Profiler(Box<Locks>),
    Creat(Box<Creat>),
    Mmap(Box<Mmap>),
    Faults(Box<Faults>),
    Scan(Box<Scan>),
    Jobs(Box<Jobs>),
    Mail(Box<Mail>),
    Select(Box<Select>),
    Condvar(Box<Condvar>),
    Documents(Documents),
    /// Print the result of an earlier run again, from its JSON file
    Show(Show),
}

const LOCKS_EXAMPLES: &str = "\
Examples:
  spinpark bench locks --quick --plots plots         a first look, with an SVG per shape
  spinpark bench locks --bounds --check              exit with 1 if a goal is missed
  spinpark bench locks --shape mixed-10 --threads 2,16 --rounds 15 --details
  spinpark bench locks --target glibc,drop-in,drop-in+SPINPARK_DISABLE=1 --shape pair-threaded
  spinpark bench locks --definition my-shapes.toml   shapes, targets and bounds of your own
  spinpark bench locks --record                      a dated record, to be kept

`spinpark bench list` lists shapes and targets; docs/bench.md describes them and the JSON.";

const PTHREAD_EXAMPLES: &str = "\
Examples:
  spinpark bench pthread                                    all its shapes
  spinpark bench pthread --shape pair-threaded --rounds 30  one of them, more precisely
  spinpark bench pthread --markdown                         as a table for a README
  spinpark bench pthread --target drop-in-disabled,drop-in  glibc pays for interposition, too";

const MTX_EXAMPLES: &str = "\
Examples:
  spinpark bench mtx                                        1, 2, 4 and 16 threads, about 4 minutes
  spinpark bench mtx --threads 2 --rounds 40                one number of threads, more precisely
  spinpark bench mtx --shape long,five-lines                other sections
  spinpark bench mtx --target classic-mtx,classic-mtx-counter,classic-mtx-add";

const PROFILER_EXAMPLES: &str = "\
Examples:
  spinpark bench profiler                                   every detail against no recorder, on glibc's locks
  spinpark bench profiler --bounds --check                  its goals; exit with 1 if one is missed
  spinpark bench profiler --shape pair-threaded --rounds 40 one shape, more precisely
  spinpark bench profiler --shape readers,queue --threads 2 --target glibc,glibc-recorded-full

The same on spinpark's locks (the shell writes the names out):
  spinpark bench profiler --baseline drop-in --target drop-in-recorded-{off,contended,sampled,full}

What it costs your own program: `spinpark profile --overhead -- PROGRAM`.";

/// What can be listed.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Add the shapes and targets of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
}

/// What is measured, how, and where the result goes.
#[derive(Debug, Args)]
pub(crate) struct Locks {
    /// Rounds over all cells; at least 6 [default: 7; pthread, mtx and profiler 15; --quick 6]
    #[arg(short, long, value_name = "N")]
    pub(crate) rounds: Option<usize>,

    /// Only these shapes
    #[arg(short, long = "shape", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) shapes: Vec<String>,

    /// Only these targets; NAME+VARIABLE=VALUE is one with an environment variable
    #[arg(short, long = "target", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) targets: Vec<String>,

    /// These numbers of threads, in shapes that allow several
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub(crate) threads: Vec<usize>,

    /// The target that others are compared with; it runs twice per round [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,

    /// Length of the counted phase of a run, in milliseconds [default: 100; pthread, profiler and --bounds 200; --quick 40]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) millis: Option<u64>,

    /// Fewer numbers of threads, shorter runs: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure exactly what the bounds need, and print which of them hold
    #[arg(long)]
    pub(crate) bounds: bool,

    /// Exit with 1 unless all bounds hold
    #[arg(long, requires = "bounds")]
    pub(crate) check: bool,

    /// All figures of every cell: CPU time, context switches, futex calls, waits, fairness
    #[arg(long)]
    pub(crate) details: bool,

    /// Print Markdown tables
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Write all data to this file. Without a file, or with `-`: to standard output, and the tables to standard error
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Write a dated record, `DATE-CPU.json`, into this directory
    #[arg(long, value_name = "DIRECTORY", num_args = 0..=1, default_missing_value = "records")]
    pub(crate) record: Option<PathBuf>,

    /// Draw a plot per shape (SVG) into this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) plots: Option<PathBuf>,

    /// Add the shapes, targets and bounds of this file; its shapes are run, unless --shape says otherwise
    #[arg(long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,

    /// Repeat the order of runs of an earlier benchmark; otherwise it is random, and printed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Which result, and how.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A file that --json or --record wrote
    pub(crate) file: PathBuf,

    /// All figures of every cell
    #[arg(long)]
    pub(crate) details: bool,

    /// Print Markdown tables
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Draw a plot per shape (SVG) into this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) plots: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) grid: GridShown,
}
