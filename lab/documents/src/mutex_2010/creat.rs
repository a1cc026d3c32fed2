//! Tasks that create and close a file of their own, all in one directory: document 001's "V".
//!
//! A thread that creates a name takes the directory's lock. In the document's version the file stays, so from
//! the second round on it is opened and truncated, which newer kernels do without that lock; with `unlink`,
//! each round creates it again.

use std::ffi::{CStr, CString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::definitions::Implementation;

use crate::workloads::serial::Serial;
use crate::workloads::workers::{self, Kind};
use crate::workloads::{Cell, Configuration, Figure, Job, JobError, Report, Requirements, Workload, expect};

pub static WORKLOAD: Workload = Workload {
    name: "creat",
    about: "create and close a file of one's own, all in one directory",
    source: "001: Ingo Molnar's test-mutex, workload V",
    variants: "--unlink, --as processes|threads, --locks for threads",
    tasks: "tasks",
    thread_counts: &[1, 2, 16, 64, 256],
    figure: Figure::PerSecond("ops"),
    uses_directory: true,
    columns: &[],
    table: None,
    run,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    pub kind: Kind,
    /// Whether the file is removed again.
    pub unlink: bool,
}

/// The cells for a request; `locks` has none for "the kernel's lock only".
pub fn cells(
    kinds: &[Kind],
    unlink: bool,
    locks: &[Option<Implementation>],
    thread_counts: &[usize],
) -> Result<Vec<Cell>, String> {
    let mut configurations = Vec::new();
    for &kind in kinds {
        let configuration = |name: String| Configuration::new(name, &Parameters { kind, unlink });
        for lock in locks {
            match lock {
                None => configurations.push(configuration(kind.name().to_owned())),
                Some(lock) if kind == Kind::Threads => {
                    configurations.push(configuration(format!("threads {}", lock.name)).with_lock(lock));
                }
                Some(_) => {}
            }
        }
    }
    if configurations.is_empty() {
        return Err(String::from(
            "processes do not share a mutex\nUse --as threads with --locks, or --locks none for processes",
        ));
    }
    let cell = |&tasks: &usize| Cell {
        variant: String::from(if unlink { "files removed again" } else { "files kept" }),
        tasks,
        configurations: configurations.clone(),
        needs: Requirements {
            descriptors: tasks as u64,
            processes: tasks as u64,
            threads: if kinds.contains(&Kind::Threads) { tasks as u64 } else { 0 },
            memory: tasks as u64 * (64 << 10),
            files: tasks as u64 + 1,
            ..Requirements::default()
        },
    };
    Ok(thread_counts.iter().map(cell).collect())
}

fn run(job: &Job) -> Result<Report, JobError> {
    let Parameters { kind, unlink } = job.parameters()?;
    let directory = job.directory()?;
    let mut serial = Serial::new(job.mutex()?);
    let make = |number| {
        let path = directory.join(format!("task-{number}"));
        let name = CString::new(path.as_os_str().as_bytes());
        let name = name.map_err(|error| JobError::Refused(error.to_string()))?;
        let serial = &serial;
        Ok(move || serial.with(|| create(&name, unlink)).map(|()| 1))
    };
    let done = workers::run(kind, job.tasks, job.duration, make)?;
    serial.check(done.all)?;
    check(directory, if unlink { 0 } else { job.tasks })?;
    Ok(done.report)
}

/// In the end, there is one empty file for each task, or none.
fn check(directory: &Path, expected: usize) -> Result<(), JobError> {
    let entries = fs::read_dir(directory).map_err(JobError::failed("cannot read the directory"))?;
    let sizes: Vec<u64> =
        entries.flatten().map(|entry| entry.metadata().map_or(1, |metadata| metadata.len())).collect();
    expect(sizes.len() == expected && sizes.iter().all(|&size| size == 0), || {
        format!("{} files are there in the end, not {expected} empty ones", sizes.len())
    })
}

/// Creates and closes a file, and perhaps removes it again.
fn create(name: &CStr, unlink: bool) -> Result<(), JobError> {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
    let file = rustix::fs::open(name, flags, Mode::RWXU);
    drop(file.map_err(JobError::failed("cannot create a file"))?);
    match unlink {
        true => rustix::fs::unlink(name).map_err(JobError::failed("cannot remove a file")),
        false => Ok(()),
    }
}
