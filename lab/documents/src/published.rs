//! The numbers that the four documents publish, as tables: what the workloads correspond to.
//!
//! They were measured on other machines and other kernels, so what can be compared is shapes, never values.

/// A table of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    pub name: &'static str,
    /// What it is, with its document.
    pub about: &'static str,
    /// The workload that corresponds to it, if there is one.
    pub workload: Option<&'static str>,
    text: &'static str,
}

macro_rules! published {
    ($folder:literal $name:literal, $workload:expr, $about:literal) => {
        Published {
            name: $name,
            about: $about,
            workload: $workload,
            text: include_str!(concat!($folder, "/", $name, ".csv")),
        }
    };
}

pub static PUBLISHED: [Published; 7] = [
    published!("mutex_2010" "mutex_headline", Some("creat"), "001: throughput and contention with and without the change"),
    published!("mutex_2010" "mutex_acquisition_histogram", None, "001: how long acquisitions took, in powers of two"),
    published!("rwsem_2013" "rwsem_application", Some("jobs"), "002: gains of applications"),
    published!("rwsem_2013" "rwsem_mmap_untouched", Some("mmap"), "002: mmap and munmap of 1 MB, changes in %"),
    published!("rwsem_2013" "rwsem_mmap_touched", Some("mmap"), "002: the same with every 8 bytes written, 10 runs"),
    published!("wake_op_2005" "condvar_signal", Some("condvar"), "003: three ways to signal, two runs each"),
    published!("mtx_2006" "freebsd_unp_mutex", None, "004: what changed when the mutex changed"),
];

/// A table, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub header: Vec<&'static str>,
    /// Rows, each as long as the header. An empty cell means: not published.
    pub rows: Vec<Vec<&'static str>>,
}

impl Published {
    /// Takes the table apart. No cell has a comma or a quote in it.
    pub fn table(&self) -> Table {
        let mut lines = self.text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        Table { header: lines.next().unwrap_or_default(), rows: lines.collect() }
    }
}

impl Table {
    /// The number in row `row` of the first column called `column`; none if it is not published, or is no
    /// number.
    pub fn number(&self, row: usize, column: &str) -> Option<f64> {
        let place = self.header.iter().position(|name| *name == column)?;
        self.rows.get(row)?.get(place)?.parse().ok()
    }
}

/// The mean of the numbers that table `name` has in column `column`, in the rows whose first cell is `row`.
/// None: none is published.
pub(crate) fn mean(name: &str, row: &str, column: &str) -> Option<f64> {
    let all = numbers(name, row, column);
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn numbers(name: &str, row: &str, column: &str) -> Vec<f64> {
    let Some(table) = by_name(name).map(Published::table) else { return Vec::new() };
    let rows = (0..table.rows.len()).filter(|&index| table.rows[index][0] == row);
    rows.filter_map(|index| table.number(index, column)).collect()
}

pub fn by_name(name: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|published| published.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_as_long_as_its_header() {
        for published in &PUBLISHED {
            let table = published.table();
            assert!(table.header.len() > 1 && !table.rows.is_empty(), "{}", published.name);
            assert!(table.rows.iter().all(|row| row.len() == table.header.len()), "{}", published.name);
        }
    }

    #[test]
    fn numbers_as_published() {
        let touched = by_name("rwsem_mmap_touched").unwrap().table();
        assert_eq!(touched.number(7, "threads"), Some(40.0));
        assert_eq!(touched.number(7, "plain_all_vs_vanilla_pct"), Some(548.1));
        let headline = by_name("mutex_headline").unwrap().table();
        assert_eq!(headline.number(0, "ratio"), Some(3.137));
        assert_eq!(headline.number(4, "base"), None, "not published");
    }

    #[test]
    fn what_the_documents_say() {
        assert_eq!(mean("rwsem_mmap_touched", "40", "plain_all_vs_vanilla_pct"), Some(548.1));
        assert_eq!(mean("rwsem_mmap_untouched", "20", "mutex_vs_plain_all_pct"), Some(16.4));
        assert_eq!(numbers("condvar_signal", "orig", "real_s"), [0.655, 0.657]);
        assert_eq!(mean("rwsem_mmap_untouched", "7", "mutex_vs_plain_all_pct"), None);
    }

    #[test]
    fn workloads_are_there() {
        for workload in PUBLISHED.iter().filter_map(|published| published.workload) {
            assert!(crate::registry::by_name(workload).is_some(), "{workload}");
        }
    }
}
