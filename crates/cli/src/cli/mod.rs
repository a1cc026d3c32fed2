//! The command line: names, help, examples. No logic.

mod export;
mod gate;
mod libraries;
mod profile;
mod tune;
mod whatif;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use spinpark_measure::rounds::configuration::Baseline;

pub(crate) use self::export::{Export, Receiver};
pub(crate) use self::gate::{Gate, GateCompare, GateOutputs, GateScaling, GateWaits, Gated, Kept};
pub(crate) use self::libraries::Libraries;
pub(crate) use self::profile::{
    DetailChoice, Diff, LocksChoice, Profile, Record, Report, Showing, Top, ViewChoice,
};
pub(crate) use self::tune::Tune;
pub(crate) use self::whatif::Whatif;
use crate::line::documentation::{self, Completions, Man};
use crate::line::format::{self, TableOrJson, to_json};
use crate::line::numbers::{ROUNDS, whole};
use crate::line::{help, tips, units};

const EXAMPLES: &str = "\
Examples:
  spinpark                               a demonstration: half a minute
  spinpark profile -- ./server-test 1    which lock does it wait for, and which thread holds it?
  spinpark compare -- ./server-test 1    would better locks make it faster?
  spinpark whatif -- ./server-test 1     what would it bring to mend that lock?
  spinpark run -- ./server-test 1        run it on spinpark's locks
  spinpark tune -- ./server-test 1       has a lock a better policy than the default?
  spinpark report spinpark-profile       an earlier recording again
  spinpark why 4711                      a process that hangs: who waits for whom?
  spinpark export 4711 --listen 127.0.0.1:9464   where it waits, for Prometheus
  spinpark gate compare --against ./old -- ./new   in CI: fails if the new build is slower

Exit status:
  0    done
  1    the program failed, or did not print its number; `spinpark gate`: the bound does not hold
  2    invalid usage, unusable program, or drop-in not found
  3    `spinpark gate`: undecided
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
  spinpark man DIR               manual pages
  spinpark-lab                   the laboratory: locks side by side, simulated machines";

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
    Record(Box<Record>),
    Report(Box<Report>),
    Diff(Diff),
    Top(Top),
    Why(Why),
    Export(Box<Export>),
    Compare(Box<Compare>),
    Whatif(Box<Whatif>),
    Gate(Box<Gate>),
    Run(Run),
    Tune(Box<Tune>),
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
}

impl Cli {
    /// Makes `--format json` what `--json` is.
    pub(crate) fn apply_formats(&mut self) -> Result<(), String> {
        match &mut self.command {
            Some(Command::Compare(it)) => to_json(it.out.format, &mut it.out.json),
            Some(Command::Whatif(it)) => to_json(it.out.format, &mut it.out.json),
            Some(Command::Profile(it)) => to_json(it.show.format, &mut it.show.json),
            Some(Command::Record(it)) => to_json(it.show.format, &mut it.show.json),
            Some(Command::Report(it)) => to_json(it.show.format, &mut it.show.json),
            Some(Command::Diff(it)) => to_json(it.format, &mut it.json),
            Some(Command::Why(it)) => to_json(it.out.format, &mut it.out.json),
            Some(Command::Tune(it)) => to_json(it.out.format, &mut it.out.json),
            _ => Ok(()),
        }
    }
}

fn definitions() -> clap::Command {
    documentation::with_examples(Cli::command(), "spinpark", "profile")
}

/// The command line with its help.
pub(crate) fn command() -> clap::Command {
    help::with_short_help(definitions())
}

/// The command line as its users know it.
pub(crate) fn public() -> clap::Command {
    documentation::public(&definitions(), "spinpark")
}

/// What to say of a word in the place of a command: it is a program, or a command of the laboratory.
pub(crate) fn hint(word: &str) -> Option<String> {
    if tips::is_program(word) {
        return Some(format!(
            "`{word}` is a program, not a command of spinpark\n`spinpark profile -- {word}` shows where its threads wait, \
             `spinpark compare -- {word}` whether better locks help"
        ));
    }
    ["bench", "sim", "documents"].contains(&word).then(|| {
        format!(
            "`{word}` is a command of the laboratory: `spinpark-lab {word}`\nIt is installed by `cargo install --locked --path lab/cli` in \
             spinpark's repository"
        )
    })
}

