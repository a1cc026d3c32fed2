//! `spinpark-lab documents WORKLOAD`: from the command line to cells, which are measured in the same way for all.

mod before;
mod experiment;
mod programs;
mod workload_report;

use anyhow::{Context, bail};
use spinpark_documents::wake_op_2005::condvar::{Cpus, Setting};
use spinpark_documents::workloads::directory::Place;
use spinpark_documents::workloads::resources::space;
use spinpark_documents::workloads::result::Record;
use spinpark_documents::{mutex_2010, registry, rwsem_2013, wake_op_2005, workloads};
use spinpark_lockbench::locks::definitions::Implementation;
use spinpark_lockbench::locks::workloads::allowed_cpus;

use self::before::Before;
pub(super) use self::experiment::{Experiment, Prepared, measure};
pub(super) use self::programs::{mail, select};
pub(super) use self::workload_report::WorkloadReport;
use crate::cli::{Condvar, Creat, Faults, Jobs, Mmap, Scan, Show};
use spinpark_cli::say::Say;

/// `spinpark-lab documents mmap`.
pub(super) fn mmap(mmap: &Mmap) -> anyhow::Result<Experiment<'_>> {
    let cells = rwsem_2013::mmap::cells(&mmap.touch, &mmap.serialize, &locks(&mmap.locks)?, &mmap.threads);
    Ok(Experiment {
        workload: &rwsem_2013::mmap::WORKLOAD,
        cells,
        millis: mmap.length.millis(),
        dir: None,
        before: Before::default(),
    })
}

/// `spinpark-lab documents creat`.
pub(super) fn creat(creat: &Creat) -> anyhow::Result<Experiment<'_>> {
    let locks = workloads::locks::parse(&creat.locks).map_err(anyhow::Error::msg)?;
    let cells = mutex_2010::creat::cells(&creat.kinds, creat.unlink, &locks, &creat.threads);
    let cells = cells.map_err(anyhow::Error::msg)?;
    let (workload, millis) = (&mutex_2010::creat::WORKLOAD, creat.length.millis());
    Ok(Experiment { workload, cells, millis, dir: creat.place.dir.as_deref(), before: Before::default() })
}

/// `spinpark-lab documents faults`.
pub(super) fn faults(faults: &Faults) -> anyhow::Result<Experiment<'_>> {
    let cells = rwsem_2013::faults::cells(&faults.kind, &faults.kinds, faults.size << 20, &faults.threads);
    let (workload, millis) = (&rwsem_2013::faults::WORKLOAD, faults.length.millis());
    Ok(Experiment { workload, cells, millis, dir: faults.place.dir.as_deref(), before: Before::default() })
}

/// `spinpark-lab documents scan`.
pub(super) fn scan(scan: &Scan) -> anyhow::Result<Experiment<'_>> {
    let tree = scan
        .tree
        .as_deref()
        .map(|tree| tree.canonicalize().with_context(|| format!("cannot read --tree {}", tree.display())));
    let tree = tree.transpose()?;
    if let Some(tree) = &tree {
        rwsem_2013::scan::check(tree).context("--tree")?;
    }
    let threads = if scan.threads.is_empty() { vec![allowed_cpus()] } else { scan.threads.clone() };
    let cells = rwsem_2013::scan::cells(tree, &scan.serialize, &locks(&scan.locks)?, &threads);
    let (workload, millis) = (&rwsem_2013::scan::WORKLOAD, scan.length.millis());
    Ok(Experiment { workload, cells, millis, dir: scan.place.dir.as_deref(), before: Before::default() })
}

/// `spinpark-lab documents jobs`.
pub(super) fn jobs(jobs: &Jobs) -> anyhow::Result<Experiment<'_>> {
    let request = workloads::jobs::Request {
        mixes: jobs.mix.clone(),
        jobs: jobs.jobs,
        file_size: jobs.file_size.map(|size| u64::from(size) << 20),
        pool_size: jobs.pool_size.map(|size| u64::from(size) << 20),
        sync: !jobs.no_sync,
    };
    let dir = jobs.place.dir.as_deref();
    let space = space(&Place::find(dir)?.path);
    let (cells, notes) =
        workloads::jobs::cells(&request, &jobs.threads, space).map_err(anyhow::Error::msg)?;
    notes.iter().for_each(|note| note!("{note}"));
    // The amount of work is fixed, not the time.
    Ok(Experiment { workload: &workloads::jobs::WORKLOAD, cells, millis: 0, dir, before: Before::default() })
}

/// `spinpark-lab documents show` of a workload's file.
pub(in crate::commands) fn show(record: &Record, show: &Show) -> anyhow::Result<()> {
    let workload = registry::by_name(&record.workload)
        .with_context(|| format!("this command has no workload `{}`", record.workload))?;
    workload_report::print(
        workload,
        record,
        &workload_report::results(workload, record),
        show.details,
        Say { on_stderr: false },
    );
    Ok(())
}

/// `spinpark-lab documents condvar`.
pub(super) fn condvar(condvar: &Condvar) -> anyhow::Result<Experiment<'_>> {
    if condvar.waiter_first && !condvar.cpus.contains(&Cpus::One) {
        bail!(
            "--waiter-first is about one CPU: on several, the waiter need not wait for the signaller\nUse it with --cpus one"
        );
    }
    if condvar.waiter_first && condvar.cpus.contains(&Cpus::All) {
        note!("--waiter-first applies to one CPU; on all CPUs it makes no difference and is left out.");
    }
    let locks = wake_op_2005::condvar::parse(&condvar.locks).map_err(anyhow::Error::msg)?;
    let setting = Setting {
        iterations: condvar.iterations,
        cpus: Cpus::One,
        signal: condvar.signal,
        waiter_first: condvar.waiter_first,
        counts: false,
    };
    let cells = wake_op_2005::condvar::cells(&setting, &condvar.cpus, &locks);
    let workload = &wake_op_2005::condvar::WORKLOAD;
    Ok(Experiment { workload, cells, millis: 0, dir: None, before: Before::default() })
}

/// The implementations that words mean; "none" is none of them.
fn locks(words: &[String]) -> anyhow::Result<Vec<Implementation>> {
    Ok(workloads::locks::parse(words).map_err(anyhow::Error::msg)?.into_iter().flatten().collect())
}
