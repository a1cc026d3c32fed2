//! Threads that map files, search them, and unmap them: a virus scanner.
//!
//! Document 002 has it in one sentence: a scanner with a thread per CPU that maps, scans and unmaps files
//! became faster with a mutex around the two calls. There, a section is around each call (`calls`). A tree
//! that is made is always the same one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use aho_corasick::AhoCorasick;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rustix::mm::{MapFlags, ProtFlags};
use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::definitions::Implementation;

use crate::workloads::mapping::Mapping;
use crate::workloads::serial::{Sections, Serial};
use crate::workloads::workers;
use crate::workloads::workload::Kind;
use crate::workloads::{
    Cell, Column, Configuration, Figure, Job, JobError, Report, Requirements, Workload, expect,
};

pub static WORKLOAD: Workload = Workload {
    name: "scan",
    about: "open, map, search, unmap the files of a tree; plain or with a mutex around calls",
    source: "002: Peter Zijlstra's virus scanner",
    variants: "--serialize none|iteration|calls, --tree DIR",
    tasks: "threads",
    thread_counts: &[],
    figure: Figure::PerSecond("files"),
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
    read(tree).map(drop)
}

fn run(job: &Job) -> Result<Report, JobError> {
    let Parameters { sections, tree } = job.parameters()?;
    let files = match &tree {
        Some(tree) => read(tree)?,
        None => make(job.directory()?)?,
    };
    let patterns = AhoCorasick::new(signatures()).map_err(|error| JobError::Refused(error.to_string()))?;
    let mut serial = Serial::new(job.mutex()?);
    let (next, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
    let done = workers::run(workers::Kind::Threads, job.tasks, job.duration, |_| {
        Ok(|| {
            let file = &files[next.fetch_add(1, Ordering::Relaxed) % files.len()];
            bytes.fetch_add(scan(file, &patterns, sections, &serial)?, Ordering::Relaxed);
            Ok(1)
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

/// Scans a file, checks what was found, and returns its size.
fn scan(known: &Known, patterns: &AhoCorasick, sections: Sections, serial: &Serial) -> Result<u64, JobError> {
    let found = match sections {
        Sections::None => search(&known.path, patterns, None),
        Sections::Iteration => serial.with(|| search(&known.path, patterns, None)),
        Sections::Calls => search(&known.path, patterns, Some(serial)),
    };
    let failed = JobError::failed(format!("cannot scan {}", known.path.display()));
    let (length, found) = found.map_err(failed)?;
    let is_right = known.hits.as_ref().is_none_or(|expected| *expected == found);
    expect(is_right, || format!("signatures {found:?} in {}, not {:?}", known.path.display(), known.hits))?;
    Ok(length as u64)
}

/// The size of a file, and the signatures in it. With `calls`, mapping and unmapping are sections.
fn search(path: &Path, patterns: &AhoCorasick, calls: Option<&Serial>) -> io::Result<(usize, Vec<u64>)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len() as usize;
    let map = || Mapping::of(&file, length, ProtFlags::READ, MapFlags::PRIVATE);
    let memory = calls.map_or_else(map, |serial| serial.with(map))?;
    // SAFETY: mapped for reading, that long.
    let bytes = unsafe { std::slice::from_raw_parts(memory.start.as_ptr(), memory.length) };
    let found = patterns.find_iter(bytes).map(|hit| hit.pattern().as_u64()).collect();
    match calls {
        Some(serial) => serial.with(|| memory.unmap())?,
        None => memory.unmap()?,
    }
    Ok((length, found))
}

/// Files of a tree that is made.
pub const FILES: usize = 512;

/// Their size, at most.
const LARGEST: usize = 128 << 10;

/// About the size of the tree, in bytes: sizes are spread evenly over their logarithms.
pub const TREE_BYTES: u64 = 24 << 20;

/// Decides what is in the tree, and what the signatures are.
const SEED: u64 = 0x5ca9;

/// How many signatures are looked for.
const SIGNATURES: usize = 32;

/// The length of a signature: too long to occur by chance.
const SIGNATURE_BYTES: usize = 16;

/// One file in this many has a signature planted.
const PLANTED: usize = 7;

/// Deeper trees, and larger ones, are not read.
const DEEPEST: usize = 64;
const MOST: usize = 100_000;

/// A file, and what must be found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) path: PathBuf,
    /// Signatures in their order; none if that is not known.
    pub(super) hits: Option<Vec<u64>>,
}

pub(super) fn signatures() -> Vec<[u8; SIGNATURE_BYTES]> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    (0..SIGNATURES).map(|_| rng.random()).collect()
}

/// Makes a tree in `directory`: 16 directories of files from 4 KB to 128 KB, some with a signature.
pub(super) fn make(directory: &Path) -> Result<Vec<Known>, JobError> {
    let signatures = signatures();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED + 1);
    let mut files = Vec::with_capacity(FILES);
    for number in 0..FILES {
        let inner = directory.join(format!("{:02}", number % 16));
        let path = inner.join(format!("{number:04}"));
        let failed = || JobError::failed(format!("cannot make {}", path.display()));
        fs::create_dir_all(&inner).map_err(failed())?;
        let length = LARGEST >> rng.random_range(0..=5);
        let mut bytes = vec![0; length];
        rng.fill(&mut bytes[..]);
        let mut hits = Vec::new();
        if number % PLANTED == 0 {
            let which = rng.random_range(0..SIGNATURES);
            let place = rng.random_range(0..length - SIGNATURE_BYTES);
            bytes[place..place + SIGNATURE_BYTES].copy_from_slice(&signatures[which]);
            hits.push(which as u64);
        }
        fs::write(&path, bytes).map_err(failed())?;
        files.push(Known { path, hits: Some(hits) });
    }
    Ok(files)
}

/// Finds the files of a user's tree that are not empty and can be read. Links are not followed.
pub(super) fn read(tree: &Path) -> Result<Vec<Known>, JobError> {
    let mut files = Vec::new();
    visit(tree, 0, &mut files).map_err(JobError::failed(format!("cannot read {}", tree.display())))?;
    if files.is_empty() {
        return Err(JobError::Refused(format!("there is no file to scan in {}", tree.display())));
    }
    files.sort_by(|a: &Known, b: &Known| a.path.cmp(&b.path));
    Ok(files)
}

fn visit(directory: &Path, depth: usize, files: &mut Vec<Known>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_dir() && depth < DEEPEST {
            // What cannot be read is left out.
            let _ = visit(&path, depth + 1, files);
        }
        let is_readable =
            || entry.metadata().is_ok_and(|data| data.len() > 0) && fs::File::open(&path).is_ok();
        if kind.is_file() && files.len() < MOST && is_readable() {
            files.push(Known { path, hits: None });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use aho_corasick::AhoCorasick;

    use super::*;

    #[test]
    fn the_same_tree_every_time_with_signatures_in_every_seventh_file() {
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [first, second] = directories.each_ref().map(|directory| make(directory.path()).unwrap());
        assert_eq!(
            first.iter().map(|file| &file.hits).collect::<Vec<_>>(),
            second.iter().map(|file| &file.hits).collect::<Vec<_>>()
        );
        let planted =
            first.iter().filter(|file| file.hits.as_ref().is_some_and(|hits| hits.len() == 1)).count();
        assert_eq!(planted, FILES.div_ceil(PLANTED));
        let bytes: u64 = first.iter().map(|file| fs::metadata(&file.path).unwrap().len()).sum();
        assert!((TREE_BYTES / 2..TREE_BYTES * 2).contains(&bytes), "{bytes}");
        let patterns = AhoCorasick::new(signatures()).unwrap();
        for file in first {
            let bytes = fs::read(&file.path).unwrap();
            let found: Vec<u64> = patterns.find_iter(&bytes).map(|hit| hit.pattern().as_u64()).collect();
            assert_eq!(Some(found), file.hits);
        }
    }

    #[test]
    fn a_users_tree() {
        let directory = tempfile::tempdir().unwrap();
        assert!(read(directory.path()).unwrap_err().to_string().contains("no file to scan"));
        fs::create_dir(directory.path().join("a")).unwrap();
        fs::write(directory.path().join("a/b"), "x").unwrap();
        fs::write(directory.path().join("empty"), "").unwrap();
        std::os::unix::fs::symlink("/", directory.path().join("link")).unwrap();
        assert_eq!(
            read(directory.path()).unwrap(),
            [Known { path: directory.path().join("a/b"), hits: None }]
        );
        assert!(read(Path::new("/no/such")).is_err());
    }
}
