//! The command doubts itself: what makes a result weak, and what to do about it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::rounds::compare::Comparison;
use crate::rounds::machine::Noise;
use crate::stats::Ratio;
use crate::stats::bootstrap::MIN_BLOCKS;
use crate::stats::verdict::{MAX_MARGIN, Verdict};
use crate::text::units::{self, counted, interval, percent, seconds};

/// Runs shorter than this are mostly the start of a process.
pub const SHORT_RUN_S: f64 = 0.1;

/// Steal time above this share disturbs.
const MUCH_STEAL: f64 = 0.01;

/// Other processes above this share disturb.
const MUCH_ELSE: f64 = 0.10;

/// A run with fewer operations is too short for a figure.
pub const FEW_OPERATIONS: u64 = 100;

/// More rounds than this are not a suggestion.
const MAX_SUGGESTION: usize = 200;

/// Something that makes a result weak; as an error it is the sentence about it.
#[derive(Debug, Clone, PartialEq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Warning {
    /// The user stopped it.
    #[error(
        "Interrupted after {blocks} of {rounds} rounds{}",
        if *.blocks == 0 { ": no round is complete." } else { "; this is what was measured so far." }
    )]
    Interrupted {
        /// Complete rounds.
        blocks: usize,
        /// Requested rounds.
        rounds: usize,
    },
    /// Not enough rounds for an interval.
    #[error(
        "{}: too few for an interval, which needs {MIN_BLOCKS}, so there is no verdict. Measure more --rounds.",
        counted(*.blocks, "complete round")
    )]
    TooFewBlocks {
        /// Complete rounds.
        blocks: usize,
    },
    /// The interval exists but is too wide to decide anything.
    #[error(
        "Undecided: the interval{} is too wide. {}",
        .change.map_or_else(String::new, |change| format!(" {}", interval(change.low, change.high))),
        more_rounds(*.rounds)
    )]
    WideInterval {
        /// Half its width, as a fraction.
        half_width: f64,
        /// Rounds that might do.
        rounds: usize,
        /// The interval.
        change: Option<Ratio>,
    },
    /// The interval excludes "no change", but the change does not exceed the noise.
    #[error(
        "Undecided: the change of {} does not exceed the noise of ±{}. {}",
        units::change(*.change), percent(*.floor), more_rounds(*.rounds)
    )]
    WithinNoise {
        /// The median change, a ratio.
        change: f64,
        /// The noise floor, as a fraction.
        floor: f64,
        /// Rounds that might do.
        rounds: usize,
    },
    /// Baseline and baseline again differ.
    #[error(
        "The baseline differs from itself, so something drifts. Repeat on a quiet machine; \
         trust nothing smaller than the noise floor."
    )]
    BaselinesDiffer,
    /// The noise floor is above what could be called equivalent.
    #[error(
        "The baseline differs from itself by up to {}; smaller changes are not visible here. Longer runs \
         and an idle machine help.",
        percent(*.floor)
    )]
    NoisyRuns {
        /// As a fraction.
        floor: f64,
    },
    /// Starting the process takes a good part of the run.
    #[error(
        "A run takes only {}, much of it process start. Give the program more work: a second or so per run.",
        seconds(*.run_s)
    )]
    ShortRun {
        /// Median wall time.
        run_s: f64,
    },
    /// Other virtual machines took CPU time.
    #[error(
        "Other virtual machines took {} of the CPU time (steal). Repeat when the host is quieter.",
        percent(*.share)
    )]
    Steal {
        /// Share of all CPU time.
        share: f64,
    },
    /// Other processes took CPU time.
    #[error("Other processes used {} of the CPUs meanwhile. Stop them, or repeat later.", percent(*.share))]
    BusyMachine {
        /// Share of all CPU time.
        share: f64,
    },
    /// The drop-in, or the command with its locks, is not optimised.
    #[error(
        "A debug build is measured, and it is slow. Build with `cargo build --release`, and run that command."
    )]
    DebugBuild,
    /// More threads than CPUs.
    #[error("* more threads than the {cpus} CPUs: includes scheduling.")]
    Oversubscribed {
        /// CPUs there are.
        cpus: usize,
    },
    /// Runs in which next to nothing happened.
    #[error(
        "Fewer than {FEW_OPERATIONS} operations in a run ({}): use a longer --duration there.",
        some(.cells)
    )]
    FewOperations {
        /// The cells, "workload at threads".
        cells: Vec<String>,
    },
    /// Runs in which nothing happened.
    #[error(
        "Runs without a single operation: {}. Times and ratios are those of the other runs, rates those of all; \
         use longer runs.",
        some(.runs)
    )]
    NoOperations {
        /// Whose, "implementation in workload at threads: N of M runs".
        runs: Vec<String>,
    },
    /// Nothing happened in any run of a baseline.
    #[error(
        "Nothing to compare with ({}): the baseline `{baseline}` did no operation in any run. Use longer runs, \
         or another --baseline.",
        some(.cells)
    )]
    BaselineDidNothing {
        /// The cells, "workload at threads".
        cells: Vec<String>,
        /// The baseline.
        baseline: String,
    },
    /// Waits as long as the run: the true ones are longer.
    #[error(
        "A thread waited for at least half the run ({}); longer waits are cut off. Use a longer --duration.",
        some(.cells)
    )]
    WaitsAsLongAsRuns {
        /// The cells, "workload at threads".
        cells: Vec<String>,
    },
    /// Cells whose baseline differs from itself by more than could be called equivalent.
    #[error(
        "In {noisy} of {} the baseline differs from itself by more than {}; smaller changes are not visible \
         there. Longer runs and an idle machine help.",
        counted(*.cells, "cell"), percent(MAX_MARGIN)
    )]
    NoisyCells {
        /// How many.
        noisy: usize,
        /// Of how many.
        cells: usize,
    },
    /// Ratios whose interval is wider than their distance from 1.
    #[error(
        "{wide} of {}: the interval is wider than the effect, so the verdict is undecided. More --rounds narrow \
         it.",
        counted(*.ratios, "ratio")
    )]
    WideCells {
        /// How many.
        wide: usize,
        /// Of how many.
        ratios: usize,
    },
    /// Runs of a fixed amount of work that are over too soon.
    #[error(
        "A run is over in less than {} ({}): ask for more work, or what is measured is mostly the start.",
        seconds(SHORT_RUN_S), some(.cells)
    )]
    LittleWork {
        /// The cells, "variant at tasks".
        cells: Vec<String>,
    },
    /// Files are not in memory.
    #[error("Files are on {name}, not on a tmpfs: the file system and its disk are measured as well.")]
    OtherFileSystem {
        /// What they are on.
        name: String,
    },
    /// Futex calls could not be counted.
    #[error(
        "Futex calls are not counted: {why}. They need CAP_PERFMON and tracefs: run `sudo {} bench …`, or see \
         perf_event_paranoid in proc(5).",
        std::env::current_exe().map_or_else(|_| String::from("spinpark"), |path| path.display().to_string())
    )]
    NoFutexCounter {
        /// Why.
        why: String,
    },
}

