//! What is known about one run, and the metrics that are read off it.

use serde::{Deserialize, Serialize};

/// The numbers of one run of one program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// From before the fork to the exit, in seconds.
    pub wall_s: f64,
    /// User and system time of the process and of every child that it waited for, in seconds.
    pub cpu_s: f64,
    /// Times that the program gave up a CPU by itself: mostly, it slept.
    pub voluntary_switches: u64,
    /// Times that a CPU was taken from it.
    pub involuntary_switches: u64,
    /// The largest resident set of a single process, in bytes.
    pub peak_bytes: u64,
    /// The program's own number, if one was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printed: Option<f64>,
}

/// What is compared between configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The number that the program prints.
    Printed,
    /// Wall time.
    Wall,
    /// User and system time.
    Cpu,
    /// Context switches, voluntary or not.
    Switches,
    /// Peak memory.
    Memory,
}

impl Metric {
    /// Reads the metric off a sample.
    #[must_use]
    pub fn of(self, sample: &Sample) -> Option<f64> {
        match self {
            Self::Printed => sample.printed,
            Self::Wall => Some(sample.wall_s),
            Self::Cpu => Some(sample.cpu_s),
            Self::Switches => Some((sample.voluntary_switches + sample.involuntary_switches) as f64),
            Self::Memory => Some(sample.peak_bytes as f64),
        }
    }

    /// `new / baseline`. Switches are counts that may be zero, so both get one more.
    #[must_use]
    pub fn ratio(self, new: f64, baseline: f64) -> f64 {
        match self {
            Self::Switches => (new + 1.0) / (baseline + 1.0),
            _ => new / baseline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_off_a_sample() {
        let sample =
            Sample { wall_s: 1.5, voluntary_switches: 3, involuntary_switches: 4, ..Sample::default() };
        assert_eq!(Metric::Wall.of(&sample), Some(1.5));
        assert_eq!(Metric::Switches.of(&sample), Some(7.0));
        assert_eq!(Metric::Printed.of(&sample), None);
    }

    #[test]
    fn no_switches_at_all_are_no_change() {
        assert_eq!(Metric::Switches.ratio(0.0, 0.0), 1.0);
        assert_eq!(Metric::Wall.ratio(1.0, 2.0), 0.5);
    }
}
