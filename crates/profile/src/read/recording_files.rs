//! Finding recordings and mapping them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::SeekFrom as Part;
use spinpark_observe::format::{Broken, HEADER_BYTES, Header, MAGIC, View};

use super::{ReadError, Unrecorded};
use crate::model::Ended;

/// How files of recordings end.
pub const EXTENSION: &str = "spinprof";

/// A recording, as it was when it was opened.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    /// A copy. The file has holes, and on a full disk in memory (tmpfs) a look at a hole that is mapped is a `SIGBUS`.
    map: MmapMut,
    ended: Ended,
}

/// The recordings of a directory.
#[derive(Debug)]
pub struct Directory {
    /// Those that can be read, the oldest process first.
    pub recordings: Vec<Recording>,
    /// Why others cannot.
    pub broken: Vec<ReadError>,
}

impl Recording {
    /// Reads a file and looks whether it is a recording.
    ///
    /// # Errors
    /// [`ReadError`]: it is missing, unreadable, or no recording that this version reads.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ReadError::Missing(path.to_owned()),
            _ => ReadError::Unreadable(path.to_owned(), error),
        };
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.len() < HEADER_BYTES as u64 {
            // A source file, say.
            let mut start = Vec::new();
            let read = (&file).take(8).read_to_end(&mut start);
            let is_ours = read.is_ok() && MAGIC.to_le_bytes().starts_with(&start);
            let why = if is_ours { Broken::Short } else { Broken::Foreign };
            return Err(ReadError::Broken(path.to_owned(), why));
        }
        let map = copy(file, metadata.len()).map_err(unreadable)?;
        let mut recording = Self { path: path.to_owned(), map, ended: Ended::Killed };
        let view = recording.try_view().map_err(|why| ReadError::Broken(path.to_owned(), why))?;
        let header = view.header();
        recording.ended = match header.exited.load(Relaxed) {
            0 if is_mapped_by(header.pid, path, metadata.ino()) => Ended::Running,
            0 => Ended::Killed,
            _ => Ended::Exited,
        };
        Ok(recording)
    }

    fn try_view(&self) -> Result<View<'_>, Broken> {
        // SAFETY: a page is aligned to 8 bytes, and the copy lasts as long as `self`, which has it alone.
        unsafe { View::new(self.map.as_ptr(), self.map.len()) }
    }

    /// The records.
    ///
    /// # Panics
    /// Never: the header was checked when the file was opened, and is written once.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        self.try_view().expect("it was checked when it was opened")
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the program ended, or that it has not.
    #[must_use]
    pub fn ended(&self) -> Ended {
        self.ended
    }

    /// Whether records that were written are beyond the end of the file.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        let bytes = self.map.len() as u64;
        self.view().header().regions.iter().any(|region| {
            let used = u64::from(region.used.load(Relaxed).min(region.capacity));
            used > 0 && region.offset.saturating_add(used * u64::from(region.stride)) > bytes
        })
    }
}

/// Copies the file from its start to its end. The header is copied first, so that it does not count records that the
/// program adds meanwhile and the copy lacks; the recorder claims records before it uses them.
fn copy(mut file: File, length: u64) -> io::Result<MmapMut> {
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut map = MmapOptions::new().len(length).no_reserve_swap().map_anon()?;
    let mut at = 0;
    while at < length {
        let (from, to) = match rustix::fs::seek(&file, Part::Data(at as u64)) {
            Ok(from) => (from, rustix::fs::seek(&file, Part::Hole(from))?),
            // Nothing but a hole is left.
            Err(rustix::io::Errno::NXIO) => break,
            // A file system that does not know its holes.
            Err(rustix::io::Errno::INVAL) => (at as u64, length as u64),
            Err(error) => return Err(error.into()),
        };
        let [from, to] = [from, to].map(|at| usize::try_from(at).unwrap_or(length).min(length));
        file.seek(SeekFrom::Start(from as u64))?;
        match file.read_exact(&mut map[from..to]) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => at = to.max(at + 1),
        }
    }
    Ok(map)
}

/// Writes the time of death into the recordings of process `pid`, which was killed just now and could not do so itself.
///
/// # Errors
/// As the system has them.
pub fn note_end(directory: &Path, pid: u32) -> io::Result<()> {
    let now = u64::try_from(super::clock::monotonic().as_nanos()).unwrap_or(u64::MAX);
    // A process that called exec has several recordings: the last one of each kind of locks.
    let mut last: BTreeMap<u32, (u64, PathBuf)> = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_recording = path.extension().is_some_and(|extension| extension == EXTENSION);
        let Some(recording) = is_recording.then(|| Recording::open(&path).ok()).flatten() else { continue };
        let (view, ended) = (recording.view(), recording.ended());
        let header = view.header();
        if header.pid != pid || ended != Ended::Killed || header.ended_monotonic.load(Relaxed) != 0 {
            continue;
        }
        let known = last.entry(header.locks).or_default();
        if header.start_monotonic >= known.0 {
            *known = (header.start_monotonic, path);
        }
    }
    for (_, path) in last.into_values() {
        let at = std::mem::offset_of!(Header, ended_monotonic) as u64;
        File::options().write(true).open(path)?.write_all_at(&now.to_le_bytes(), at)?;
    }
    Ok(())
}

/// Whether process `pid` lives and has the file mapped; so another process with the same number is not mistaken for it.
fn is_mapped_by(pid: u32, path: &Path, inode: u64) -> bool {
    let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else {
        // Another user's: it may be the one.
        return fs::metadata(format!("/proc/{pid}")).is_ok() && !is_dead(pid);
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let inode = inode.to_string();
    maps.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        // Recorders map it for writing; readers, such as this process, do not.
        let is_written = fields.nth(1).is_some_and(|permissions| permissions.starts_with("rw"));
        is_written && fields.nth(2) == Some(&inode) && line.ends_with(&*name)
    })
}

/// Whether all that is left of the process is what its parent has not read yet.
fn is_dead(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']))
}

/// Opens every recording of a directory, or the one that `path` is.
///
/// # Errors
/// If there is none that can be read: why.
pub fn directory(path: &Path) -> Result<Directory, ReadError> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing(path.to_owned()),
        _ => ReadError::Unreadable(path.to_owned(), error),
    };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(Directory { recordings: vec![Recording::open(path)?], broken: Vec::new() });
    }
    let mut found = Directory { recordings: Vec::new(), broken: Vec::new() };
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.extension().is_some_and(|extension| extension == EXTENSION) {
            match Recording::open(&file) {
                Ok(recording) => found.recordings.push(recording),
                Err(error) => found.broken.push(error),
            }
        }
    }
    found.broken.sort_by_key(ToString::to_string);
    found.recordings.sort_by_key(|recording| {
        let view = recording.view();
        (view.header().start_realtime, view.header().pid)
    });
    match (found.recordings.is_empty(), found.broken.is_empty()) {
        (true, true) => Err(match Unrecorded::of(path).sentences() {
            none if none.is_empty() => ReadError::Empty(path.to_owned()),
            sentences => ReadError::Unrecorded(path.to_owned(), sentences.join(" ")),
        }),
        (true, false) => Err(found.broken.remove(0)),
        (false, _) => Ok(found),
    }
}
