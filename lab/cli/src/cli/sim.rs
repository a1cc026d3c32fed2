//! The command line of `spinpark-lab sim`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use spinpark_experiments::shards::Shard;

use spinpark_cli::line::format::{self, Format, TableOrJson};
use spinpark_cli::line::numbers::{SEEDS, threads, whole};
use spinpark_cli::line::units::between;

const SIM_EXAMPLES: &str = "\
Examples:
  spinpark-lab sim list                             machines, locks, workloads, tables
  spinpark-lab sim run --machine westmere-ex-40 --locks classic-rwsem-3.12 --workload mixed-10
  spinpark-lab sim sweep --machine big-512 --locks spinpark,classic-mutex-fixed --threads 1,64,2048
  spinpark-lab sim replay rec --machine big-512:64  a recorded program on 64 cores: an estimate
  spinpark-lab sim tables --quick                   the documents' tables, published and simulated
  spinpark-lab sim machine westmere-ex-40           a machine's figures, and where they come from
  spinpark-lab sim calibrate --output mine.toml     this machine as a file
  spinpark-lab sim native                           how far the simulator is from this machine

Two more commands check the simulator against this machine; `--help` describes each:
  spinpark-lab sim calibrate   measures this machine, and writes a machine file
  spinpark-lab sim native      compares simulated and measured throughput

The simulator runs the lock sources of the library on a simulated machine whose figures all have a source. Its results are those of the model; docs/sim.md lists its limits.";

/// Simulate a machine with many cores, and locks on it
#[derive(Debug, Subcommand)]
#[command(after_long_help = SIM_EXAMPLES)]
pub(crate) enum Sim {
    /// List machines, locks, workloads and tables
    #[command(after_long_help = "Examples:\n  spinpark-lab sim list")]
    List,
    Machine(ShowMachine),
    Run(Box<SimRun>),
    Sweep(Box<Sweep>),
    Merge(Merge),
    Replay(super::Replay),
    Tables(Tables),
    #[command(hide = true)]
    Calibrate(Calibrate),
    #[command(hide = true)]
    Native(super::Native),
}

const MACHINE_EXAMPLES: &str = "\
Examples:
  spinpark-lab sim machine nehalem-ex-64
  spinpark-lab sim machine ./mine.toml         a file of your own: docs/machines.md describes it
  spinpark-lab sim machine plain-8             8 cores in round figures
  spinpark-lab sim machine big-512:64 --json   the first 64 of its CPUs";

/// Show a machine: every figure, and where it comes from
#[derive(Debug, Args)]
#[command(after_long_help = MACHINE_EXAMPLES)]
pub(crate) struct ShowMachine {
    /// A machine of `spinpark-lab sim list`, a file, or plain-N; NAME:N is its first N CPUs
    #[arg(value_name = "NAME|FILE")]
    pub(crate) machine: String,

    /// Format of standard output [default: table]
    #[arg(long, value_name = "FORMAT", value_parser = format::parser([Format::Table, Format::Json]))]
    pub(crate) format: Option<Format>,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = format::JSON_ONLY)]
    pub(crate) json: Option<PathBuf>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  spinpark-lab sim run                                         ours, on a hot lock, on 64 cores
  spinpark-lab sim run --machine core2-4 --locks classic-mutex-2.6.34 --threads 16
  spinpark-lab sim run --workload mixed-10 --threads 256 --duration 100ms --seeds 20
  spinpark-lab sim run --machine big-512:64 --trace run.json   for https://ui.perfetto.dev
  spinpark-lab sim run --seed 7 --seeds 1 --json

The same request prints the same bytes: a seed decides everything. How fast the simulator was goes to standard error.";

/// Simulate one lock under one workload: the bottleneck, where threads wait, for how long
#[derive(Debug, Args)]
#[command(after_long_help = RUN_EXAMPLES)]
pub(crate) struct SimRun {
    /// The machine: a name of `spinpark-lab sim list`, a file, or plain-N; NAME:N uses its first N CPUs, NAME:N/Q
    /// with a quota of Q CPUs
    #[arg(short, long, value_name = "NAME", default_value = "big-512:64")]
    pub(crate) machine: String,

