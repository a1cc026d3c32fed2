//! Threads that map memory, perhaps write to it, and unmap it; plain, or one after the other.
//!
//! Both calls take the address space's lock for writing, and each first write to a page takes it for reading
//! (or a lock of the mapping, since Linux 6.4). Document 002 asks whether a mutex around all of it is faster:
//! with a fair and slow kernel lock it is, and should not be.

use rustix::mm::MapFlags;
use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::definitions::Implementation;

use crate::workloads::mapping::Mapping;
use crate::workloads::serial::{Sections, Serial};
use crate::workloads::workers::{self, Kind};
use crate::workloads::{Cell, Configuration, Figure, Job, JobError, Report, Requirements, Workload, expect};

/// The size of a mapping, in bytes.
pub const SIZE: usize = 1 << 20;

/// What is written every 8 bytes.
const PATTERN: u64 = 0x0a;

pub static WORKLOAD: Workload = Workload {
    name: "mmap",
    about: "map 1 MB, write to it or not, unmap it; plain or under a mutex",
    source: "002: Tim Chen's test of mmap and munmap, plain and with a pthread mutex",
    variants: "--touch none|all, --serialize none|iteration|calls",
    tasks: "threads",
    thread_counts: &[1, 2, 3, 4, 5, 10, 20, 40],
    figure: Figure::PerSecond("iter"),
    uses_directory: false,
    columns: &[],
    table: None,
    run,
};

/// What is written between the two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    None,
    /// Every 8 bytes: 256 page faults.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    pub touch: Touch,
    pub sections: Sections,
}

pub fn cells(
    touches: &[Touch],
    sections: &[Sections],
    locks: &[Implementation],
    thread_counts: &[usize],
) -> Vec<Cell> {
    let cell = |touch: Touch, tasks: usize| {
        let configuration = |name, sections| Configuration::new(name, &Parameters { touch, sections });
        let memory = match touch {
            Touch::None => 0,
            Touch::All => (SIZE * tasks) as u64,
        };
        Cell {
            variant: String::from(match touch {
                Touch::None => "untouched",
                Touch::All => "touched",
            }),
            tasks,
            configurations: Sections::configurations(sections, locks, configuration),
            needs: Requirements {
                processes: tasks as u64,
                threads: tasks as u64,
                memory,
                ..Requirements::default()
            },
        }
    };
    touches.iter().flat_map(|&touch| thread_counts.iter().map(move |&tasks| cell(touch, tasks))).collect()
}

fn run(job: &Job) -> Result<Report, JobError> {
    let Parameters { touch, sections } = job.parameters()?;
    use_small_pages()?;
    let mut serial = Serial::new(job.mutex()?);
    let done = workers::run(Kind::Threads, job.tasks, job.duration, |_| {
        Ok(|| {
            iteration(touch, sections, &serial)?;
            Ok(1)
        })
    })?;
    serial.check(done.all * sections.per_iteration())?;
    Ok(done.report)
}

fn iteration(touch: Touch, sections: Sections, serial: &Serial) -> Result<(), JobError> {
    match sections {
        Sections::None => unmap(touched(map()?, touch)?),
        Sections::Iteration => serial.with(|| unmap(touched(map()?, touch)?)),
        Sections::Calls => {
            let memory = touched(serial.with(map)?, touch)?;
            serial.with(|| unmap(memory))
        }
    }
}

/// Pages of 4 KB, so that a touched megabyte is 256 faults, as when the test was made.
pub(super) fn use_small_pages() -> Result<(), JobError> {
    // SAFETY: takes numbers only, and changes how this process' memory is mapped from now on.
    let result = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    match result {
        0 => Ok(()),
        _ => Err(JobError::failed("cannot switch huge pages off")(std::io::Error::last_os_error())),
    }
}

fn map() -> Result<Mapping, JobError> {
    Mapping::anonymous(SIZE, MapFlags::PRIVATE).map_err(JobError::failed("cannot map memory"))
}

/// Writes to the memory if that is asked, and checks that it was fresh and is what was written.
fn touched(memory: Mapping, touch: Touch) -> Result<Mapping, JobError> {
    const WORDS: usize = SIZE / size_of::<u64>();
    if touch == Touch::None {
        return Ok(memory);
    }
    let (words, mut found) = (memory.start.cast::<u64>(), 0);
    for index in 0..WORDS {
        // SAFETY: inside of the mapping.
        let word = unsafe { words.add(index) };
        if index % (4096 / size_of::<u64>()) == 8 {
            // SAFETY: mapped, and ours alone.
            found |= unsafe { word.read_volatile() };
        }
        // SAFETY: as before; volatile, or a compiler may see that it is never read.
        unsafe { word.write_volatile(PATTERN) };
    }
    // SAFETY: the last word of the mapping.
    let last = unsafe { words.add(WORDS - 1) };
    // SAFETY: mapped, and ours alone.
    let last = unsafe { last.read_volatile() };
    expect(found == 0 && last == PATTERN, || {
        format!("fresh memory has {found:#x} in it, written {last:#x}")
    })?;
    Ok(memory)
}

fn unmap(memory: Mapping) -> Result<(), JobError> {
    memory.unmap().map_err(JobError::failed("cannot unmap memory"))
}
