//! The documents' own figures: the tables that `spinpark documents` has too, from the same files.

macro_rules! table {
    ($name:literal) => {
        include_str!(concat!("../../../documents/definitions/documents/", $name, ".csv"))
    };
}

/// 002: mmap and munmap of 1 MB, every 8 bytes written; changes in %.
pub(super) const TOUCHED: &str = table!("rwsem_mmap_touched");
/// 002: the same, nothing written.
pub(super) const UNTOUCHED: &str = table!("rwsem_mmap_untouched");
/// 003: seconds of two runs of each variant.
pub(super) const SIGNAL: &str = table!("condvar_signal");

/// The numbers of column `column`, in the rows whose first cell is `row`.
pub(super) fn numbers(table: &'static str, row: &str, column: &str) -> Vec<f64> {
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap_or_default();
    let Some(index) = header.iter().position(|name| *name == column) else { return Vec::new() };
    lines.filter(|cells| cells[0] == row).filter_map(|cells| cells.get(index)?.parse().ok()).collect()
}

/// Their mean; none: nothing is published.
pub(super) fn mean(table: &'static str, row: &str, column: &str) -> Option<f64> {
    let all = numbers(table, row, column);
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_documents_say() {
        assert_eq!(mean(TOUCHED, "40", "plain_all_vs_vanilla_pct"), Some(548.1));
        assert_eq!(mean(UNTOUCHED, "20", "mutex_vs_plain_all_pct"), Some(16.4));
        assert_eq!(numbers(SIGNAL, "orig", "real_s"), [0.655, 0.657]);
        assert_eq!(mean(UNTOUCHED, "7", "mutex_vs_plain_all_pct"), None);
    }
}
