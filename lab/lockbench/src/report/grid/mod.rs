//! The result of `spinpark-lab bench grid`: heat maps as text and as a page, lines that sum them up, CSV.

pub mod csv;
pub mod heat;
pub mod html;
pub mod lines;
mod map_data;
mod svg;

pub use map_data::{Map, maps};

use super::figure;
use crate::locks::figure::{Against, Figure};

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Which number.
    pub figure: Figure,
    /// Divided by what.
    pub against: Against,
}

impl Shown {
    /// Whether ours is divided by a lock that costs nothing.
    pub(crate) fn is_ideal(&self) -> bool {
        self.figure == Figure::Ideal || self.against == Against::Ideal
    }

    /// "throughput ÷ the best peer".
    #[must_use]
    pub fn in_words(&self) -> String {
        match self.figure {
            Figure::Ideal => String::from(self.figure.in_words()),
            figure => format!("{} ÷ {}", figure.in_words(), self.against.in_words()),
        }
    }
}
