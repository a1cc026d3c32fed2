//! `spinpark bench WORKLOAD`: from the command line to cells, and from there on the same for all.

mod before;
mod experiment;
mod programs;

use std::process::ExitCode;

use spinpark_bench::locks::definitions::Target;
use spinpark_bench::workloads;

use self::before::Before;
use self::experiment::{Experiment, measure};
pub(super) use self::programs::{mail, select};
use crate::cli::Mmap;

/// `spinpark bench mmap`.
pub(super) fn mmap(mmap: &Mmap) -> anyhow::Result<ExitCode> {
    let cells = workloads::mmap::cells(&mmap.touch, &mmap.serialize, &locks(&mmap.lock)?, &mmap.threads);
    measure(
        &mmap.common,
        Experiment {
            workload: &workloads::mmap::WORKLOAD,
            cells,
            millis: mmap.length.millis(),
            dir: None,
            before: Before::default(),
        },
    )
}

/// The targets that words mean; "none" is none of them.
fn locks(words: &[String]) -> anyhow::Result<Vec<Target>> {
    Ok(workloads::locks::parse(words).map_err(anyhow::Error::msg)?.into_iter().flatten().collect())
}
