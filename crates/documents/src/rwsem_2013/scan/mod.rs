//! Threads that map files, search them, and unmap them: a virus scanner.
//!
//! Document 002 has it in one sentence: a scanner with a thread per CPU that maps, scans and unmaps files
//! became faster with a mutex around the two calls. There, a section is around each call (`calls`).

mod tree;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use aho_corasick::AhoCorasick;
use rustix::mm::{MapFlags, ProtFlags};
use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::definitions::Implementation;

use self::tree::Known;
use crate::workloads::experiment::{Cell, Configuration};
use crate::workloads::figure::Figure;
use crate::workloads::job::{Job, JobError, Report, expect};
use crate::workloads::resources::Requirements;
use crate::workloads::serial::{Sections, Serial};
use crate::workloads::workers::{self, Task};
use crate::workloads::workload::{Column, Kind, Workload};

pub use self::tree::{FILES, TREE_BYTES};

pub static WORKLOAD: Workload = Workload {
    name: "scan",
    about: "open, map, search, unmap the files of a tree; plain or with a mutex around calls",
    source: "002: Peter Zijlstra's virus scanner",
    variants: "--serialize none|iteration|calls, --tree DIR",
    tasks: "threads",
    thread_counts: &[],
    figure: Figure::PerSecond("files"),
    uses_locks: true,
    uses_directory: true,
    columns: &[Column { key: "bytes_per_s", header: "bytes/s", kind: Kind::Bytes }],
    table: None,
    run,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    pub sections: Sections,
    /// The tree to scan; none for one that is made.
    pub tree: Option<PathBuf>,
}

pub fn cells(
    tree: Option<PathBuf>,
    sections: &[Sections],
    locks: &[Implementation],
    thread_counts: &[usize],
) -> Vec<Cell> {
    let configuration =
        |name, sections| Configuration::new(name, &Parameters { sections, tree: tree.clone() });
    let configurations = Sections::configurations(sections, locks, configuration);
    let cell = |&tasks: &usize| Cell {
        variant: String::new(),
        tasks,
        configurations: configurations.clone(),
        needs: Requirements {
            descriptors: tasks as u64,
            processes: tasks as u64,
            threads: tasks as u64,
            memory: 0,
            space: if tree.is_some() { 0 } else { 2 * TREE_BYTES },
            files: if tree.is_some() { 0 } else { 2 * FILES as u64 },
        },
    };
    thread_counts.iter().map(cell).collect()
}

/// Whether there is something to scan in a user's tree.
pub fn check(tree: &Path) -> Result<(), JobError> {
    tree::read(tree).map(drop)
}

fn run(job: &Job) -> Result<Report, JobError> {
    let Parameters { sections, tree } = job.parameters()?;
    let files = match &tree {
        Some(tree) => tree::read(tree)?,
        None => tree::make(job.directory()?)?,
    };
    let patterns =
        AhoCorasick::new(tree::signatures()).map_err(|error| JobError::Refused(error.to_string()))?;
    let mut serial = Serial::new(job.mutex()?);
    let (next, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
    let done = workers::run(workers::Kind::Threads, job.tasks, job.duration, |_| {
        Ok(Scanner {
            files: &files,
            patterns: &patterns,
            sections,
            serial: &serial,
            next: &next,
            bytes: &bytes,
            own: 0,
        })
    })?;
    serial.check(done.all * sections.per_iteration())?;
    let mut report = done.report;
    // Files come in turn, so those of the counted phase are as large as those of the whole run.
    let mean = bytes.into_inner() as f64 / done.all.max(1) as f64;
    let per_second = mean * report.operations as f64 / report.elapsed_s;
    report.columns.insert(String::from("bytes_per_s"), per_second);
    Ok(report)
}

struct Scanner<'a> {
    files: &'a [Known],
    patterns: &'a AhoCorasick,
    sections: Sections,
    serial: &'a Serial,
    next: &'a AtomicUsize,
    bytes: &'a AtomicU64,
    own: u64,
}

impl Task for Scanner<'_> {
    fn step(&mut self) -> Result<u64, JobError> {
        let file = &self.files[self.next.fetch_add(1, Ordering::Relaxed) % self.files.len()];
        let scanned = match self.sections {
            Sections::Iteration => self.serial.with(|| scan(file, self.patterns, None)),
            Sections::None => scan(file, self.patterns, None),
            Sections::Calls => scan(file, self.patterns, Some(self.serial)),
        };
        self.own += scanned?;
        Ok(1)
    }

    fn end(&mut self) -> Result<(), JobError> {
        self.bytes.fetch_add(self.own, Ordering::Relaxed);
        Ok(())
    }
}

/// Scans a file, checks what was found, and returns its size. With `calls`, mapping and unmapping are
/// sections.
fn scan(known: &Known, patterns: &AhoCorasick, calls: Option<&Serial>) -> Result<u64, JobError> {
    let (length, found) = search(&known.path, patterns, calls)
        .map_err(|error| JobError::failed(format!("cannot scan {}", known.path.display()))(error))?;
    let is_right = known.hits.as_ref().is_none_or(|expected| *expected == found);
    expect(is_right, || format!("signatures {found:?} in {}, not {:?}", known.path.display(), known.hits))?;
    Ok(length as u64)
}

/// The size of a file, and the signatures in it.
fn search(path: &Path, patterns: &AhoCorasick, calls: Option<&Serial>) -> io::Result<(usize, Vec<u64>)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len() as usize;
    let map = || map(&file, length);
    let memory = calls.map_or_else(map, |serial| serial.with(map))?;
    // SAFETY: mapped for reading, that long. Should the file shrink, the kernel ends this process.
    let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), length) };
    let found = patterns.find_iter(bytes).map(|hit| hit.pattern().as_u64()).collect();
    let unmap = || {
        // SAFETY: our mapping, and the reference into it was used for the last time.
        unsafe { rustix::mm::munmap(memory.as_ptr().cast(), length) }
    };
    calls.map_or_else(unmap, |serial| serial.with(unmap))?;
    Ok((length, found))
}

fn map(file: &File, length: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let memory = unsafe {
        rustix::mm::mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, file.as_fd(), 0)
    };
    NonNull::new(memory?.cast()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
