//! The command line: names, help, examples. No logic.

mod bench;
mod documentation;
mod documents;
mod format;
mod formats;
mod grid;
mod help;
mod native;
mod numbers;
mod profile;
mod programs;
#[cfg(test)]
mod reference;
mod replay;
mod sim;
#[cfg(test)]
mod tests;
mod units;
mod workloads;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use spinpark_measure::configuration::Baseline;

pub(crate) use self::bench::{Bench, Locks, PresetChoice, Show};
pub(crate) use self::documentation::{Completions, Libraries, Man, is_internal, public};
pub(crate) use self::documents::{Documents, DocumentsRun};
pub(crate) use self::format::Format;
use self::format::TableOrJson;
pub(crate) use self::grid::{Grid, GridShown};
pub(crate) use self::help::command;
pub(crate) use self::native::Native;
use self::numbers::{ROUNDS, whole};
pub(crate) use self::profile::{DetailChoice, Diff, LocksChoice, Profile, Report, Showing, Top, ViewChoice};
pub(crate) use self::programs::{Mail, MailServer, Select};
pub(crate) use self::replay::Replay;
pub(crate) use self::sim::{Calibrate, Merge, ShowMachine, Sim, SimRun, Sweep, Swept, Tables};
pub(crate) use self::units::{millis, nanos};
pub(crate) use self::workloads::{Common, Condvar, Creat, Faults, Jobs, Mmap, Scan, WorkloadWorker};

const EXAMPLES: &str = "\
Examples:
  spinpark                               a demonstration: half a minute
  spinpark profile -- ./server-test 1    which lock does it wait for, and which thread holds it?
  spinpark compare -- ./server-test 1    would better locks make it faster?
  spinpark run -- ./server-test 1        run it on spinpark's locks
  spinpark bench locks --quick           locks side by side: spinpark's, glibc's, parking_lot's …
  spinpark sim run                       a lock on a simulated machine with 64 cores

Exit status:
  0    done
  1    the program failed, or did not print its number; with --check, a bound is missed
  2    invalid usage, unusable program, or drop-in not found
  130  interrupted; what was measured so far was printed
  `spinpark profile` exits as the program does
  `spinpark run` exits as the program does, or with 127 (not found), 126 (not executable), 125

Environment:
  SPINPARK_PRELOAD   path of libspinpark_preload.so, instead of the one in this command
  SPINPARK_PROFILER  path of libspinpark_profiler.so, likewise
  NO_COLOR           no colours in tables

More commands:
  spinpark libraries             which libraries are preloaded, and from where
  spinpark completions bash      completions for a shell
  spinpark man DIR               manual pages";

/// Find the lock that a threaded program waits for, and try better locks without a rebuild.
///
/// `profile` names the lock, its holder and its waiters. `compare` measures whether spinpark's mutexes,
/// read-write locks and condition variables make the program faster than glibc's; `run` uses them. Without a
/// command, spinpark compares a demonstration program.
#[derive(Debug, Parser)]
#[command(name = "spinpark", version, after_long_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Profile(Box<Profile>),
    Report(Report),
    Diff(Diff),
    Top(Top),
    Compare(Box<Compare>),
    Run(Run),
    #[command(subcommand)]
    Bench(Bench),
    #[command(subcommand)]
    Sim(Sim),
    #[command(subcommand)]
    Documents(Documents),
    #[command(hide = true)]
    Libraries(Libraries),
    #[command(hide = true)]
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
    #[command(name = "__demo", hide = true)]
    Demo(Demo),
    #[command(name = "__profile-cost", hide = true)]
    ProfileCost,
    #[command(name = "__bench-worker", hide = true)]
    Worker(Worker),
    #[command(name = "__workload-worker", hide = true)]
    WorkloadWorker(WorkloadWorker),
    #[command(name = spinpark_documents::rwsem_2013::mail::SERVER, hide = true)]
    MailServer(MailServer),
}

impl Cli {
    /// Makes `--format json` what `--json` is.
    pub(crate) fn apply_formats(&mut self) -> Result<(), String> {
        self.command.as_mut().map_or(Ok(()), Command::apply_formats)
    }
}

const RUN_EXAMPLES: &str = "\
Examples:
  spinpark run -- ./server --port 8080
  SPINPARK_VERBOSE=1 spinpark run -- ./server      the drop-in reports on stderr that it is active
  SPINPARK_DISABLE=1 spinpark run -- ./server      it is loaded, but glibc's locks are used";

