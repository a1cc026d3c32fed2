//! The command line of `spinpark bench WORKLOAD`.

use std::path::PathBuf;

use clap::Args;
use serde::de::DeserializeOwned;
use spinpark_bench::workloads::mmap::Touch;
use spinpark_bench::workloads::serial::Sections;

/// What every workload takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Rounds over all cells; 6 or more for intervals and verdicts
    #[arg(short, long, visible_alias = "rounds", value_name = "N", default_value_t = 10,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub(crate) repeat: usize,

    /// The arm that others are compared with; it runs twice per round [default: the first one]
    #[arg(long, value_name = "ARM")]
    pub(crate) baseline: Option<String>,

    /// What operations cost, how evenly tasks were served, and more
    #[arg(long)]
    pub(crate) details: bool,

    /// Write all data to this file. `-`, or no file, is standard output; the tables go to standard error then
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Repeat the order of runs of an earlier benchmark; otherwise it is random, and printed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// How long a run counts.
#[derive(Debug, Args)]
pub(crate) struct Length {
    /// Length of the counted phase of a run, in milliseconds [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600_000), conflicts_with = "seconds")]
    pub(crate) millis: Option<u64>,

    /// The same in seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: Option<u64>,
}

impl Length {
    /// In milliseconds.
    pub(crate) fn millis(&self) -> u64 {
        const DEFAULT: u64 = 200;
        self.seconds.map(|seconds| seconds * 1000).or(self.millis).unwrap_or(DEFAULT)
    }
}

/// Reads a word of a list that a workload defines; the error names them all.
fn named<T: DeserializeOwned>(word: &str) -> Result<T, String> {
    serde_json::from_value(word.into()).map_err(|error| error.to_string())
}

const LOCKS: &str = "Whose mutexes: a target of `bench list`, or a family";

const MMAP_EXAMPLES: &str = "\
Examples:
  spinpark bench mmap                                         the documents' tables, glibc's mutex and ours
  spinpark bench mmap --touch all --threads 1,2,4 --lock glibc,std,parking_lot,usync,spinpark
  spinpark bench mmap --serialize none,iteration,calls --touch none
  spinpark bench mmap --serialize iteration --lock glibc,drop-in    a lock against another";

/// Threads that map 1 MB, write to it or not, and unmap it: plain or under a mutex
///
/// Document 002: is a mutex around the kernel's own lock faster? The columns are the documents': means, standard
/// deviations in %, and the change against the plain variant.
#[derive(Debug, Args)]
#[command(after_help = MMAP_EXAMPLES)]
pub(crate) struct Mmap {
    /// Numbers of threads
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 10, 20, 40])]
    pub(crate) threads: Vec<usize>,

    /// What is written between the calls: none, all (every 8 bytes: 256 page faults)
    #[arg(long, value_name = "WHAT", num_args = 1.., value_delimiter = ',', value_parser = named::<Touch>, default_value = "none,all")]
    pub(crate) touch: Vec<Touch>,

    /// What the mutex is held for: none (plain), iteration, calls (one section around each call)
    #[arg(long, value_name = "WHAT", num_args = 1.., value_delimiter = ',', value_parser = named::<Sections>, default_value = "none,iteration")]
    pub(crate) serialize: Vec<Sections>,

    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',', default_value = "glibc,spinpark", help = LOCKS)]
    pub(crate) lock: Vec<String>,

    #[command(flatten)]
    pub(crate) length: Length,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct WorkloadWorker {
    pub(crate) request: String,
}
