//! Every workload and every simulated table of the four documents, by name.

use spinpark_show::nearest::did_you_mean;
use spinpark_sim::workload::SettingError;

use crate::simulated::{TableSpec, planes, readers, scale};
use crate::workloads::{Workload, jobs};
use crate::{d001, d002, d003, d004};

/// All workloads, in the order in which they are listed.
pub static WORKLOADS: [&Workload; 8] = [
    &d001::creat::WORKLOAD,
    &d002::mmap::WORKLOAD,
    &d002::faults::WORKLOAD,
    &d002::scan::WORKLOAD,
    &jobs::WORKLOAD,
    &d002::mail::WORKLOAD,
    &d004::select::WORKLOAD,
    &d003::condvar::WORKLOAD,
];

/// The workload of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Workload> {
    WORKLOADS.into_iter().find(|workload| workload.name == name)
}

/// All tables, by document.
#[must_use]
pub fn tables() -> &'static [TableSpec] {
    &[
        d001::simulated::V,
        d001::simulated::HISTOGRAM,
        d001::simulated::FSERVER,
        d002::simulated::PLAIN_TOUCHED,
        d002::simulated::PLAIN_UNTOUCHED,
        d002::simulated::MUTEX,
        d003::simulated::ON_ONE_CPU,
        d004::simulated::BACK_OFF,
        d004::simulated::PROFILING,
        scale::ON_64,
        scale::ON_512,
        readers::TABLE,
        planes::ON_80,
        planes::ON_96,
        planes::ON_112,
    ]
}

/// The tables that are made only if they are named: they take longer than all others.
const ON_REQUEST: &str = "planes";

/// The tables of these names; `001` stands for all of that document, and no name for all tables but the planes.
///
/// # Errors
///
/// There is no such table.
pub fn choose(names: &[String]) -> Result<Vec<TableSpec>, SettingError> {
    for name in names {
        if !tables().iter().any(|table| is_meant(table, name)) {
            let hint = did_you_mean(name, tables().iter().map(|table| table.name));
            return Err(SettingError::UnknownTable { table: name.clone(), hint });
        }
    }
    let is_wanted = |table: &&TableSpec| match names {
        [] => !is_meant(table, ON_REQUEST),
        names => names.iter().any(|name| is_meant(table, name)),
    };
    Ok(tables().iter().filter(is_wanted).copied().collect())
}

fn is_meant(table: &TableSpec, name: &str) -> bool {
    table.name == name || table.name.split_once('-').is_some_and(|(document, _)| document == name)
}
