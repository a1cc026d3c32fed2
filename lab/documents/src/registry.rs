//! Every workload and every simulated table of the four documents, by name.

use spinpark_measure::text::nearest::did_you_mean;
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

/// Name, CPU time on the machine `this-2` in seconds, what it is about, and what simulates it.
macro_rules! tables {
    ($($name:literal, $seconds:literal, $about:literal, $run:expr;)*) => {
        &[$(TableSpec { name: $name, about: $about, seconds: $seconds, run: $run }),*]
    };
}

/// All tables, by document.
pub fn tables() -> &'static [TableSpec] {
    tables! {
        "001-v", 69, "test-mutex V: files created in one directory, on 64, 12, 4 and 1 cores",
            mutex_2010::simulated::v;
        "001-histogram", 24, "how long acquisitions of the mutex took in a file server's mix",
            mutex_2010::simulated::histogram;
        "001-fserver", 25, "a file server's mix: throughput, contentions, mean acquisition",
            mutex_2010::simulated::fserver;
        "002-touched", 21, "the rwsem series over 3.12: mmap, 256 page faults, munmap; 1 to 40 threads",
            rwsem_2013::simulated::touched;
        "002-untouched", 5, "the rwsem series over 3.12: mmap and munmap alone; 1 to 40 threads",
            rwsem_2013::simulated::untouched;
        "002-mutex", 8, "a mutex around mmap, page faults and munmap, over none; 1 to 40 threads",
            rwsem_2013::simulated::mutex;
        "003-signal", 2, "three ways to signal a condition variable, on one CPU",
            wake_op_2005::simulated::signal;
        "004-backoff", 3, "one hot mutex on 12 CPUs, with exponential back-off",
            mtx_2006::simulated::back_off;
        "004-profiling", 22, "the same with each ingredient of mutex profiling by itself",
            mtx_2006::simulated::profiling;
        "ours-64", 216, "our mutex and the classics on 64 cores, 1 to 256 threads",
            |effort, progress| scale::table(64, effort, progress);
        "ours-512", 600, "our mutex and the classics on 512 cores, 1 to 4,096 threads",
            |effort, progress| scale::table(512, effort, progress);
        "ours-readers", 120, "our read-write lock and a counting one, 64 threads, 0 and 0.1 % writes, four machines",
            readers::table;
        "planes-westmere-ex-80", 240, "our mutex on 20 workloads of westmere-ex-80, 2 threads to four a CPU",
            |effort, progress| planes::table("westmere-ex-80", effort, progress);
        "planes-epyc-7r13-96", 240, "our mutex on 20 workloads of epyc-7r13-96, 2 threads to four a CPU",
            |effort, progress| planes::table("epyc-7r13-96", effort, progress);
        "planes-sapphire-rapids-112", 240, "our mutex on 20 workloads of sapphire-rapids-112, 2 threads to four a CPU",
            |effort, progress| planes::table("sapphire-rapids-112", effort, progress);
    }
}

/// The tables that are made only if they are named: they take longer than all others.
const ON_REQUEST: &str = "planes";

/// The tables of these names; `001` stands for all of that document, and no name for all tables but the
/// planes.
pub fn choose(names: &[String]) -> Result<Vec<TableSpec>, SettingError> {
    for name in names {
        if !tables().iter().any(|table| is_meant(table, name)) {
            let hint = did_you_mean(name, tables().iter().map(|table| table.name));
            return Err(SettingError::Unknown { kind: "table", name: name.clone(), hint });
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
