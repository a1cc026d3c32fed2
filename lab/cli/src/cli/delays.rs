//! The command line of `spinpark-lab documents delays`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use spinpark_cli::line::format::{self, TableOrJson};
use spinpark_cli::line::numbers::{ROUNDS, THREADS, whole};
use spinpark_cli::line::units::{between, from_start, whole_ms};
use spinpark_documents::mtx_2006::delays::Place;

const EXAMPLES: &str = "\
Examples:
  spinpark-lab documents delays --quick                this machine, in about 20 s
  spinpark-lab documents delays --machine e4500-12     document 004's machine, simulated: 1 min
  spinpark-lab documents delays --machine e4500-12 --place attempt --delay 4us,6us,8us --details
  spinpark-lab documents delays --csv delays.csv --plots plots --json delays.json

Places:
  before   before the first attempt of each acquisition
  attempt  after each failed attempt
  poll     between two looks at an owner that runs
  inside   inside each section
  after    after each release
  wake     before each wake-up

One such lock: `spinpark-lab sim run --locks classic-mtx-delayed+attempt=6us`; it is a lock of
`bench locks` and `documents mtx`, too. docs/riddle-2006.md has the results.";

/// Map where a delay makes FreeBSD's mutex of 2006 faster, of which length, under which load (document 004)
///
/// Profiling made a kernel 38 % faster in 2006, perhaps since it delays. Each place of the mutex at which a
/// thread can be held up has a map: throughput with the delay ÷ without, over the length of the delay and the
/// time between two sections of a thread.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DelaysMap {
    /// Simulate this machine instead of measuring this one: a name of `spinpark-lab sim list`, or a file; with
    /// the workload `select`, and a thread per CPU
    #[arg(short, long, value_name = "NAME")]
    pub(crate) machine: Option<String>,

    /// Only these places: before, attempt, poll, inside, after, wake
    #[arg(long = "place", value_name = "WHERE", num_args = 1.., value_delimiter = ',', value_parser = place)]
    pub(crate) places: Vec<Place>,

    /// Lengths of the delay, as in 500ns,6us
    #[arg(long = "delay", value_name = "TIME", num_args = 1.., value_delimiter = ',', value_parser = between("1ns", "1s"))]
    pub(crate) delays: Vec<Duration>,

    /// Times between two sections of a thread, as in 0,1us (on this machine, about)
    #[arg(long, value_name = "TIME", num_args = 1.., value_delimiter = ',', value_parser = at_most_a_second)]
    pub(crate) between: Vec<Duration>,

    /// Number of threads [default: the CPUs, at most 12]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(THREADS, 2), conflicts_with = "machine")]
    pub(crate) threads: Option<usize>,

    /// Rounds over all cells; at least 6 [default: 9; --quick 6]
    #[arg(short, long, value_name = "N", value_parser = whole::<usize>(ROUNDS, 9), conflicts_with = "machine")]
    pub(crate) rounds: Option<usize>,

    /// Number of seeds of a simulation; at least 2 [default: 3; --quick 2]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(2..=100_000, 5), requires = "machine")]
    pub(crate) seeds: Option<usize>,

    /// Length of a run, virtual if it is simulated [default: 50ms; --quick 20ms]
    #[arg(long, value_name = "TIME", value_parser = whole_ms("60s"))]
    pub(crate) duration: Option<Duration>,

    /// Few lengths, short runs: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Print what the simulation counted: failed attempts, cache lines, how long the lock was held and free
    #[arg(long, requires = "machine")]
    pub(crate) details: bool,

    #[command(flatten)]
    pub(crate) out: TableOrJson,

    /// Write a row for each cell to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Draw a heat map for each place (SVG) into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,

    #[arg(long, value_name = "N", help = format::SEED, value_parser = whole::<u64>(0..=u64::MAX, 1), conflicts_with = "machine")]
    pub(crate) seed: Option<u64>,
}

fn place(word: &str) -> Result<Place, String> {
    Place::by_name(word).ok_or_else(|| {
        let names = Place::ALL.map(Place::name).join(", ");
        format!("a place is one of {names}")
    })
}

fn at_most_a_second(text: &str) -> Result<Duration, String> {
    match from_start(text)? {
        time if time <= Duration::from_secs(1) => Ok(time),
        _ => Err(String::from("the time must be at most 1s")),
    }
}
