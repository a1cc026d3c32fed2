//! The numbers that the four documents publish, as tables: what the workloads correspond to.
//!
//! They were measured on other machines and other kernels, so what can be compared is shapes, never values.

/// A table of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its name.
    pub name: &'static str,
    /// What it is, with its document.
    pub about: &'static str,
    /// The workload that corresponds to it, if there is one.
    pub workload: Option<&'static str>,
    text: &'static str,
}

macro_rules! published {
    ($name:literal, $workload:expr, $about:literal) => {
        Published {
            name: $name,
            about: $about,
            workload: $workload,
            text: include_str!(concat!("../../definitions/documents/", $name, ".csv")),
        }
    };
}

/// All tables.
pub static PUBLISHED: [Published; 7] = [
    published!("mutex_headline", Some("creat"), "001: throughput and contention with and without the change"),
    published!("mutex_acquisition_histogram", None, "001: how long acquisitions took, in powers of two"),
    published!("rwsem_application", Some("jobs"), "002: gains of applications"),
    published!("rwsem_mmap_untouched", Some("mmap"), "002: mmap and munmap of 1 MB, changes in %"),
    published!("rwsem_mmap_touched", Some("mmap"), "002: the same with every 8 bytes written, 10 runs"),
    published!("condvar_signal", Some("condvar"), "003: three ways to signal, two runs each"),
    published!("freebsd_unp_mutex", None, "004: what changed when the mutex changed"),
];

/// A table, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub header: Vec<&'static str>,
    /// Rows, each as long as the header. An empty cell means: not published.
    pub rows: Vec<Vec<&'static str>>,
}

impl Published {
    /// Takes the table apart. No cell has a comma or a quote in it.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut lines = self.text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        Table { header: lines.next().unwrap_or_default(), rows: lines.collect() }
    }
}

impl Table {
    /// The number in row `row` of the first column called `column`; none if it is not published, or is no number.
    #[must_use]
    pub fn number(&self, row: usize, column: &str) -> Option<f64> {
        let place = self.header.iter().position(|name| *name == column)?;
        self.rows.get(row)?.get(place)?.parse().ok()
    }
}

/// The table of that name.
#[must_use]
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
    fn workloads_are_there() {
        for workload in PUBLISHED.iter().filter_map(|published| published.workload) {
            assert!(crate::workloads::by_name(workload).is_some(), "{workload}");
        }
    }
}
