//! The command line of `spinpark-lab sim replay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use spinpark_cli::line::format::TableOrJson;
use spinpark_cli::line::numbers::{SEEDS, threads, whole};
use spinpark_cli::line::units::between;

const EXAMPLES: &str = "\
Examples:
  spinpark profile --detail full --output rec -- ./server-test 1000
  spinpark-lab sim replay rec --machine big-512:64                   on 64 cores
  spinpark-lab sim replay rec --machine epyc-7r13-96 --threads 64    with 64 threads
  spinpark-lab sim replay rec --locks classic-mutex-fixed,spinpark --json replay.json

The result is an estimate. The command prints what the recording lacks, and what it assumes instead. It first simulates the program as it was recorded; if that is off by more than the model's error, there is no prediction, and the exit status is 1. notes/sim-accuracy.md compares such estimates with measurements.";

/// Predict a recorded program's throughput on a simulated machine, and the lock that limits it
///
/// Its locks, their shares of the acquisitions, the times for which they were held and the time between two
/// acquisitions become a workload.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Replay {
    /// A directory of `spinpark profile --detail full` (or `sampled`), one of its recordings, or its
    /// profile.json
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: PathBuf,

    /// The machine: a name of `spinpark-lab sim list`, a file, or plain-N; NAME:N uses its first N CPUs, NAME:N/Q
    /// with a quota of Q CPUs
    #[arg(short, long, value_name = "NAME", default_value = "big-512:64")]
    pub(crate) machine: String,

    /// A machine like the one that it was recorded on: its recording has to be reproduced there first
    /// [default: plain-N, with as many CPUs as the program could use]
    #[arg(long, value_name = "NAME")]
    pub(crate) recorded_on: Option<String>,

    /// Number of threads [default: as many as did not wait for signals when it was recorded]
    #[arg(short, long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<u32>,

    /// Mutexes to compare; classic-mutex-2003 works as glibc's
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',',
          default_value = "classic-mutex-2003,spinpark")]
    pub(crate) locks: Vec<String>,

    /// The process, by its id, if several were recorded [default: the one with the most acquisitions]
    #[arg(long, value_name = "PID", value_parser = whole::<u32>(1..=u32::MAX.into(), 4711))]
    pub(crate) process: Option<u32>,

    /// The first seed; the others follow it
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>(0..=u64::MAX, 1))]
    pub(crate) seed: u64,

    /// Virtual time of a run: 500us, 20ms, 1s
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = between("1ns", "1000s"))]
    pub(crate) duration: Duration,

    /// Number of seeds, which is how often everything runs
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<usize>(SEEDS, 5))]
    pub(crate) seeds: usize,

    #[command(flatten)]
    pub(crate) out: TableOrJson,
}
