//! How far apart a measurement and its simulation are.

use serde::Serialize;
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::units;

use super::Case;
use crate::calibrate::Spread;

/// What the median of all errors may be.
pub const MEDIAN_BOUND: f64 = 0.2;
/// What the worst error may be.
pub const WORST_BOUND: f64 = 0.5;

/// A case with its results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Which.
    #[serde(flatten)]
    pub case: Case,
    /// Operations per second here, run by run.
    pub native: Vec<f64>,
    /// Operations per second simulated, run by run.
    pub simulated: Vec<f64>,
}

impl Compared {
    /// Median of the native runs, operations per second.
    #[must_use]
    pub fn measured(&self) -> f64 {
        median(&self.native)
    }

    /// Median of the simulated runs, operations per second.
    #[must_use]
    pub fn predicted(&self) -> f64 {
        median(&self.simulated)
    }

    /// Simulated ÷ measured − 1.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted() / self.measured() - 1.0
    }
}

fn median(values: &[f64]) -> f64 {
    Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

/// Some cases together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Median of the errors' sizes.
    pub median: f64,
    /// The largest.
    pub worst: f64,
    /// How many cases are farther off than the worst may be.
    pub beyond: usize,
    /// How many there are.
    pub cases: usize,
}

impl Summary {
    /// Of those of `all` on which the bounds are, and of the others.
    #[must_use]
    pub fn both(all: &[Compared]) -> (Self, Self) {
        (
            Self::of(all.iter().filter(|one| one.case.is_bound())),
            Self::of(all.iter().filter(|one| !one.case.is_bound())),
        )
    }

    /// Of all these; a case without a result counts as one that is off without end.
    #[must_use]
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Compared>) -> Self {
        let size = |one: &Compared| {
            let error = one.error().abs();
            if error.is_finite() { error } else { f64::MAX }
        };
        let errors: Vec<f64> = all.into_iter().map(size).collect();
        Self {
            median: median(&errors),
            worst: errors.iter().copied().fold(0.0, f64::max),
            beyond: errors.iter().filter(|&&error| error > WORST_BOUND).count(),
            cases: errors.len(),
        }
    }

    /// Whether both bounds hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.median <= MEDIAN_BOUND && self.worst <= WORST_BOUND
    }

    /// `median error 12.3 %, worst 81.2 %, 5 of 60 cases beyond 50 %`.
    #[must_use]
    pub fn figures(&self) -> String {
        format!(
            "median error {:.1} %, worst {:.1} %, {} of {} cases beyond {:.0} %",
            100.0 * self.median,
            100.0 * self.worst,
            self.beyond,
            self.cases,
            100.0 * WORST_BOUND,
        )
    }

    /// `median error 12.3 % (bound 20 %), worst 41.2 % (bound 50 %, 0 of 124 cases beyond it)`.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "median error {:.1} % (bound {:.0} %), worst {:.1} % (bound {:.0} %; {} of {} cases beyond it)",
            100.0 * self.median,
            100.0 * MEDIAN_BOUND,
            100.0 * self.worst,
            100.0 * WORST_BOUND,
            self.beyond,
            self.cases,
        )
    }
}

/// The columns.
const HEADER: [&str; 7] = ["shape", "threads", "CPUs", "lock", "measured /s", "simulated /s", "error"];

/// One row for each case. Where it is narrow, a table for each shape.
#[must_use]
pub fn render(all: &[Compared], style: Style) -> String {
    if !style.is_narrow() {
        let mut rows = table(style, &HEADER);
        rows.add_rows(all.iter().map(row));
        return text(&rows);
    }
    let of_shape = |these: &[Compared]| {
        let mut rows = table(style, &HEADER[1..]);
        rows.add_rows(these.iter().map(|one| row(one).into_iter().skip(1)));
        let shape = these.first().map_or("", |one| &one.case.shape);
        format!("{shape}\n{}", text(&rows))
    };
    all.chunk_by(|a, b| a.case.shape == b.case.shape).map(of_shape).collect()
}

fn row(one: &Compared) -> [String; 7] {
    let Case { shape, threads, cpus, lock, .. } = &one.case;
    [
        shape.clone(),
        threads.to_string(),
        cpus.to_string(),
        lock.clone(),
        units::number(one.measured().round()),
        units::number(one.predicted().round()),
        format!("{:+.0} %", 100.0 * one.error()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinpark_lockbench::locks::load::{Load, Section};

    fn compared(native: &[f64], simulated: &[f64]) -> Compared {
        let case = Case {
            shape: "medium".to_owned(),
            lock: "spinpark".to_owned(),
            family: "spinpark".to_owned(),
            threads: 2,
            cpus: 1,
            load: Load::Section(Section::default()),
        };
        Compared { case, native: native.to_vec(), simulated: simulated.to_vec() }
    }

    #[test]
    fn errors_are_relative_to_what_was_measured() {
        let all = [
            compared(&[90.0, 100.0, 500.0], &[110.0]),
            compared(&[100.0], &[90.0]),
            compared(&[100.0], &[60.0]),
        ];
        let summary = Summary::of(&all);
        assert!((summary.median - 0.1).abs() < 1e-9 && (summary.worst - 0.4).abs() < 1e-9);
        assert!(summary.holds());
        assert!(!Summary::of(&[compared(&[100.0], &[151.0])]).holds());
        assert!(!Summary::of(&[compared(&[100.0], &[])]).holds());
    }

    #[test]
    fn the_bounds_are_on_as_many_threads_as_cpus() {
        let fits = |threads| {
            let mut one = compared(&[100.0], &[100.0 * threads as f64]);
            (one.case.threads, one.case.cpus) = (threads, 1);
            one
        };
        let (bound, further) = Summary::both(&[fits(1), fits(2)]);
        assert!(bound.cases == 1 && bound.holds());
        assert!(further.cases == 1 && !further.holds());
    }

    #[test]
    fn a_table() {
        let shown = render(&[compared(&[1_000_000.0], &[800_000.0])], Style { color: false, width: 100 });
        assert!(shown.contains("1,000,000") && shown.contains("-20 %"), "{shown}");
        assert_eq!(Summary::of(&[compared(&[1.0], &[1.3])]).beyond, 0);
    }

    #[test]
    fn a_narrow_table() {
        let mut all = [compared(&[100_000_000.0], &[80_000_000.0]), compared(&[1.0], &[2.0])];
        all[0].case.lock = "classic-condvar-wake-op".to_owned();
        all[0].case.shape = "condvar-ping-pong".to_owned();
        let shown = render(&all, Style { width: 80, ..Style::PLAIN });
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(shown.starts_with("condvar-ping-pong\n") && shown.contains("\nmedium\n"), "{shown}");
        assert!(shown.contains("classic-condvar-wake-op") && shown.contains("100,000,000"), "{shown}");
    }
}