    /// The lock to simulate: a name of `spinpark-lab sim list`
    #[arg(short, long = "locks", value_name = "NAME", default_value = "spinpark", value_parser = one_name)]
    pub(crate) lock: String,

    /// The workload to simulate: a name of `spinpark-lab sim list`
    #[arg(short, long, value_name = "NAME", default_value = "hot-lock", value_parser = one_name)]
    pub(crate) workload: String,

    /// Number of threads [default: the machine's CPUs]
    #[arg(short, long, value_name = "N", value_parser = one_number)]
    pub(crate) threads: Option<u32>,

    /// The first seed; the others follow it
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>(0..=u64::MAX, 1))]
    pub(crate) seed: u64,

    /// Virtual time of a run: 500us, 20ms, 1s
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = between("1ns", "1000s"))]
    pub(crate) duration: Duration,

    /// Number of seeds, which is how often everything runs
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<usize>(SEEDS, 5))]
    pub(crate) seeds: usize,

    /// Write a timeline of the first seed to this file, for https://ui.perfetto.dev: CPUs, waits and holds
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) out: TableOrJson,
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  spinpark-lab sim sweep --machine big-512:64 --threads 1,4,16,64,256
  spinpark-lab sim sweep --machine core2-4 --locks classic-mutex-2.6.34,classic-mutex-fixed
  spinpark-lab sim sweep --workload mixed-1,mixed-10 --html sweep.html --csv sweep.csv
  spinpark-lab sim sweep --shard 3/8 --json-lines 3.jsonl   an eighth of it, for `sim merge`

Runs go side by side on all CPUs, the longest ones first. A lock is marked if it is below the best one of its cell by more than the seeds' spread.";

/// Simulate many locks at many numbers of threads
#[derive(Debug, Args)]
#[command(after_long_help = SWEEP_EXAMPLES)]
pub(crate) struct Sweep {
    /// Machines: names of `spinpark-lab sim list`, files, or plain-N; NAME:N uses the first N CPUs, NAME:N/Q with
    /// a quota of Q CPUs
    #[arg(short, long = "machine", value_name = "NAME", num_args = 1.., value_delimiter = ',',
          default_value = "big-512:64")]
    pub(crate) machines: Vec<String>,

    /// Locks to compare [default: all that the workload can use]
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) locks: Vec<String>,

    /// Workloads to simulate: names of `spinpark-lab sim list`
    #[arg(short, long = "workload", value_name = "NAME", num_args = 1.., value_delimiter = ',',
          default_value = "hot-lock")]
    pub(crate) workloads: Vec<String>,

    /// Numbers of threads [default: 1, 2, 4 … up to twice the CPUs of the largest machine]
    #[arg(short, long, value_name = "N", num_args = 1.., value_delimiter = ',', value_parser = threads)]
    pub(crate) threads: Vec<u32>,

    /// The first seed; the others follow it
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>(0..=u64::MAX, 1))]
    pub(crate) seed: u64,

    /// Virtual time of a run: 500us, 20ms, 1s
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = between("1ns", "1000s"))]
    pub(crate) duration: Duration,

    /// Number of seeds, which is how often everything runs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<usize>(SEEDS, 5))]
    pub(crate) seeds: usize,

    /// Make part K of N of the runs; `spinpark-lab sim merge` puts the parts together
    #[arg(long, value_name = "K/N", requires = "json_lines")]
    pub(crate) shard: Option<Shard>,

    #[command(flatten)]
    pub(crate) shown: Swept,
}

/// What is reported about a sweep, and where
#[derive(Debug, Args)]
pub(crate) struct Swept {
    /// What limits, waits, fairness, cache lines and CPUs besides throughput
    #[arg(long)]
    pub(crate) details: bool,

