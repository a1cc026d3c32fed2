//! A program that a process runs, and whether the recorder was loaded into it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use object::Endianness;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{ReadCache, ReadRef, elf};

use super::lock_waits::LockWaits;
use super::task::Task;
use crate::live_process;
use crate::model::{Recorder, ThreadTime, Threads};

/// The type of the word of the auxiliary vector that is set if the kernel does not trust the environment
/// (`AT_SECURE`).
const AT_SECURE: u64 = libc::AT_SECURE;

/// Idle threads of a program that are kept one by one.
const MOST_IDLE: usize = 256;

/// A program that a process ran.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) program: String,
    pub(super) inner_pid: u32,
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) recorder: Recorder,
    pub(super) tasks: BTreeMap<u32, Task>,
    pub(super) ended: Threads,
    /// Idle threads that are there no longer, with their time.
    pub(super) idle: Vec<(u32, ThreadTime)>,
    /// What its threads that are there no longer slept at.
    pub(super) lock_waits: LockWaits,
}

impl Image {
    /// A program at its first sample.
    pub(super) fn new(program: String, inner_pid: u32, at: u64, recorder: Recorder) -> Self {
        Self {
            program,
            inner_pid,
            from: at,
            until: at,
            recorder,
            tasks: BTreeMap::new(),
            ended: Threads::default(),
            idle: Vec::new(),
            lock_waits: LockWaits::default(),
        }
    }

    /// Adds up a thread that is there no longer.
    pub(super) fn end(&mut self, id: u32, task: &Task) {
        self.ended.number += 1;
        self.ended.samples += task.samples;
        let time = task.time();
        if task.is_idle(self.until.saturating_sub(self.from)) {
            self.ended.idle += 1;
            self.ended.idle_time.add(&time);
            self.idle.push((id, time));
            if self.idle.len() > 2 * MOST_IDLE {
                self.keep_idle();
            }
        } else {
            self.ended.time.add(&time);
            task.lock_waits().for_each(|(number, waited)| self.lock_waits.add(number, waited));
        }
    }

    /// Keeps the idle threads that lived longest.
    pub(super) fn keep_idle(&mut self) {
        self.idle.sort_by_key(|(_, time)| Reverse(time.total()));
        self.idle.truncate(MOST_IDLE);
    }
}

/// Whether process `pid` has the recorder, whose file is called `library`; [`Recorder::Unknown`] while its
/// loader is at work.
pub(super) fn recorder(pid: u32, library: &str) -> Recorder {
    let directory = live_process::directory(pid);
    let file = |name: &str| directory.join(name);
    let maps = match fs::read(file("maps")) {
        Ok(maps) => maps,
        // Only a process with privileges of its own may not be looked into by its parent.
        Err(_) if has_gained_privileges(pid) => return Recorder::Privileged,
        Err(_) => return Recorder::Unknown,
    };
    // The loader maps what is preloaded before the libraries that a program names, the C library among them.
    let maps = String::from_utf8_lossy(&maps);
    let names = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5)?.rsplit('/').next());
    let mut has_libc = false;
    for name in names {
        if name == library {
            return Recorder::Loaded;
        }
        has_libc |= name.starts_with("libc.") || name.starts_with("libc-") || name.starts_with("ld-musl");
    }
    let kind = fs::File::open(file("exe")).ok().and_then(|exe| {
        let cache = ReadCache::new(exe);
        match (&cache).read_bytes_at(0, 5).ok()? {
            [.., 1] => Some(Kind::Bits32),
            _ => interpreter(&cache),
        }
    });
    match kind {
        Some(Kind::Bits32) => Recorder::Bits32,
        Some(Kind::Static) => Recorder::Static,
        Some(Kind::Loader(loader)) if loader.contains("musl") => Recorder::OtherLibc,
        _ if !has_libc => Recorder::Unknown,
        _ if has_gained_privileges(pid) => Recorder::Privileged,
        _ => match fs::read(file("environ")) {
            Ok(environment) if has_preload(&environment, library) => Recorder::NotLoaded,
            Ok(_) => Recorder::NoPreload,
            Err(_) => Recorder::Missing,
        },
    }
}

enum Kind {
    Bits32,
    Static,
    Loader(String),
}

fn interpreter<'data>(data: impl ReadRef<'data>) -> Option<Kind> {
    let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let named = segments.iter().find_map(|segment| segment.interpreter(endian, data).ok()?);
    Some(named.map_or(Kind::Static, |name| Kind::Loader(String::from_utf8_lossy(name).into_owned())))
}

fn has_preload(environment: &[u8], library: &str) -> bool {
    environment.split(|byte| *byte == 0).any(|variable| {
        variable
            .strip_prefix(b"LD_PRELOAD=")
            .is_some_and(|value| String::from_utf8_lossy(value).contains(library))
    })
}

/// Whether the kernel gave the process, at its last `exec`, rights that its caller lacks.
fn has_gained_privileges(pid: u32) -> bool {
    let directory = live_process::directory(pid);
    if let Ok(vector) = fs::read(directory.join("auxv")) {
        let words: Vec<u64> = vector
            .chunks_exact(8)
            .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)))
            .collect();
        return words.chunks_exact(2).any(|pair| pair[0] == AT_SECURE && pair[1] != 0);
    }
    // The files of a process that may not be looked into belong to the superuser.
    let is_closed = fs::metadata(&directory).is_ok_and(|it| it.uid() == 0);
    is_closed && !rustix::process::geteuid().is_root()
}

/// Its path, with the kernel's suffix for a file that is gone.
pub(super) fn program(pid: u32) -> Option<String> {
    let path = fs::read_link(live_process::directory(pid).join("exe")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

/// Its number in its own namespace of processes, which is the one that its recording has.
pub(super) fn inner_number(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_no_recorder() {
        let pid = std::process::id();
        assert_eq!(recorder(pid, "libspinpark_profiler.so"), Recorder::NoPreload);
        assert_eq!(recorder(pid, "libc.so.6"), Recorder::Loaded);
        assert_eq!(inner_number(pid), Some(pid));
        assert!(program(pid).is_some_and(|path| path.starts_with('/')));
    }

    #[test]
    fn environments() {
        let library = "libspinpark_profiler.so";
        assert!(has_preload(b"A=1\0LD_PRELOAD=/x/libjemalloc.so:/y/libspinpark_profiler.so\0", library));
        assert!(!has_preload(b"A=1\0LD_PRELOAD=/x/libjemalloc.so\0B=libspinpark_profiler.so\0", library));
        assert!(!has_preload(b"", library));
    }
}