/// What may decide it.
fn more_rounds(rounds: usize) -> String {
    match rounds {
        ..=MAX_SUGGESTION => format!("Try --rounds {rounds}."),
        _ => String::from("More rounds help little: use a longer or steadier load."),
    }
}

/// The first few of many.
fn some(cells: &[String]) -> String {
    const FEW: usize = 3;
    let more = cells.len().saturating_sub(FEW);
    let named = cells[..cells.len() - more].join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

/// "implementation in cell: 2 of 7 runs", if there is such a run.
#[must_use]
pub fn empty_runs(whose: &str, cell: &str, empty: usize, runs: usize) -> Option<String> {
    (empty > 0).then(|| format!("{whose} in {cell}: {empty} of {runs} runs"))
}

/// Everything that is wrong with the comparison's main metric and the machine.
#[must_use]
pub fn of(comparison: &Comparison, noise: &Noise, debug_build: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if debug_build {
        warnings.push(Warning::DebugBuild);
    }
    if comparison.has_intervals() {
        warnings.extend(of_intervals(comparison));
    } else {
        warnings.push(Warning::TooFewBlocks { blocks: comparison.blocks });
    }
    if comparison.run_s < SHORT_RUN_S && comparison.blocks > 0 {
        warnings.push(Warning::ShortRun { run_s: comparison.run_s });
    }
    warnings.extend(of_machine(noise));
    warnings
}

/// What the machine did besides.
#[must_use]
pub fn of_machine(noise: &Noise) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if noise.steal > MUCH_STEAL {
        warnings.push(Warning::Steal { share: noise.steal });
    }
    if noise.others > MUCH_ELSE {
        warnings.push(Warning::BusyMachine { share: noise.others });
    }
    warnings
}

fn of_intervals(comparison: &Comparison) -> Vec<Warning> {
    let Some(primary) = comparison.primary() else { return Vec::new() };
    let (Some(change), Some(again)) = (primary.change, primary.again) else { return Vec::new() };
    let mut warnings = Vec::new();
    let floor = again.reach();
    if !again.contains_one() && floor > MAX_MARGIN / 2.0 {
        warnings.push(Warning::BaselinesDiffer);
    } else if floor > MAX_MARGIN {
        warnings.push(Warning::NoisyRuns { floor });
    }
    if primary.verdict == Verdict::Undecided {
        warnings.push(if change.contains_one() {
            let half_width = change.half_width();
            let rounds = rounds_for(half_width, comparison.blocks);
            Warning::WideInterval { half_width, rounds, change: Some(change) }
        } else {
            Warning::WithinNoise {
                change: change.median,
                floor,
                rounds: rounds_for(floor, comparison.blocks),
            }
        });
    }
    warnings
}

/// Blocks after which the interval is about half of the margin wide: widths shrink with the square root.
fn rounds_for(half_width: f64, blocks: usize) -> usize {
    let factor = (half_width / (MAX_MARGIN / 2.0)).max(1.5).powi(2);
    let rounds = (blocks as f64 * factor).ceil() as usize;
    rounds.next_multiple_of(5)
}
