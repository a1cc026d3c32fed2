//! The numbers of a cell, and what they are divided by.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::workloads::Report;

/// A number of one run of one implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Operations a second of all threads.
    Throughput,
    /// CPU time of all threads an operation, in nanoseconds.
    Cpu,
    /// The time below which 99.9 % of the waits are, in nanoseconds.
    WaitP999,
    /// The longest wait of a run, in nanoseconds.
    LongestWait,
    /// Writes a second of all threads, where some only read.
    Writes,
    /// The median wait of a thread that wants to write, where some only read, in nanoseconds.
    WriteWait,
    /// Futex calls an operation.
    Futex,
    /// Voluntary context switches an operation.
    Switches,
    /// All context switches an operation.
    AllSwitches,
    /// Throughput as a share of the ideal.
    Ideal,
    /// Time an operation of all threads, in nanoseconds.
    Time,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Throughput,
        Self::Cpu,
        Self::WaitP999,
        Self::LongestWait,
        Self::Writes,
        Self::WriteWait,
        Self::Futex,
        Self::Switches,
        Self::AllSwitches,
        Self::Ideal,
        Self::Time,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Cpu => "cpu",
            Self::WaitP999 => "wait-p999",
            Self::LongestWait => "longest-wait",
            Self::Writes => "writes",
            Self::WriteWait => "write-wait",
            Self::Futex => "futex",
            Self::Switches => "switches",
            Self::AllSwitches => "all-switches",
            Self::Ideal => "ideal",
            Self::Time => "time",
        }
    }

    /// Its name in sentences.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Cpu => "CPU time an operation",
            Self::WaitP999 => "p99.9 of waits",
            Self::LongestWait => "longest wait",
            Self::Writes => "writes a second",
            Self::WriteWait => "median of writers' waits",
            Self::Futex => "futex calls an operation",
            Self::Switches => "voluntary switches an operation",
            Self::AllSwitches => "context switches an operation",
            Self::Ideal => "share of the ideal throughput",
            Self::Time => "time an operation",
        }
    }

    /// Whether it is of a run with clocks.
    #[must_use]
    pub fn is_of_waits(self) -> bool {
        matches!(self, Self::WaitP999 | Self::LongestWait | Self::WriteWait)
    }

    /// Whether more of it is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput | Self::Ideal | Self::Writes)
    }

    /// Reads the figure off a report; none if the report has none. Futex calls are counted in another run.
    ///
    /// A run without operations counts as one operation, and switches are counted from a half (all switches:
    /// from one): a ratio of zero would have no logarithm.
    #[must_use]
    pub fn of(self, report: &Report) -> Option<f64> {
        let operations = report.operations.max(1) as f64;
        let waits = report.waits.as_ref();
        let value = match self {
            Self::Throughput | Self::Ideal => operations / report.elapsed_s,
            Self::Cpu => report.cpu_s * 1e9 / operations,
            Self::WaitP999 => waits?.p999_ns?.max(1) as f64,
            Self::LongestWait => waits?.longest_ns.max(1) as f64,
            Self::Writes => report.writes? * operations / report.elapsed_s,
            Self::WriteWait => waits?.median_write_ns?.max(1) as f64,
            Self::Switches => (report.voluntary_switches as f64 + 0.5) / operations,
            Self::AllSwitches => {
                (report.voluntary_switches + report.involuntary_switches + 1) as f64 / operations
            }
            Self::Time => report.elapsed_s * 1e9 / operations,
            Self::Futex => return None,
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|figure| figure.name() == name);
        found.ok_or_else(|| format!("there is no figure `{name}`; there are: {}", names()))
    }
}

/// What ours is divided by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Against {
    /// The fastest peer of each cell; of waits, the peer that waits least among the fast ones.
    Best,
    /// The peer of each cell whose figure is best, whatever its throughput.
    BestFigure,
    /// A lock that costs nothing.
    Ideal,
    /// An implementation by name.
    Implementation(String),
}

impl From<String> for Against {
    fn from(name: String) -> Self {
        match name.as_str() {
            "best" => Self::Best,
            "best-figure" => Self::BestFigure,
            "ideal" => Self::Ideal,
            _ => Self::Implementation(name),
        }
    }
}

impl From<Against> for String {
    fn from(against: Against) -> Self {
        match against {
            Against::Best => Self::from("best"),
            Against::BestFigure => Self::from("best-figure"),
            Against::Ideal => Self::from("ideal"),
            Against::Implementation(name) => name,
        }
    }
}

impl Against {
    /// In sentences.
    #[must_use]
    pub fn in_words(&self) -> &str {
        match self {
            Self::Best => "the best peer",
            Self::BestFigure => "the best figure of a peer",
            Self::Ideal => "the ideal",
            Self::Implementation(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::workloads::WaitReport;

    #[test]
    fn figures_of_a_run() {
        let waits = WaitReport {
            p999_ns: Some(700),
            longest_ns: 9_000,
            median_write_ns: Some(30),
            ..WaitReport::default()
        };
        let report = Report {
            operations: 1000,
            elapsed_s: 0.5,
            cpu_s: 1.0,
            voluntary_switches: 250,
            involuntary_switches: 749,
            writes: Some(0.25),
            waits: Some(waits),
            ..Report::default()
        };
        assert_eq!(Figure::Throughput.of(&report), Some(2000.0));
        assert_eq!(Figure::Cpu.of(&report), Some(1e6));
        assert_eq!(Figure::WaitP999.of(&report), Some(700.0));
        assert_eq!(Figure::LongestWait.of(&report), Some(9000.0));
        assert_eq!(Figure::Writes.of(&report), Some(500.0));
        assert_eq!(Figure::WriteWait.of(&report), Some(30.0));
        assert_eq!(Figure::Switches.of(&report), Some(0.2505));
        assert_eq!(Figure::AllSwitches.of(&report), Some(1.0));
        assert_eq!(Figure::Time.of(&report), Some(500_000.0));
        assert_eq!(Figure::Futex.of(&report), None);
        let nothing = Report { elapsed_s: 0.5, ..Report::default() };
        assert_eq!(Figure::Throughput.of(&nothing), Some(2.0));
        assert_eq!(Figure::LongestWait.of(&nothing), None);
        assert_eq!((Figure::Writes.of(&nothing), Figure::WriteWait.of(&nothing)), (None, None));
    }

    #[test]
    fn names_are_read_again() {
        for figure in Figure::ALL {
            assert_eq!(figure.name().parse(), Ok(figure));
            assert_eq!(serde_json::to_value(figure).unwrap(), figure.name());
        }
        assert!("speed".parse::<Figure>().unwrap_err().contains("there are: throughput, cpu"));
        assert_eq!(Against::from(String::from("best")), Against::Best);
        assert_eq!(String::from(Against::Implementation(String::from("glibc"))), "glibc");
    }
}
