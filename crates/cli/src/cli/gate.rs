//! `spinpark gate`: bounds that a build server checks.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use spinpark_measure::rounds::looks::Looks;
use spinpark_measure::rounds::sample::Metric;

use super::{BaselineChoice, Compare, LocksChoice, Measuring};
use crate::line::format::{self, TableOrJson};
use crate::line::numbers::{ROUNDS, THREADS, factor, whole};
use crate::line::units::percent;

const GATE_EXAMPLES: &str = "\
Examples:
  spinpark gate compare --against './old 1000' -- ./new 1000   fails if the new build is slower
  spinpark gate scaling --threads 1,2 --at-least 1.7 -- ./job -t {threads}
  spinpark gate waits --at-most 5% -- ./job                    fails if its threads wait longer

Exit status:
  0    the bound holds
  1    it does not, beyond the noise; or the program failed
  2    invalid usage, or unusable input
  3    undecided: the measurement does not tell (with --strict: 1)
  130  interrupted

Decided is what an interval that errs in 5 % of cases at most and the noise measured beside it allow to say, so a noisy runner gives 3, not 1. In GitHub Actions, the verdict is an annotation, too.";

/// Fail a build if a measured bound does not hold, for continuous integration
///
/// It prints a sentence with what was measured, its interval, the noise and the verdict, and exits by it.
#[derive(Debug, Args)]
#[command(after_long_help = GATE_EXAMPLES)]
pub(crate) struct Gate {
    #[command(subcommand)]
    pub(crate) gated: Gated,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Gated {
    Compare(GateCompare),
    Scaling(GateScaling),
    Waits(GateWaits),
}

/// Where the verdict goes.
#[derive(Debug, Args)]
pub(crate) struct GateOutputs {
    /// Fail if undecided, too: exit with 1, not 3
    #[arg(long)]
    pub(crate) strict: bool,

    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = format::JSON)]
    pub(crate) json: Option<PathBuf>,

    /// Append the verdict as Markdown to this file: --markdown "$GITHUB_STEP_SUMMARY"
    ///
    /// Without a file or with `-`: to standard output, and the tables to standard error.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) markdown: Option<PathBuf>,

    /// Write the verdict as a JUnit report, one test case
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// The most rounds that --rounds takes.
const MOST_ROUNDS: usize = 100_000;

/// How long is measured.
#[derive(Debug, Args)]
pub(crate) struct UntilDecided {
    /// While it is undecided after --rounds, measure twice as many, up to this number [default: 8 times --rounds]
    ///
    /// Each look at the runs then has a wider interval, so that all looks together err as seldom as one.
    #[arg(long, value_name = "N", value_parser = whole::<usize>(ROUNDS, 40))]
    most_rounds: Option<usize>,
}

impl UntilDecided {
    /// The looks at a measurement that has `rounds` rounds at first.
    pub(crate) fn looks(&self, rounds: usize) -> anyhow::Result<Looks> {
        let most = self.most_rounds.unwrap_or_else(|| rounds.saturating_mul(8).min(MOST_ROUNDS));
        if most < rounds {
            anyhow::bail!(
                "--most-rounds {most} is less than --rounds {rounds}\nGive both, or --rounds alone"
            );
        }
        Ok(Looks::new(rounds, most))
    }
}

/// A bound that is kept beside the sources.
#[derive(Debug, Args)]
pub(crate) struct Kept {
    /// The bound is what an earlier result of this gate has, the file of its --json: no worse than then
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,

    /// So much worse than the baseline is accepted: 2%
    ///
    /// Of a share of time, two hundredths more; of a speed-up, two hundredths of it less.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) worse_by: Option<f64>,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  spinpark gate compare --against './old 1000' -- ./new 1000
  spinpark gate compare --against ./old --at-most 5% -- ./new        up to 5 % slower is accepted
  spinpark gate compare --against ./old --metric cpu -- ./new        CPU time
  spinpark gate compare --metric-from-output 'tps: ([0-9.]+)' --higher-is-better \\
      --against ./old -- ./new                                       the number that it prints
  spinpark gate compare --against ./old --junit gate.xml --json gate.json -- ./new

It measures what `spinpark compare --against` does: each round runs the command of --against, the same again, and the program after `--`, in shuffled order. Worse is a change that its interval shows and that exceeds the noise. While it is undecided, more rounds are measured (--most-rounds).";

/// Fail if a new build of a program is worse than the old one, beyond the noise
#[derive(Debug, Args)]
#[command(after_long_help = COMPARE_EXAMPLES)]
pub(crate) struct GateCompare {
    /// The command to compare with: the old build, with its arguments
    ///
    /// It is split into words as a shell does it; nothing else is done by a shell.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) against: OsString,

    /// Accept a worsening up to this, if the whole interval is below it: 5%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) at_most: Option<f64>,

    /// What must not be worse [default: the number of --metric-from-output, else wall time]
    #[arg(long, value_enum)]
    pub(crate) metric: Option<MetricChoice>,

