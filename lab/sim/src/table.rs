//! A table of a document, simulated: published figures beside the simulator's, and what they must be.

use serde::{Deserialize, Serialize};
use spinpark_charts::front::Front;

/// What a simulated figure must be for its check to hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Bound {
    /// From … to.
    Within(f64, f64),
    /// At least.
    AtLeast(f64),
    /// At most.
    AtMost(f64),
    /// On the same side of the neutral value (1 for ratios, 0 for differences) as what is published.
    Sign,
}

/// How a figure is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// A ratio; 1: no effect.
    Ratio,
    /// A difference in percent; 0: no effect.
    Percent,
    /// Operations per second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Cycles.
    Cycles,
    /// A count, or the number of a bin.
    Count,
}

/// A figure of a document, and the simulator's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is: the row's name in the table.
    pub name: String,
    /// How to read it.
    pub unit: Unit,
    /// What the document says, if it does.
    pub published: Option<f64>,
    /// What the simulation says: the mean over the seeds.
    pub simulated: f64,
    /// Its lowest and highest value over the seeds.
    pub range: (f64, f64),
    /// What it must be.
    pub bound: Option<Bound>,
    /// Whether a constant of the model was chosen so that this figure comes out.
    pub fitted: bool,
}

impl Figure {
    /// How far the simulation is from the document, as a part of the latter.
    ///
    /// None: nothing is published, or 0, of which nothing is a part.
    #[must_use]
    pub fn relative_error(&self) -> Option<f64> {
        let error = self.published.map(|published| match self.unit {
            // +4 % against +2 % is 1.04 against 1.02.
            Unit::Percent => (100.0 + self.simulated) / (100.0 + published) - 1.0,
            _ => self.simulated / published - 1.0,
        });
        error.filter(|error| error.is_finite())
    }

    /// Whether both are on the same side of "no effect". None: nothing is published, or no effect, or the
    /// unit has no such value.
    #[must_use]
    pub fn same_sign(&self) -> Option<bool> {
        let neutral = match self.unit {
            Unit::Ratio => 1.0,
            Unit::Percent => 0.0,
            _ => return None,
        };
        let published = self.published.filter(|&published| published != neutral)?;
        Some((published > neutral) == (self.simulated > neutral))
    }

    /// Whether the bound holds. None: there is none.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        Some(match self.bound? {
            Bound::Within(from, to) => (from..=to).contains(&self.simulated),
            Bound::AtLeast(least) => self.simulated >= least,
            Bound::AtMost(most) => self.simulated <= most,
            Bound::Sign => self.same_sign().unwrap_or(false),
        })
    }
}

/// A distribution over bins of powers of two, and the simulator's: parts of each bin, %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// What was counted: `2.6.34`.
    pub name: String,
    /// What is in bins: `cycles`. Bin *n* holds what is below 2^n, and not below 2^(n−1).
    pub of: String,
    /// The first bin.
    pub first: u32,
    /// From that on, %.
    pub published: Vec<f64>,
    /// As many: the mean over the seeds, %.
    pub simulated: Vec<f64>,
}

/// A table of a document, simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The document: "001" to "004".
    pub document: String,
    /// What the table is about.
    pub title: String,
    /// The machine on which it was simulated.
    pub machine: String,
    /// Which figure a constant was fitted to, and which constant; or that none was.
    pub fitted: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Its distributions.
    pub distributions: Vec<Bins>,
    /// Throughput beside CPU time, each with what it is of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fronts: Vec<(String, Front)>,
    /// What to keep in mind; what the model cannot show, and why.
    pub notes: Vec<String>,
}

impl Table {
    /// A table to which no constant was fitted, without distributions and fronts.
    pub fn new(
        document: &str,
        title: impl Into<String>,
        machine: impl Into<String>,
        figures: Vec<Figure>,
        notes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            document: document.to_owned(),
            title: title.into(),
            machine: machine.into(),
            fitted: "none".to_owned(),
            figures,
            distributions: Vec::new(),
            fronts: Vec::new(),
            notes: notes.into_iter().map(Into::into).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(unit: Unit, published: f64, simulated: f64, bound: Bound) -> Figure {
        let range = (simulated, simulated);
        Figure {
            name: String::new(),
            unit,
            published: Some(published),
            simulated,
            range,
            bound: Some(bound),
            fitted: false,
        }
    }

    #[test]
    fn errors_signs_and_bounds() {
        let gain = figure(Unit::Percent, 17.0, 5.3, Bound::Sign);
        assert_eq!((gain.same_sign(), gain.holds()), (Some(true), Some(true)));
        assert!((gain.relative_error().unwrap() + 0.1).abs() < 1e-9);
        let loss = figure(Unit::Ratio, 3.5, 0.9, Bound::AtLeast(2.0));
        assert_eq!((loss.same_sign(), loss.holds()), (Some(false), Some(false)));
        assert_eq!(figure(Unit::Cycles, 1.0, 2.0, Bound::AtMost(2.0)).holds(), Some(true));
    }

    #[test]
    fn of_nothing_nothing_is_a_part() {
        let none = figure(Unit::Count, 0.0, 2.0, Bound::AtLeast(1.0));
        assert_eq!((none.relative_error(), none.same_sign()), (None, None));
        assert_eq!(figure(Unit::Count, 0.0, 0.0, Bound::AtLeast(1.0)).relative_error(), None);
        assert_eq!(
            figure(Unit::Percent, 0.0, -1.0, Bound::Sign).same_sign(),
            None,
            "it says that there is none"
        );
    }
}
