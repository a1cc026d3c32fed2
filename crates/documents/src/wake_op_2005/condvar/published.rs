//! The figures of document 003: one CPU (x86-64, 2005), two runs of each variant, in seconds as `time` prints
//! them.

use crate::published::{Table, by_name};

/// The document's table; a row is a run.
const TABLE: &str = "condvar_signal";

/// Real, user and system time in seconds: means of the published runs of a lock. None if there are none.
#[must_use]
pub fn times(lock: &str) -> Option<[f64; 3]> {
    let table = by_name(TABLE)?.table();
    // The document writes `wake_op`.
    let variant = lock.strip_prefix("classic-condvar-")?.replace('-', "_");
    let rows: Vec<usize> =
        (0..table.rows.len()).filter(|&row| table.rows[row].first() == Some(&variant.as_str())).collect();
    let [real, user, system] = ["real_s", "user_s", "sys_s"].map(|column| mean(&table, &rows, column));
    Some([real?, user?, system?])
}

fn mean(table: &Table, rows: &[usize], column: &str) -> Option<f64> {
    let values: Option<Vec<f64>> = rows.iter().map(|&row| table.number(row, column)).collect();
    spinpark_measure::stats::mean(&values?)
}

/// What the document compares with.
pub(crate) const BASELINE: &str = "classic-condvar-orig";

/// How much faster than `orig` the published runs of a lock are: 1 for `orig`.
#[must_use]
pub fn speed_up(lock: &str) -> Option<f64> {
    let [original, ..] = times(BASELINE)?;
    let [own, ..] = times(lock)?;
    Some(original / own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_ups_of_the_document() {
        let rounded = |lock| (speed_up(lock).unwrap() * 100.0).round();
        assert_eq!(
            [BASELINE, "classic-condvar-requeue", "classic-condvar-wake-op"].map(rounded),
            [100.0, 128.0, 172.0]
        );
        assert_eq!(speed_up("glibc"), None);
        assert!((times("classic-condvar-wake-op").unwrap()[2] - 0.2055).abs() < 1e-12);
    }
}
