//! The command line of `spinpark sim`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Simulate a machine with many cores
#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    Calibrate(Calibrate),
}

const EXAMPLES: &str = "\
Examples:
  spinpark sim calibrate --out mine.toml             measure this machine, in about a minute
  spinpark sim calibrate --rounds 15 --out mine.toml    where others compute too
  taskset -c 0-7 spinpark sim calibrate              only these CPUs, the file on standard output

Figures that no program can measure are taken from what the kernel says or is known for, and say so.";

/// Measure this machine, and write a machine file for the simulator
///
/// Measures primitives (cache misses, system calls, wake-ups, switches …), never locks: what the simulator says about locks
/// on this machine is a prediction. Let nothing else run meanwhile.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Calibrate {
    /// The machine file to write; without it, it goes to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// The machine's name in the file [default: that of the file, or `mine`]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// How often everything is measured; each figure is the median
    #[arg(short, long, value_name = "N", default_value_t = 5,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
}