/// Run a program on spinpark's locks
///
/// Sets LD_PRELOAD and becomes the program: same process, same terminal, same signals, its exit status. An
/// LD_PRELOAD that is set already stays in effect.
#[derive(Debug, Args)]
#[command(after_long_help = RUN_EXAMPLES)]
pub(crate) struct Run {
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  spinpark compare                                 the demonstration
  spinpark compare -- ./server-test 1000           wall time, CPU time, context switches, memory
  spinpark compare --rounds 30 -- ./server-test    more rounds, narrower intervals
  spinpark compare --json result.json -- ./server-test
  spinpark compare --metric-from-output 'transactions: .*\\(([0-9.]+) per sec' --higher-is-better \\
      --unit tps -- sysbench oltp_point_select run
  spinpark compare --against './old 1000' -- ./new 1000       two builds: is the new one faster?
  spinpark compare --prepare 'rm -f x.db' -- ./load x.db      the same start for each run
  spinpark compare -- sh -c './server & ./client; kill $!'    several programs at once

Each run is a fresh process. A round runs the program on glibc's locks, on glibc's locks again, and on spinpark's, in shuffled order. The change is the median over rounds of spinpark ÷ glibc, with a 95 % bootstrap interval. The noise is the far end of the same interval for the two glibc runs. The program's output is not shown.

With --against, a round runs the command of --against, the same again, and the program after `--`: `before`, `before again`, `after`.";

/// Compare a program on glibc's locks and on spinpark's, or two builds of a program
///
/// Without a program, a bundled demonstration is compared.
#[derive(Debug, Args)]
#[command(after_long_help = COMPARE_EXAMPLES)]
pub(crate) struct Compare {
    /// Rounds to measure, three runs each; at least 6
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = whole::<usize>(ROUNDS, 10))]
    pub(crate) rounds: usize,

    /// Compare a number that the program prints: group 1 of the last match of this regular expression
    ///
    /// Standard output and standard error are searched. ^ and $ match at line ends.
    #[arg(long, value_name = "REGEX")]
    pub(crate) metric_from_output: Option<String>,

    /// That number is better when it is larger (throughput); otherwise smaller is better (time)
    #[arg(long, requires = "metric_from_output")]
    pub(crate) higher_is_better: bool,

    /// The unit of that number, for the table
    #[arg(long, value_name = "UNIT", requires = "metric_from_output")]
    pub(crate) unit: Option<String>,

    /// Compare with this command instead: another build of the program, or other arguments
    ///
    /// It is split into words as a shell does it; nothing else is done by a shell. Any program will do, also
    /// one that cannot be interposed.
    #[arg(long, value_name = "COMMAND", conflicts_with = "baseline")]
    pub(crate) against: Option<OsString>,

    /// The locks of both commands, with --against
    #[arg(long, value_enum, default_value_t = LocksChoice::Glibc, requires = "against")]
    pub(crate) locks: LocksChoice,

    /// What the two glibc configurations run
    #[arg(long, value_enum, default_value_t = BaselineChoice::Glibc)]
    pub(crate) baseline: BaselineChoice,

    #[command(flatten)]
    pub(crate) out: TableOrJson,

    /// Give up on a run that takes longer than this: 500ms, 10s, 2min
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) timeout: Option<Duration>,

    /// Standard input of each run [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Run this shell command once, before all runs
    #[arg(long, value_name = "COMMAND")]
    pub(crate) setup: Option<String>,

    /// Run this shell command before each run; it is not timed: --prepare 'rm -f x.db'
    #[arg(long, value_name = "COMMAND")]
    pub(crate) prepare: Option<String>,

    /// Run this shell command once, after all runs, however they ended
    #[arg(long, value_name = "COMMAND")]
    pub(crate) cleanup: Option<String>,

    /// Accept an exit status other than 0 (a crash still ends the comparison)
    #[arg(short, long)]
    pub(crate) ignore_failure: bool,

    #[arg(long, value_name = "N", help = format::SEED, value_parser = whole::<u64>(0..=u64::MAX, 1))]
    pub(crate) seed: Option<u64>,

    /// The program and its arguments; none for the demonstration
    #[arg(trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}

impl Compare {
    /// What `spinpark` alone means.
    pub(crate) fn demonstration() -> Self {
        /// Lets clap fill in the defaults.
        #[derive(Parser)]
        struct Defaults {
            #[command(flatten)]
            compare: Compare,
        }
        Defaults::parse_from(["spinpark"]).compare
    }
}

/// What the glibc configurations run.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BaselineChoice {
    /// The program as it is: what its users run today
    Glibc,
    /// The drop-in passes every call to glibc: all configurations pay the same for interposition
    Disabled,
}

impl From<BaselineChoice> for Baseline {
    fn from(choice: BaselineChoice) -> Self {
        match choice {
            BaselineChoice::Glibc => Self::Glibc,
            BaselineChoice::Disabled => Self::Disabled,
        }
    }
}

/// Operations of the demonstration's first, unmeasured run.
pub(crate) const DEMO_OPERATIONS: u64 = 1_000_000;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    #[arg(long, default_value_t = DEMO_OPERATIONS)]
    pub(crate) operations: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Worker {
    pub(crate) request: String,
}
