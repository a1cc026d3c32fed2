//! Histograms in a cell: one character per bin of powers of two, the same bins in every row.

use crate::model::Times;
use crate::units::time;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The bins that a column of histograms shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spark {
    /// The first bin.
    first: usize,
    /// Bins per character.
    group: usize,
    /// Number of characters.
    width: usize,
}

impl Spark {
    /// For these histograms, in at most `room` characters. None if they are empty.
    pub(super) fn new<'a>(all: impl Iterator<Item = &'a Times> + Clone, room: usize) -> Option<Self> {
        let used = |times: &'a Times| times.histogram.iter().enumerate().filter(|(_, count)| **count > 0);
        let first = all.clone().flat_map(used).map(|(bin, _)| bin).min()?;
        let last = all.flat_map(used).map(|(bin, _)| bin).max()?;
        let group = (last + 1 - first).div_ceil(room.max(1));
        Some(Self { first, group, width: (last + 1 - first).div_ceil(group) })
    }

    /// `waits from 64 ns to 4.3 s`.
    pub(super) fn title(&self, what: &str) -> String {
        let bound = |bin: usize| time((1_u64 << bin.min(62)) as f64);
        let end = self.first + self.width * self.group;
        // Bin 0 has what is less than 1 ns, too.
        format!("{what}\n{}–{}", bound(self.first), bound(end))
    }

    /// A row: heights are relative to the highest bar; a bin that is not empty has the lowest bar at least.
    pub(super) fn row(&self, times: &Times) -> String {
        let group = |index: usize| -> u64 {
            let start = self.first + index * self.group;
            (start..start + self.group).filter_map(|bin| times.histogram.get(bin)).sum()
        };
        let counts: Vec<u64> = (0..self.width).map(group).collect();
        let highest = counts.iter().copied().max().unwrap_or(0);
        let bar = |count: u64| match count {
            0 => '·',
            count => BARS[((count as f64 / highest as f64 * 8.0).ceil() as usize).clamp(1, 8) - 1],
        };
        counts.into_iter().map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows() {
        let one = Times { histogram: vec![0, 0, 8, 4, 0, 1], ..Times::default() };
        let two = Times { histogram: vec![0, 0, 0, 0, 0, 0, 5], ..Times::default() };
        let both = [&one, &two];
        let spark = Spark::new(both.into_iter(), 10).expect("there is something");
        assert_eq!([spark.row(&one), spark.row(&two)], ["█▄·▁·", "····█"]);
        assert_eq!(spark.title("waits"), "waits\n4 ns–128 ns");
        let narrow = Spark::new(both.into_iter(), 3).expect("there is something");
        assert_eq!([narrow.row(&one), narrow.row(&two)], ["█▁·", "··█"]);
        assert!(Spark::new([&Times::default()].into_iter(), 10).is_none());
    }
}
