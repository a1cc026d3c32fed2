//! The command line of `spinpark sim native`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  spinpark sim native                         how far the simulator is from this machine, in a few minutes
  spinpark sim native --machine mine.toml     with what `spinpark sim calibrate` found
  spinpark sim native --quick --json accuracy.json
  spinpark sim native --machine mine.toml --measured accuracy.json    simulate again, measure nothing

Exit status 1: a bound is missed.";

/// Compare the simulator with this machine
///
/// Measures this machine's primitives (or takes a machine file), then runs the same locks under the same loads here and in
/// the simulator, in 1, 2 and 4 threads on 1 and 2 CPUs, and prints both throughputs and how far they are apart. Let nothing
/// else run meanwhile.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Native {
    /// The machine to simulate: a file, or a name that `spinpark sim list` shows; otherwise this one is measured
    #[arg(long, value_name = "FILE")]
    pub(crate) machine: Option<String>,

    /// Fewer and shorter runs: a minute, and less sure
    #[arg(long)]
    pub(crate) quick: bool,

    /// How often each case runs here; its figure is the median [default: 5; with --quick, 3]
    #[arg(short, long, value_name = "N",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: Option<usize>,

    /// Only these shapes
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) shape: Vec<String>,

    /// Take what was measured here from a file that --json wrote, instead of measuring
    #[arg(long, value_name = "FILE")]
    pub(crate) measured: Option<PathBuf>,

    /// Write all data to this file; without a file, or with `-`: to standard output, and the table to standard error
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
}
