//! The command doubts itself: what makes a result weak, and what to do about it.

use std::fmt;

use crate::units::{change, counted, interval, percent, seconds};
use serde::{Deserialize, Serialize};

use crate::compare::Comparison;
use crate::machine::Noise;
use crate::stats::Ratio;
use crate::stats::bootstrap::MIN_BLOCKS;
use crate::stats::verdict::{MAX_MARGIN, Verdict};

/// Runs shorter than this are mostly the start of a process.
pub const SHORT_RUN_S: f64 = 0.1;

/// Steal time above this share disturbs.
const MUCH_STEAL: f64 = 0.01;

/// Other processes above this share disturb.
const MUCH_ELSE: f64 = 0.10;

/// A run with fewer operations says little.
pub const FEW_OPERATIONS: u64 = 100;

/// More rounds than this are not a suggestion.
const MAX_SUGGESTION: usize = 200;

/// Something that makes a result weak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Warning {
    /// The user stopped it.
    Interrupted {
        /// Complete rounds.
        blocks: usize,
        /// Requested rounds.
        rounds: usize,
    },
    /// Not enough rounds for an interval.
    TooFewBlocks {
        /// Complete rounds.
        blocks: usize,
    },
    /// The interval exists but is too wide to decide anything.
    WideInterval {
        /// Half its width, as a fraction.
        half_width: f64,
        /// Rounds that might do.
        rounds: usize,
        /// The interval.
        change: Option<Ratio>,
    },
    /// The interval excludes "no change", but the change does not exceed the noise.
    WithinNoise {
        /// The median change, a ratio.
        change: f64,
        /// The noise floor, as a fraction.
        floor: f64,
        /// Rounds that might do.
        rounds: usize,
    },
    /// The two glibc configurations differ.
    BaselinesDiffer,
    /// The noise floor is above what could be called equivalent.
    NoisyRuns {
        /// As a fraction.
        floor: f64,
    },
    /// Starting the process takes a good part of the run.
    ShortRun {
        /// Median wall time.
        run_s: f64,
    },
    /// Other virtual machines took CPU time.
    Steal {
        /// Share of all CPU time.
        share: f64,
    },
    /// Other processes took CPU time.
    BusyMachine {
        /// Share of all CPU time.
        share: f64,
    },
    /// The drop-in, or the command with its locks, is not optimised.
    DebugBuild,
    /// More threads than CPUs.
    Oversubscribed {
        /// CPUs there are.
        cpus: usize,
    },
    /// Runs in which next to nothing happened.
    FewOperations {
        /// The cells, "workload at threads".
        cells: Vec<String>,
    },
    /// Runs in which nothing happened.
    NoOperations {
        /// Whose, "implementation in workload at threads: N of M runs".
        runs: Vec<String>,
    },
    /// Nothing happened in any run of a baseline.
    BaselineDidNothing {
        /// The cells, "workload at threads".
        cells: Vec<String>,
        /// The baseline.
        baseline: String,
    },
    /// Waits as long as the run: the true ones are longer.
    WaitsAsLongAsRuns {
        /// The cells, "workload at threads".
        cells: Vec<String>,
    },
    /// Cells whose baseline differs from itself by more than could be called equivalent.
    NoisyCells {
        /// How many.
        noisy: usize,
        /// Of how many.
        cells: usize,
    },
    /// Ratios whose interval is wider than their distance from 1.
    WideCells {
        /// How many.
        wide: usize,
        /// Of how many.
        ratios: usize,
    },
    /// Runs of a fixed amount of work that are over too soon.
    LittleWork {
        /// The cells, "variant at tasks".
        cells: Vec<String>,
    },
    /// Files are not in memory.
    OtherFileSystem {
        /// What they are on.
        name: String,
    },
    /// Futex calls could not be counted.
    NoFutexCounter {
        /// Why.
        why: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted { blocks: 0, rounds } => {
                write!(f, "Interrupted after 0 of {rounds} rounds: no round is complete.")
            }
            Self::Interrupted { blocks, rounds } => {
                write!(f, "Interrupted after {blocks} of {rounds} rounds; this is what was measured so far.")
            }
            Self::TooFewBlocks { blocks } => write!(
                f,
                "{}: too few for an interval, which needs {MIN_BLOCKS}, so there is no verdict. Measure more --rounds.",
                counted(*blocks, "complete round")
            ),
            Self::WideInterval { rounds, change, .. } => {
                let shown = change
                    .map_or_else(String::new, |change| format!(" {}", interval(change.low, change.high)));
                write!(f, "Undecided: the 95 % interval{shown} is too wide. {}", more_rounds(*rounds))
            }
            Self::WithinNoise { change: ratio, floor, rounds } => write!(
                f,
                "Undecided: the change of {} does not exceed the noise of ±{}. {}",
                change(*ratio),
                percent(*floor),
                more_rounds(*rounds)
            ),
            Self::BaselinesDiffer => write!(
                f,
                "The two glibc configurations differ from each other, so something drifts. Repeat on a quiet machine; trust nothing smaller than the noise floor."
            ),
            Self::NoisyRuns { floor } => write!(
                f,
                "The same locks differ by up to {} from run to run; smaller changes are not visible here. Longer runs and an idle machine help.",
                percent(*floor)
            ),
            Self::ShortRun { run_s } => write!(
                f,
                "A run takes only {}, much of it process start. Give the program more work: a second or so per run.",
                seconds(*run_s)
            ),
            Self::Steal { share } => write!(
                f,
                "Other virtual machines took {} of the CPU time (steal). Repeat when the host is quieter.",
                percent(*share)
            ),
            Self::BusyMachine { share } => write!(
                f,
                "Other processes used {} of the CPUs meanwhile. Stop them, or repeat later.",
                percent(*share)
            ),
            Self::DebugBuild => write!(
                f,
                "A debug build is measured, and it is slow. Build with `cargo build --release`, and run that command."
            ),
            Self::Oversubscribed { cpus } => {
                write!(f, "* more threads than the {cpus} CPUs: includes scheduling.")
            }
            Self::FewOperations { cells } => write!(
                f,
                "Fewer than {FEW_OPERATIONS} operations in a run ({}): use a longer --duration there.",
                some(cells)
            ),
            Self::NoOperations { runs } => write!(
                f,
                "Runs without a single operation: {}. Times and ratios are those of the other runs, rates those of all; use longer runs.",
                some(runs)
            ),
            Self::BaselineDidNothing { cells, baseline } => write!(
                f,
                "Nothing to compare with ({}): the baseline `{baseline}` did no operation in any run. Use longer runs, or another --baseline.",
                some(cells)
            ),
            Self::WaitsAsLongAsRuns { cells } => write!(
                f,
                "A thread waited for at least half the run ({}); longer waits are cut off. Use a longer --duration.",
                some(cells)
            ),
            Self::NoisyCells { noisy, cells } => write!(
                f,
                "In {noisy} of {} the baseline differs from itself by more than {}; smaller changes are not visible there. Longer runs and an idle machine help.",
                counted(*cells, "cell"),
                percent(MAX_MARGIN)
            ),
            Self::WideCells { wide, ratios } => write!(
                f,
                "{wide} of {}: the interval is wider than the effect, so the verdict is undecided. More --rounds narrow it.",
                counted(*ratios, "ratio")
            ),
            Self::LittleWork { cells } => write!(
                f,
                "A run is over in less than {} ({}): ask for more work, or what is measured is mostly the start.",
                seconds(SHORT_RUN_S),
                some(cells)
            ),
            Self::OtherFileSystem { name } => write!(
                f,
                "Files are on {name}, not on a tmpfs: the file system and its disk are measured as well."
            ),
            Self::NoFutexCounter { why } => write!(
                f,
                "Futex calls are not counted: {why}. They need CAP_PERFMON and tracefs: run `sudo {} bench …`, or see perf_event_paranoid in proc(5).",
                std::env::current_exe()
                    .map_or_else(|_| String::from("spinpark"), |path| path.display().to_string())
            ),
        }
    }
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
