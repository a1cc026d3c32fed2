//! The command line of `spinpark-lab sim native`.

use std::path::PathBuf;

use clap::Args;

use spinpark_cli::line::format::TableOrJson;
use spinpark_cli::line::numbers::whole;

const EXAMPLES: &str = "\
Examples:
  spinpark-lab sim native                       the simulator against this machine, in some minutes
  spinpark-lab sim native --machine mine.toml   with what `spinpark-lab sim calibrate` found
  spinpark-lab sim native --quick --json accuracy.json
  spinpark-lab sim native --machine mine.toml --measured accuracy.json   simulate again only

Exit status 1: a bound is missed.";

/// Compare the simulator with this machine
///
/// Measures this machine's primitives (or takes a machine file), then runs the same locks under the same
/// loads here and in the simulator, in 1, 2 and 4 threads on 1 and 2 CPUs, and prints both throughputs and
/// how far they are apart. Let nothing else run meanwhile.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Native {
    /// The machine to simulate: a file, or a name of `spinpark-lab sim list` [default: this machine, measured]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) machine: Option<String>,

    /// Fewer and shorter runs: a minute, with larger errors
    #[arg(long)]
    pub(crate) quick: bool,

    /// Rounds: how often each case runs here; its figure is the median [default: 5; --quick 3]
    #[arg(short, long, value_name = "N", value_parser = whole::<usize>(1..=1000, 10))]
    pub(crate) rounds: Option<usize>,

    /// Run only these workloads
    #[arg(short, long = "workload", value_name = "NAME", value_delimiter = ',')]
    pub(crate) workloads: Vec<String>,

    /// Take the measurements of a file that --json wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) measured: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) out: TableOrJson,
}
