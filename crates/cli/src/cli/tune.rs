//! The command line of `tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::Measuring;
use super::gate::MetricChoice;
use crate::line::format::TableOrJson;
use crate::line::numbers::whole;

const EXAMPLES: &str = "\
Examples:
  spinpark tune -- ./server-test 1000            the three locks with the most waiting; wall time
  spinpark tune --metric cpu -- ./server-test    what costs less CPU time, and no more wall time?
  spinpark tune --lock cache_lock --rounds 20 -- ./server-test
  spinpark tune --metric-from-output 'tps: ([0-9.]+)' --higher-is-better -- ./load-test
  spinpark tune --writers-first --lock table -- ./server-test    must writers of `table` be prompt?
  spinpark run --policy spinpark-policy.toml -- ./server-test    use what it has found

One run is recorded, on spinpark's locks. Then each round runs the default, the default again, and each policy of each lock, in shuffled order. Of each lock, the best policy that is better than the default beyond the noise is measured again, in as many fresh rounds; only what is better there, too, is written. The policies are for this build of the program.";

/// Find better policies for single locks than the default
///
/// A policy says whether threads spin for a lock, back off, sleep at once, or get it in order, and whether readers of a
/// read-write lock use slots. The default learns that; few locks are better off with another.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Tune {
    #[command(flatten)]
    pub(crate) measuring: Measuring,

    /// What is to be better [default: the number of --metric-from-output, else wall time]
    #[arg(long, value_enum, conflicts_with = "metric_from_output")]
    pub(crate) metric: Option<MetricChoice>,

    /// Try this number of locks, those with the most waiting
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<usize>(1..=32, 3))]
    pub(crate) top: usize,

    /// Try this lock, by its name in the report; several times for several
    #[arg(long, value_name = "NAME", conflicts_with = "top")]
    pub(crate) lock: Vec<String>,

    /// Try `writers-first`, too: only for programs in which no thread waits for another thread's read
    ///
    /// With it, readers do not join readers past a waiting writer. Where a thread that holds a lock waits for another
    /// thread to read it, and a writer has come before, the three wait for ever.
    #[arg(long)]
    pub(crate) writers_first: bool,

    /// Write the policies to this file
    #[arg(short, long, value_name = "FILE", default_value = "spinpark-policy.toml")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) out: TableOrJson,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}