    /// The locks of both commands
    #[arg(long, value_enum, default_value_t = LocksChoice::Glibc)]
    pub(crate) locks: LocksChoice,

    #[command(flatten)]
    pub(crate) measuring: Measuring,

    #[command(flatten)]
    pub(crate) until: UntilDecided,

    #[command(flatten)]
    pub(crate) out: GateOutputs,

    /// The new build, with its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}

impl GateCompare {
    /// The comparison that is judged.
    pub(crate) fn comparison(&self) -> Compare {
        Compare {
            measuring: self.measuring.clone(),
            against: Some(self.against.clone()),
            locks: self.locks,
            baseline: BaselineChoice::Glibc,
            out: TableOrJson { format: None, json: None },
            program: self.program.clone(),
        }
    }
}

/// A metric that a gate can be about.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum MetricChoice {
    /// From the start to the exit
    Wall,
    /// User and system time
    Cpu,
    /// Context switches, voluntary or not
    Switches,
}

impl From<MetricChoice> for Metric {
    fn from(choice: MetricChoice) -> Self {
        match choice {
            MetricChoice::Wall => Self::Wall,
            MetricChoice::Cpu => Self::Cpu,
            MetricChoice::Switches => Self::Switches,
        }
    }
}

const SCALING_EXAMPLES: &str = "\
Examples:
  spinpark gate scaling --threads 1,2 --at-least 1.7 -- ./job --threads {threads}
  spinpark gate scaling --threads 1,2,4 --at-least 3 --metric-from-output 'ops/s: ([0-9.]+)' \\
      --higher-is-better -- ./server-test -t {threads}
  spinpark gate scaling --threads 1,2 --baseline scaling.json --worse-by 5% -- ./job -t {threads}

Without a number that the program prints, wall time is measured: give it the same work at any number of threads. A round runs each number of threads once, and the first one twice, in shuffled order; the speed-up is the median over rounds, with an interval. While it is undecided, more rounds are measured (--most-rounds). The bound is for the last number of threads.";

/// Fail if a program does not become faster with more threads as it should
#[derive(Debug, Args)]
#[command(after_long_help = SCALING_EXAMPLES)]
pub(crate) struct GateScaling {
    /// Numbers of threads: the first is the baseline, the last one is judged, as in 1,2
    #[arg(long, value_name = "N", required = true, value_delimiter = ',', value_parser = whole::<usize>(THREADS, 2))]
    pub(crate) threads: Vec<usize>,

    /// The speed-up that is asked for, as in 1.7
    #[arg(long, value_name = "NUMBER", value_parser = factor, required_unless_present = "baseline", conflicts_with = "baseline")]
    pub(crate) at_least: Option<f64>,

    #[command(flatten)]
    pub(crate) kept: Kept,

    #[command(flatten)]
    pub(crate) measuring: Measuring,

    #[command(flatten)]
    pub(crate) until: UntilDecided,

    #[command(flatten)]
    pub(crate) out: GateOutputs,

    /// The program and its arguments, in which {threads} is replaced
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}

const WAITS_EXAMPLES: &str = "\
Examples:
  spinpark gate waits --at-most 5% -- ./job                      records the program, and judges
  spinpark gate waits --at-most 5% spinpark-profile              a recording that was made before
  spinpark gate waits --at-most 5% web-1 web-2                   several, or a directory of them
  spinpark gate waits --at-most 1% --lock cache_lock -- ./job    one lock
  spinpark gate waits --baseline waits.json --worse-by 2% -- ./job   no more than an earlier result

The share is of the time of all threads that were not idle. Its interval begins with waits that were certainly for locks, and ends with those that may have been. A lock that is not in the recording, missing records and missing processes are no verdict: then only a share above the bound is one.";

/// Fail if threads wait for locks for more than a share of their time
#[derive(Debug, Args)]
#[command(after_long_help = WAITS_EXAMPLES)]
pub(crate) struct GateWaits {
    /// The largest share of threads' time that is accepted: 5%
    #[arg(long, value_name = "PERCENT", value_parser = percent, required_unless_present = "baseline", conflicts_with = "baseline")]
    pub(crate) at_most: Option<f64>,

    #[command(flatten)]
    pub(crate) kept: Kept,

    /// Only waits for the lock of this name, as `spinpark report` shows it [default: all locks]
    #[arg(long, value_name = "NAME")]
    pub(crate) lock: Option<String>,

    /// Where a new recording is kept [default: ./spinpark-profile, or -2, -3 … if that is there already]
    #[arg(short, long, value_name = "DIR", conflicts_with = "recordings")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) out: GateOutputs,

    /// What `spinpark profile` wrote: a directory, or one file of it; of several, as `report` takes them, all processes count
    #[arg(value_name = "RECORDING", required_unless_present = "program", conflicts_with = "program")]
    pub(crate) recordings: Vec<PathBuf>,

    /// The program to record, and its arguments
    #[arg(last = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}
