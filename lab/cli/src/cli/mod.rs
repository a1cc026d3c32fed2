//! The command line: names, help, examples. No logic.

mod bench;
mod delays;
mod documents;
mod formats;
mod grid;
mod native;
mod programs;
#[cfg(test)]
mod reference;
mod replay;
mod sim;
mod workloads;

use clap::{Args, CommandFactory, Parser, Subcommand};
use spinpark_cli::line::documentation::{self, Completions, Man};
use spinpark_cli::line::{help, tips};

pub(crate) use spinpark_cli::line::format::Format;
pub(crate) use spinpark_cli::line::units::{millis, nanos};

pub(crate) use self::bench::{Bench, Locks, PresetChoice, Show};
pub(crate) use self::delays::DelaysMap;
pub(crate) use self::documents::{Documents, DocumentsRun};
pub(crate) use self::grid::{Grid, GridShown};
pub(crate) use self::native::Native;
pub(crate) use self::programs::{Mail, MailServer, Select};
pub(crate) use self::replay::Replay;
pub(crate) use self::sim::{Calibrate, Merge, ShowMachine, Sim, SimRun, Sweep, Swept, Tables};
pub(crate) use self::workloads::{Common, Condvar, Creat, Faults, Jobs, Mmap, Scan, WorkloadWorker};

/// What the command is called.
pub(crate) const NAME: &str = "spinpark-lab";

const EXAMPLES: &str = "\
Examples:
  spinpark-lab bench locks --quick    locks side by side: spinpark's, glibc's, parking_lot's …
  spinpark-lab bench grid --quick     the same over planes: which lock, where?
  spinpark-lab sim run                a lock on a simulated machine with 64 cores
  spinpark-lab documents run --quick  the four documents' experiments, beside what they published

Exit status:
  0    done
  1    a run failed; with --check, a bound is missed
  2    invalid usage, or drop-in not found
  130  interrupted; what was measured so far was printed

Environment:
  SPINPARK_PRELOAD   path of libspinpark_preload.so, instead of the one in this command
  SPINPARK_PROFILER  path of libspinpark_profiler.so, likewise
  NO_COLOR           no colours in tables

More commands:
  spinpark-lab completions bash    completions for a shell
  spinpark-lab man DIR             manual pages
  spinpark                         the product: profile, compare, run";

/// Which lock on which machine: measured, simulated, and beside what was published.
///
/// `bench` measures locks side by side, `sim` simulates them on machines with many CPUs, and `documents` makes
/// the experiments of the four documents again, on which spinpark builds.
#[derive(Debug, Parser)]
#[command(name = NAME, version, after_long_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(subcommand)]
    Bench(Bench),
    #[command(subcommand)]
    Sim(Sim),
    #[command(subcommand)]
    Documents(Documents),
    #[command(hide = true)]
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
    #[command(name = "__bench-worker", hide = true)]
    Worker(Worker),
    #[command(name = "__workload-worker", hide = true)]
    WorkloadWorker(WorkloadWorker),
    #[command(name = spinpark_documents::rwsem_2013::mail::SERVER, hide = true)]
    MailServer(MailServer),
}

#[derive(Debug, Args)]
pub(crate) struct Worker {
    pub(crate) request: String,
}

/// The command line with its help.
pub(crate) fn command() -> clap::Command {
    help::with_short_help(definitions())
}

/// The command line as its users know it.
pub(crate) fn public() -> clap::Command {
    documentation::public(&definitions(), NAME)
}

fn definitions() -> clap::Command {
    documentation::with_examples(Cli::command(), NAME, "bench")
}

/// What to say of a word in the place of a command: it is one of the product's.
pub(crate) fn hint(word: &str) -> Option<String> {
    let is_product =
        ["profile", "record", "report", "diff", "top", "why", "export", "compare", "run", "libraries"]
            .contains(&word);
    is_product.then(|| format!("`{word}` is a command of the product: `spinpark {word}`")).or_else(|| {
        tips::is_program(word).then(|| {
            format!("`{word}` is a program\n`spinpark profile -- {word}` shows where its threads wait")
        })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line() {
        spinpark_fixtures::command_line::check(&super::command());
    }
}
