//! `spinpark whatif`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};
use spinpark_measure::report::whatif::Place;
use spinpark_profile::whatif::delay::Point;

use super::{LocksChoice, Measuring};
use crate::line::format::TableOrJson;
use crate::line::numbers::whole;
use crate::line::units;

const EXAMPLES: &str = "\
Examples:
  spinpark whatif -- ./server-test 1000                   the lock that threads wait for most
  spinpark whatif --lock cache_lock -- ./server-test 1000
  spinpark whatif --top 3 --rounds 20 -- ./server-test 1000
  spinpark whatif --metric-from-output 'ops/s: ([0-9.]+)' --higher-is-better --unit throughput \\
      -- ./server-test 1000
  spinpark whatif --lock queue_filled --where wake --delay 20us -- ./server-test 1000
  spinpark whatif --json whatif.json -- ./server-test 1000

One run is recorded, for the lock and the mean length of its sections. A round then runs the program without a delay, twice, and with a quarter, half and all of a delay of that length in each section of the lock; and, as controls, with the same delays outside of locks, and at a lock that no thread waits for. The slope is the median over rounds, with a 95 % bootstrap interval. All these runs have the same library in front of their locks, which records nothing. It needs glibc 2.35 or later.";

/// Measure what a lock costs: delay its sections, and see what that does to the program
///
/// A profile says where threads wait. This says what it would bring to mend it, near what the program does now.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Whatif {
    /// The lock, as `spinpark report` names it [default: the one that threads wait for most]
    #[arg(long, value_name = "NAME", conflicts_with = "top")]
    pub(crate) lock: Option<String>,

    /// Ask about so many locks, those that threads wait for most, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1..=100, 3))]
    pub(crate) top: usize,

    /// Where the delay is
    #[arg(long = "where", value_enum, value_name = "PLACE", default_value_t = WhereChoice::Inside)]
    pub(crate) place: WhereChoice,

    /// The whole delay [default: the mean length of a section of the lock]
    #[arg(long, value_name = "TIME", value_parser = units::between("50ns", "10s"))]
    pub(crate) delay: Option<Duration>,

    /// The locks that the program runs on
    #[arg(long, value_enum, default_value_t = LocksChoice::Glibc)]
    pub(crate) locks: LocksChoice,

    #[command(flatten)]
    pub(crate) measuring: Measuring,

    #[command(flatten)]
    pub(crate) out: TableOrJson,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    pub(crate) program: Vec<OsString>,
}

/// Where a delay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhereChoice {
    /// In each section: after the lock was acquired
    Inside,
    /// Before each attempt to acquire it
    Before,
    /// After each failed try, where the program tries again itself
    Retry,
    /// After each release
    After,
    /// Before each wake-up: of a condition variable, a semaphore or a futex
    Wake,
}

impl WhereChoice {
    pub(crate) fn point(self) -> Point {
        match self {
            Self::Inside => Point::Inside,
            Self::Before => Point::Before,
            Self::Retry => Point::Retry,
            Self::After => Point::After,
            Self::Wake => Point::Wake,
        }
    }

    pub(crate) fn place(self) -> Place {
        match self {
            Self::Inside => Place::Inside,
            Self::Before => Place::Before,
            Self::Retry => Place::Retry,
            Self::After => Place::After,
            Self::Wake => Place::Wake,
        }
    }
}