    /// Format of standard output [default: table]
    #[arg(long, value_name = "FORMAT", value_parser = format::parser([Format::Table, Format::Json, Format::Csv]))]
    pub(crate) format: Option<Format>,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = format::JSON)]
    pub(crate) json: Option<PathBuf>,

    /// Write a row for each lock of each cell to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Write tables and plots to this HTML file, which needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Draw a plot for each machine and workload, and one of throughput and CPU time for each
    /// machine (SVG) into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,

    /// Write a line of JSON for each run to this file, in a fixed order; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json_lines: Option<PathBuf>,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  spinpark-lab sim sweep --threads 1,8,64 --shard 1/2 --json-lines 1.jsonl  here
  spinpark-lab sim sweep --threads 1,8,64 --shard 2/2 --json-lines 2.jsonl  on another machine
  spinpark-lab sim merge 1.jsonl 2.jsonl --details --html sweep.html
  spinpark-lab sim merge *.jsonl --json-lines all.jsonl   what a sweep without --shard writes
  parallel spinpark-lab sim sweep --shard {}/8 --json-lines - ::: 1 2 3 4 5 6 7 8 |
      spinpark-lab sim merge -

docs/sim.md has recipes for GNU parallel and Slurm.";

/// Merge the shards of a sweep: its tables, plots and lines, as one sweep has them
#[derive(Debug, Args)]
#[command(after_long_help = MERGE_EXAMPLES)]
pub(crate) struct Merge {
    /// Files of `spinpark-lab sim sweep --json-lines`, in any order; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) shown: Swept,
}

const TABLES_EXAMPLES: &str = "\
Examples:
  spinpark-lab sim tables --quick                        all tables, a first look
  spinpark-lab sim tables 001                            all of document 001
  spinpark-lab sim tables 001 002 003 004                without ours
  spinpark-lab sim tables ours-64                        our mutex and the classics: about 2 minutes
  spinpark-lab sim tables 003-signal --html tables.html --json tables.json

A table takes seconds with --quick, and up to 5 minutes without (ours-512, on two CPUs); all take about 9. Ctrl-C ends it: tables that are done are \
printed and written, the one under way is not.

Exits with 1 if a bound is missed; the missed ones are listed at the end. With --quick, bounds may be missed by chance.";

/// The four documents' tables: published and simulated
#[derive(Debug, Args)]
#[command(after_long_help = TABLES_EXAMPLES)]
pub(crate) struct Tables {
    /// Tables of `spinpark-lab sim list`, or documents (001); all, if none is named
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Short runs, few seeds: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    #[command(flatten)]
    pub(crate) out: TableOrJson,

    /// Write the tables to this HTML file, which needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// A run has one of each; several are for a sweep.
fn one_name(text: &str) -> Result<String, String> {
    if text.contains(',') {
        return Err(String::from("`sim run` takes one; `spinpark-lab sim sweep` takes several"));
    }
    Ok(text.to_owned())
}

fn one_number(text: &str) -> Result<u32, String> {
    threads(&one_name(text)?)
}

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  spinpark-lab sim calibrate --output mine.toml              measure this machine, in about a minute
  spinpark-lab sim calibrate --rounds 15 --output mine.toml  on a machine that is not idle
  taskset -c 0-7 spinpark-lab sim calibrate                  only these CPUs; to standard output

Figures that no program can measure are taken from what the kernel says or is known for, and say so.";

/// Measure this machine, and write a machine file for the simulator
///
/// Measures primitives (cache misses, system calls, wake-ups, switches …), never locks: the simulator's
/// results for locks on this machine are predictions. Let nothing else run meanwhile.
#[derive(Debug, Args)]
#[command(after_long_help = CALIBRATE_EXAMPLES)]
pub(crate) struct Calibrate {
    /// The machine file to write; without it, it goes to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The machine's name in the file [default: that of the file, or `mine`]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Rounds: how often everything is measured; each figure is the median
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = whole::<usize>(1..=1000, 15))]
    pub(crate) rounds: usize,
}
