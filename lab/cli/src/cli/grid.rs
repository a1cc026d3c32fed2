//! The command line of `spinpark-lab bench grid`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use spinpark_lockbench::locks::figure::{Against, Figure};

use spinpark_cli::line::format::{self, Format};
use spinpark_cli::line::numbers::{THREADS, whole};
use spinpark_cli::line::units::whole_ms;

const EXAMPLES: &str = "\
Examples:
  spinpark-lab bench grid --quick                        a thinned grid, some minutes
  spinpark-lab bench grid --plane mutex --threads 2,16   one plane, two numbers of threads
  spinpark-lab bench grid --plane mutex --threads 2 --section 100,200 --non-critical 0,100
  spinpark-lab bench grid --plane queue --locks glibc,parking_lot,drop-in --no-waits
  spinpark-lab bench grid --bounds --check               exit with 1 if a bound is missed
  spinpark-lab bench grid --json grid.json --html grid.html
  spinpark-lab bench show grid.json --figure cpu --against glibc

docs/grid.md says how to read it.";

/// Measure implementations over planes of parameters, as heat maps
///
/// Planes are section × non-critical section × threads for a mutex (and four variations), the same × writes
/// for a read-write lock, bounded queues, threads that hand work over, and pipelines; some again on one CPU,
/// and with bound threads. Each cell runs every implementation, in shuffled rounds over all cells. The heat
/// map shows ours ÷ the best peer of each cell.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Grid {
    /// Only these planes: mutex, mutex-exponential, mutex-five-lines, mutex-eight-locks, mutex-bursts,
    /// rwlock, rwlock-writers-first, rwlock-one-writer, queue, handoff, pipeline, mutex-one-cpu, mutex-bound, rwlock-one-cpu,
    /// rwlock-writers-first-one-cpu, queue-one-cpu, queue-bound, pipeline-one-cpu, pipeline-bound
    #[arg(short, long = "plane", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) planes: Vec<String>,

    /// Only these implementations; NAME+VARIABLE=VALUE sets an environment variable
    ///
    /// The first one runs twice per round, which shows the noise.
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) locks: Vec<String>,

    /// Numbers of threads (not for queues)
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = whole::<usize>(THREADS, 16))]
    pub(crate) threads: Vec<usize>,

    /// Lengths of the critical section, in iterations of about 2 ns
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = whole::<u32>(0..=u32::MAX.into(), 300))]
    pub(crate) section: Vec<u32>,

    /// Lengths of the non-critical section, in iterations of about 2 ns
    #[arg(long, alias = "outside", value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = whole::<u32>(0..=u32::MAX.into(), 300))]
    pub(crate) non_critical: Vec<u32>,

    /// Writes in a thousand operations of a read-write lock
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = whole::<u16>(0..=1000, 10))]
    pub(crate) writes: Vec<u16>,

    /// Work on an item of a queue, and between hand-overs, in iterations of about 2 ns
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = whole::<u32>(0..=u32::MAX.into(), 300))]
    pub(crate) work: Vec<u32>,

    /// Rounds over all cells; intervals need 6 [default: 7; --quick 3]
    #[arg(short, long, value_name = "N", value_parser = whole::<u64>(1..=1000, 7))]
    pub(crate) rounds: Option<u64>,

    /// Length of a measured run; longer with many threads [default: 50ms; --quick 30ms]
    #[arg(long, value_name = "TIME", value_parser = whole_ms("60s"))]
    pub(crate) duration: Option<Duration>,

    /// A thinned grid, fewer and shorter rounds: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Do not time waits: takes half as long, omits the figures wait-p999, longest-wait and write-wait
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

    /// Format of standard output [default: table]
    #[arg(long, value_name = "FORMAT", value_parser = format::parser([Format::Table, Format::Json, Format::Csv]))]
    pub(crate) format: Option<Format>,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = format::JSON)]
    pub(crate) json: Option<PathBuf>,

    /// Write a dated record, `DATE-CPU-grid.json`, into this directory [without a value: records]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "records")]
    pub(crate) record: Option<PathBuf>,

    #[arg(long, value_name = "N", help = format::SEED, value_parser = whole::<u64>(0..=u64::MAX, 1))]
    pub(crate) seed: Option<u64>,
}

/// How a grid is shown.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GridShown {
    /// The figure of a grid: throughput, cpu, wait-p999, longest-wait, writes, write-wait, futex,
    /// switches (voluntary), all-switches, ideal, time [default: throughput]
    #[arg(long, value_name = "NAME")]
    pub(crate) figure: Option<Figure>,

    /// What ours is divided by: best (the fastest peer of each cell), best-figure, ideal, or any
    /// implementation [default: best]
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,

    /// Write the heat maps of a grid to this file, as a page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the figures of a grid to this file, a line per cell and implementation
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
