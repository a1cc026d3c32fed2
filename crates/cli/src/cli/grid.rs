//! The command line of `spinpark bench grid`.

use std::path::PathBuf;

use clap::Args;
use spinpark_lockbench::grid::figure::{Against, Figure};

const EXAMPLES: &str = "\
Examples:
  spinpark bench grid --quick                        a thinned grid, some minutes
  spinpark bench grid --plane mutex --threads 2,16   one plane, two numbers of threads
  spinpark bench grid --plane mutex --threads 2 --section 100,200 --outside 0,100,200 --rounds 15
  spinpark bench grid --plane queue --target glibc,parking_lot,drop-in --no-waits
  spinpark bench grid --bounds --check               judge the planes; exit with 1 unless all bounds hold
  spinpark bench grid --json grid.json --html grid.html
  spinpark bench show grid.json --figure cpu --against glibc

docs/grid.md says how to read it.";

/// Locks over planes of parameters, as heat maps
///
/// Planes are section × outside × threads for a mutex (and four variations), the same × writes for a read-write lock, bounded
/// queues, and threads that hand work over. Each cell runs every target, in shuffled rounds over all cells. The heat map shows ours ÷ the
/// best peer of each cell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Grid {
    /// Only these planes: mutex, mutex-exponential, mutex-five-lines, mutex-eight-locks, mutex-bursts, rwlock, queue, handoff
    #[arg(short, long = "plane", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) planes: Vec<String>,

    /// Only these targets; the first one runs twice per round, which shows the noise. NAME+VARIABLE=VALUE is a target with an
    /// environment variable
    #[arg(short, long = "target", visible_alias = "targets", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) targets: Vec<String>,

    /// These numbers of threads (not of queues)
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub(crate) threads: Vec<usize>,

    /// These lengths of the section, in iterations of about 2 ns
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub(crate) section: Vec<u32>,

    /// These lengths of the work outside, in iterations
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub(crate) outside: Vec<u32>,

    /// These writes in a thousand operations of a read-write lock
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub(crate) writes: Vec<u16>,

    /// This work on an item of a queue, and between hand-overs, in iterations
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub(crate) work: Vec<u32>,

    /// Rounds over all cells; intervals need 6 [default: 7; --quick 3]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) rounds: Option<u64>,

    /// Length of the counted phase of a run, in milliseconds; longer with many threads [default: 50; --quick 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) millis: Option<u64>,

    /// A thinned grid, fewer and shorter rounds: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Do not time waits: half of the time, without the figures wait-p999 and longest-wait
    #[arg(long)]
    pub(crate) no_waits: bool,

    #[command(flatten)]
    pub(crate) shown: GridShown,

    /// Judge the bounds of the planes that are measured
    #[arg(long)]
    pub(crate) bounds: bool,

    /// Exit with 1 unless all bounds hold
    #[arg(long, requires = "bounds")]
    pub(crate) check: bool,

    /// Write all data to this file. Without a file, or with `-`: to standard output, and the tables to standard error
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Write a dated record, `DATE-CPU-grid.json`, into this directory
    #[arg(long, value_name = "DIRECTORY", num_args = 0..=1, default_missing_value = "records")]
    pub(crate) record: Option<PathBuf>,

    /// Repeat the order of runs of an earlier benchmark; otherwise it is random, and printed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// How a grid is shown.
#[derive(Debug, Clone, Args)]
pub(crate) struct GridShown {
    /// The figure of a grid: throughput, cpu, wait-p999, longest-wait, futex, switches, ideal [default: throughput]
    #[arg(long, value_name = "NAME")]
    pub(crate) figure: Option<Figure>,

    /// What ours is divided by in a grid: best (the best peer of each cell), glibc, ideal, or any target [default: best]
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,

    /// Write the heat maps of a grid to this file, as a page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the figures of a grid to this file, a line per cell and target
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

impl GridShown {
    /// Whether an option was given.
    pub(crate) fn is_given(&self) -> bool {
        self.figure.is_some() || self.against.is_some() || self.html.is_some() || self.csv.is_some()
    }

    /// What is asked for.
    pub(crate) fn against(&self) -> Against {
        self.against.clone().map_or(Against::Best, Against::from)
    }
}
