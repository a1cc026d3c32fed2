//! Files of a running program, opened before they vanish.
//!
//! Bundles remove their programs when these end, packages are upgraded, and memory files have no path at all.
//! So the command that started the recording checks a few times a second which modules the recordings of its
//! directory name, and opens those of processes that still run, through `/proc/PID`. An open file stays what
//! it was, whatever becomes of its name.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use spinpark_recorder::format::{HEADER_BYTES, RegionId, View};

use crate::maps::Maps;
use crate::read::{EXTENSION, Recording};
use crate::symbols::Kept;

/// Time between two samples.
const EVERY: Duration = Duration::from_millis(20);

/// Opens the files of the programs that are recorded in a directory, until it is stopped.
#[derive(Debug)]
pub struct Keeper {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Kept>>,
}

impl Keeper {
    /// Starts to check.
    #[must_use]
    pub fn start(directory: &Path) -> Self {
        Self::of(directory, None)
    }

    /// The same of recordings of this process, which has another number for itself perhaps, as in a container.
    #[must_use]
    pub fn start_for(directory: &Path, process: u32) -> Self {
        Self::of(directory, Some(process))
    }

    fn of(directory: &Path, process: Option<u32>) -> Self {
        let (is_over, directory) = (Arc::new(AtomicBool::new(false)), directory.to_owned());
        let flag = Arc::clone(&is_over);
        let check = move || {
            let mut watch = Watch { process, ..Watch::default() };
            while !flag.load(Relaxed) {
                watch.check(&directory);
                thread::park_timeout(EVERY);
            }
            watch.check(&directory);
            watch.kept
        };
        Self { is_over, thread: thread::Builder::new().spawn(check).ok() }
    }

    /// Stops, and returns what was opened.
    #[must_use]
    pub fn stop(mut self) -> Kept {
        self.is_over.store(true, Relaxed);
        let thread = self.thread.take().inspect(|thread| thread.thread().unpark());
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// How much of each recording was read.
#[derive(Default)]
struct Watch {
    kept: Kept,
    /// The process that all recordings are of, if it is known.
    process: Option<u32>,
    /// Bytes of the maps that each recording had at the last sample.
    seen: HashMap<PathBuf, u32>,
    /// Files that cannot be read, or are none.
    passed: HashSet<PathBuf>,
}

impl Watch {
    fn check(&mut self, directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_recording = path.extension().is_some_and(|extension| extension == EXTENSION);
            if is_recording && !self.passed.contains(&path) && self.open_new(&path).is_none() {
                self.passed.insert(path);
            }
        }
    }

    /// Opens what a recording names that is new. None if it need not be read again.
    fn open_new(&mut self, path: &Path) -> Option<()> {
        let file = File::open(path).ok()?;
        let mut page = vec![0_u64; HEADER_BYTES / 8];
        // SAFETY: the page has this length; any bits are numbers.
        let bytes = unsafe { std::slice::from_raw_parts_mut(page.as_mut_ptr().cast::<u8>(), HEADER_BYTES) };
        match file.read_exact_at(bytes, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Some(()),
            Err(_) => return None,
            Ok(()) => {}
        }
        // SAFETY: aligned, and of this length; it is this thread's alone.
        let Ok(view) = (unsafe { View::new(page.as_ptr().cast(), HEADER_BYTES) }) else { return Some(()) };
        let header = view.header();
        let region = &header.regions[RegionId::Maps as usize];
        let used = region.used.load(Relaxed).min(region.capacity);
        let known = self.seen.get(path).copied().unwrap_or(0);
        if used > known {
            let recording = Recording::open(path).ok()?;
            let text: Vec<u8> = recording.view().maps().flatten().copied().collect();
            let maps = Maps::new(&text);
            for mapping in
                maps.snapshots().flatten().filter(|mapping| mapping.is_file() && mapping.is_executable)
            {
                self.kept.keep(self.process.unwrap_or(header.pid), mapping);
            }
            // What is claimed and not written yet is zeros.
            if text.last() != Some(&0) {
                self.seen.insert(path.to_owned(), used);
            }
        }
        // A process that has ended names nothing more.
        (header.exited.load(Relaxed) == 0).then_some(())
    }
}
