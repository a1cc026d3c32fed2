//! Every workload and every simulated table of the four documents, by name.

use spinpark_measure::nearest::did_you_mean;
use spinpark_sim::workload::SettingError;

use crate::simulated::{TableSpec, planes, readers, scale};
use crate::workloads::{Workload, jobs};
use crate::{mtx_2006, mutex_2010, rwsem_2013, wake_op_2005};

/// All workloads, in the order in which they are listed.
pub static WORKLOADS: [&Workload; 8] = [
    &mutex_2010::creat::WORKLOAD,
    &rwsem_2013::mmap::WORKLOAD,
    &rwsem_2013::faults::WORKLOAD,
    &rwsem_2013::scan::WORKLOAD,
    &jobs::WORKLOAD,
    &rwsem_2013::mail::WORKLOAD,
    &mtx_2006::select::WORKLOAD,
    &wake_op_2005::condvar::WORKLOAD,
];

pub fn by_name(name: &str) -> Option<&'static Workload> {
    WORKLOADS.into_iter().find(|workload| workload.name == name)
}

/// All tables, by document.
pub fn tables() -> &'static [TableSpec] {
    &[
        mutex_2010::simulated::V,
        mutex_2010::simulated::HISTOGRAM,
        mutex_2010::simulated::FSERVER,
        rwsem_2013::simulated::PLAIN_TOUCHED,
        rwsem_2013::simulated::PLAIN_UNTOUCHED,
        rwsem_2013::simulated::MUTEX,
        wake_op_2005::simulated::ON_ONE_CPU,
        mtx_2006::simulated::BACK_OFF,
        mtx_2006::simulated::PROFILING,
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

/// The tables of these names; `001` stands for all of that document, and no name for all tables but the
/// planes.
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