const RUN_EXAMPLES: &str = "\
Examples:
  spinpark run -- ./server --port 8080
  SPINPARK_VERBOSE=1 spinpark run -- ./server      the drop-in reports on stderr that it is active
  SPINPARK_DISABLE=1 spinpark run -- ./server      it is loaded, but glibc's locks are used
  spinpark run --policy spinpark-policy.toml -- ./server   single locks have policies of their own
  spinpark run --policy spinpark-policy.toml --print-table -- ./server   for SPINPARK_POLICY";

/// Run a program on spinpark's locks
///
/// Sets LD_PRELOAD and becomes the program: same process, same terminal, same signals, its exit status. An
/// LD_PRELOAD that is set already stays in effect.
#[derive(Debug, Args)]
#[command(after_long_help = RUN_EXAMPLES)]
pub(crate) struct Run {
    /// Give single locks the policies of this file, which `spinpark tune` writes
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,

    /// Print what SPINPARK_POLICY takes for that file, instead of running the program: the same without this command
    #[arg(long, requires = "policy")]
    pub(crate) print_table: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}

const WHY_EXAMPLES: &str = "\
Examples:
  spinpark why 4711                 a deadlock, or who waits for which lock, and who has it
  spinpark why $(pidof server)
  sudo spinpark why 4711            another user's process
  spinpark why 4711 --stop          exact stacks, also of threads that run
  spinpark why 4711 --json          for programs: every thread, with its stack
  spinpark why core.4711            a core dump, of the kernel or of `gcore 4711`
  spinpark why core.4711 ./server   the same, with a program that is not where it was

The process need not have been started by spinpark. It is not stopped, and nothing is loaded into it: its threads and its memory are read, twice, 0.1 s apart. Owners are known of pthread mutexes, of rwlocks that are held for writing, and of stdio's locks; nothing tells the owner of other locks (Rust's std); what waits for them is shown.";

/// Show what a running process waits for, now, or in a core dump: a deadlock first
///
/// It needs the rights to debug the process: those of its user, unless the system restricts that to parents
/// (kernel.yama.ptrace_scope), or root's.
#[derive(Debug, Args)]
#[command(after_long_help = WHY_EXAMPLES)]
pub(crate) struct Why {
    #[command(flatten)]
    pub(crate) out: TableOrJson,

    /// Rows in the table of threads
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = whole::<usize>(1..=u64::MAX, 20))]
    pub(crate) rows: usize,

    /// Stop all threads of the process at once: stacks are exact then, also of threads that run. It takes 9 ms of 200
    /// threads, 0.4 s of 5,000
    #[arg(long)]
    pub(crate) stop: bool,

    /// The process, or a core dump of one
    #[arg(value_name = "PID | CORE", value_parser = OsStringValueParser::new().try_map(subject))]
    pub(crate) subject: Subject,

    /// The program of a core dump, if its file is not where it was
    #[arg(value_name = "EXECUTABLE")]
    pub(crate) executable: Option<PathBuf>,
}

/// What `why` is about.
#[derive(Debug, Clone)]
pub(crate) enum Subject {
    /// A process that runs.
    Process(u32),
    /// A core dump.
    Core(PathBuf),
}

/// Digits alone are a process; a file of that name is `./4711`.
pub(crate) fn subject(word: OsString) -> Result<Subject, String> {
    match word.to_str() {
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            whole(1..=u64::from(u32::MAX), 4711)(text).map(Subject::Process)
        }
        _ => Ok(Subject::Core(word.into())),
    }
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
    #[command(flatten)]
    pub(crate) measuring: Measuring,

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

    /// The program and its arguments; none for the demonstration
    #[arg(trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}

/// How runs of a program are measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct Measuring {
    /// Rounds to measure, at least 6; each runs everything once, and the baseline twice
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

    /// Accept an exit status other than 0 (a crash still ends the measurement)
    #[arg(short, long)]
    pub(crate) ignore_failure: bool,

    #[arg(long, value_name = "N", help = format::SEED, value_parser = whole::<u64>(0..=u64::MAX, 1))]
    pub(crate) seed: Option<u64>,
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line() {
        spinpark_fixtures::command_line::check(&super::command());
    }
}
