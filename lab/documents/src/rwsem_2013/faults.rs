//! Tasks that write to fresh pages, so that each write is a page fault.
//!
//! Threads share an address space, and its lock; processes do not. The difference between the two is what the
//! address space's lock costs.

use std::fs::File;
use std::path::Path;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};
use serde::{Deserialize, Serialize};

use super::mmap::use_small_pages;
use crate::workloads::mapping::Mapping as Memory;
use crate::workloads::workers::{self, Kind, Task};
use crate::workloads::{Cell, Configuration, Figure, Job, JobError, Report, Requirements, Workload, expect};

/// Pages that are written in one step.
const STEP: usize = 64;

pub static WORKLOAD: Workload = Workload {
    name: "faults",
    about: "write to each page of a fresh mapping, in threads and in processes",
    source: "002: the page faults of Tim Chen's test; after will-it-scale's page_fault1–3",
    variants: "--kind private|shared|file-private|file-shared, --as processes|threads",
    tasks: "tasks",
    thread_counts: &[1, 2, 4, 10, 40],
    figure: Figure::PerSecond("faults"),
    uses_directory: true,
    columns: &[],
    table: None,
    run,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Memory of one's own: page_fault1.
    Private,
    /// Memory that could be shared.
    Shared,
    /// A file of one's own, whose pages are copied on the first write: page_fault2.
    FilePrivate,
    /// A file of one's own, written through: page_fault3.
    FileShared,
}

impl Mapping {
    fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Shared => "shared",
            Self::FilePrivate => "file-private",
            Self::FileShared => "file-shared",
        }
    }

    fn has_file(self) -> bool {
        matches!(self, Self::FilePrivate | Self::FileShared)
    }

    fn flags(self) -> MapFlags {
        match self {
            Self::Private | Self::FilePrivate => MapFlags::PRIVATE,
            Self::Shared | Self::FileShared => MapFlags::SHARED,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    pub kind: Kind,
    pub mapping: Mapping,
    /// How many pages each of them maps at a time.
    pub pages: usize,
}

/// The cells for a request. `bytes` is the size of each task's mapping.
pub fn cells(mappings: &[Mapping], kinds: &[Kind], bytes: u64, thread_counts: &[usize]) -> Vec<Cell> {
    let pages = (bytes as usize / page_size()).max(1);
    let cell = |mapping: Mapping, tasks: usize| {
        let all = bytes * tasks as u64;
        let configuration =
            |&kind: &Kind| Configuration::new(kind.name(), &Parameters { kind, mapping, pages });
        Cell {
            variant: mapping.name().to_owned(),
            tasks,
            configurations: kinds.iter().map(configuration).collect(),
            needs: Requirements {
                descriptors: tasks as u64,
                processes: tasks as u64,
                threads: if kinds.contains(&Kind::Threads) { tasks as u64 } else { 0 },
                memory: if mapping == Mapping::FileShared { 0 } else { all },
                space: if mapping.has_file() { all } else { 0 },
                files: tasks as u64 + 1,
            },
        }
    };
    mappings
        .iter()
        .flat_map(|&mapping| thread_counts.iter().map(move |&tasks| cell(mapping, tasks)))
        .collect()
}

fn page_size() -> usize {
    rustix::param::page_size()
}

fn run(job: &Job) -> Result<Report, JobError> {
    let Parameters { kind, mapping, pages } = job.parameters()?;
    use_small_pages()?;
    let directory = job.directory()?;
    let make = |number| Toucher::new(mapping, pages, number, directory);
    Ok(workers::run(kind, job.tasks, job.duration, make)?.report)
}

struct Toucher {
    mapping: Mapping,
    file: Option<File>,
    memory: Option<Memory>,
    next_page: usize,
    pages: usize,
    /// What pages have in them before they are written in this pass.
    before: u8,
}

impl Toucher {
    fn new(mapping: Mapping, pages: usize, number: usize, directory: &Path) -> Result<Self, JobError> {
        let path = directory.join(format!("task-{number}"));
        let file = mapping.has_file().then(|| file(&path, (pages * page_size()) as u64)).transpose()?;
        Ok(Self { mapping, file, memory: None, next_page: 0, pages, before: 0 })
    }

    fn map(&mut self) -> Result<NonNull<u8>, JobError> {
        let (length, flags) = (self.pages * page_size(), self.mapping.flags());
        let memory = match &self.file {
            Some(file) => Memory::of(file, length, ProtFlags::READ | ProtFlags::WRITE, flags),
            None => Memory::anonymous(length, flags),
        };
        Ok(self.memory.insert(memory.map_err(JobError::failed("cannot map memory"))?).start)
    }

    fn unmap(&mut self) -> Result<(), JobError> {
        let Some(memory) = self.memory.take() else { return Ok(()) };
        self.next_page = 0;
        // A file that is written through keeps what was written, for the next pass.
        if self.mapping == Mapping::FileShared {
            self.before = after(self.before);
        }
        memory.unmap().map_err(JobError::failed("cannot unmap memory"))
    }
}

/// What is written over `before`.
fn after(before: u8) -> u8 {
    before.wrapping_add(1)
}

/// A file with blocks in it, so that faults do not allocate them.
fn file(path: &Path, length: u64) -> Result<File, JobError> {
    let made = || {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, length)?;
        Ok::<_, std::io::Error>(file)
    };
    made().map_err(JobError::failed(format!("cannot make the file {}", path.display())))
}

impl Task for Toucher {
    fn step(&mut self) -> Result<u64, JobError> {
        let memory = match &self.memory {
            Some(memory) => memory.start,
            None => self.map()?,
        };
        let pages = STEP.min(self.pages - self.next_page);
        let mut strange = 0;
        for page in self.next_page..self.next_page + pages {
            // SAFETY: inside of the mapping.
            let byte = unsafe { memory.add(page * page_size()) };
            // The write comes first, or the fault would be a read's. Another byte of the page shows what was
            // there. SAFETY: mapped, and ours alone.
            unsafe { byte.write_volatile(after(self.before)) };
            // SAFETY: inside of the same page.
            let other = unsafe { byte.add(1) };
            // SAFETY: as before.
            strange |= u64::from(unsafe { other.read_volatile() } != self.before);
            // SAFETY: as before.
            unsafe { other.write_volatile(after(self.before)) };
        }
        expect(strange == 0, || format!("a fresh page is not filled with {}", self.before))?;
        self.next_page += pages;
        if self.next_page == self.pages {
            self.unmap()?;
        }
        Ok(pages as u64)
    }
}
