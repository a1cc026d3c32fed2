//! Finding recordings and mapping them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::SeekFrom as Part;
use spinpark_recorder::format::{Broken, CLOSED, HEADER_BYTES, Header, MAGIC, PAGE, View};

use super::{ReadError, Unrecorded};
use crate::live_process;
use crate::model::RecordingEnd;

/// How files of recordings end.
pub const EXTENSION: &str = "spinprof";

/// A recording, as it was when it was opened.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    /// A copy. The file has holes, and on a full disk in memory (tmpfs) reading a hole that is mapped is a
    /// `SIGBUS`.
    map: MmapMut,
    ended: RecordingEnd,
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
    /// Reads a file and checks whether it is a recording.
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
        let mut recording = Self { path: path.to_owned(), map, ended: RecordingEnd::Killed };
        let view = recording.try_view().map_err(|why| ReadError::Broken(path.to_owned(), why))?;
        let header = view.header();
        recording.ended = match header.exited.load(Relaxed) {
            0 if may_run(header, path) => RecordingEnd::Running,
            0 => RecordingEnd::Killed,
            _ => RecordingEnd::Exited,
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
    pub fn ended(&self) -> RecordingEnd {
        self.ended
    }

    /// Whether records that were written are beyond the end of the file.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.view().is_cut_short()
    }
}

/// Copies the file from its start to its end. The header is copied first, so that it does not count records
/// that the program adds meanwhile and the copy lacks; the recorder claims records before it uses them.
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

/// Writes the time of death into the recordings of process `pid`, which was killed just now and could not do
/// so itself.
///
/// # Errors
/// As the system has them.
pub fn note_end(directory: &Path, pid: u32) -> io::Result<()> {
    // A process that called exec has several recordings: the last one of each kind of locks.
    let mut last: BTreeMap<u32, (u64, u64, PathBuf)> = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_recording = path.extension().is_some_and(|extension| extension == EXTENSION);
        let Some(recording) = is_recording.then(|| Recording::open(&path).ok()).flatten() else { continue };
        let (view, ended) = (recording.view(), recording.ended());
        let header = view.header();
        if header.pid != pid || ended != RecordingEnd::Killed || header.ended_monotonic.load(Relaxed) != 0 {
            continue;
        }
        let known = last.entry(header.locks).or_default();
        if header.start_monotonic >= known.0 {
            *known = (header.start_monotonic, super::clock::monotonic_of(header), path);
        }
    }
    for (_, now, path) in last.into_values() {
        let at = std::mem::offset_of!(Header, ended_monotonic) as u64;
        File::options().write(true).open(path)?.write_all_at(&now.to_le_bytes(), at)?;
    }
    Ok(())
}

/// Cuts recordings of processes that have ended off behind what they have used, where they could not do so
/// themselves: they were killed, or had left the directory. Files are left as they are if we may not write
/// them, or their process may still run.
pub fn compact(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION)) {
        // What cannot be made shorter can be read all the same.
        let _ = compact_file(&path);
    }
}

fn compact_file(path: &Path) -> io::Result<()> {
    {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() <= HEADER_BYTES as u64 {
            return Ok(());
        }
        // SAFETY: no file becomes shorter than its header, which recorders and readers change by atomic
        // operations.
        let map = unsafe { MmapOptions::new().len(HEADER_BYTES).map(&file)? };
        // SAFETY: a page is aligned to 8 bytes, and is mapped as long as this is used.
        let Ok(view) = (unsafe { View::new(map.as_ptr(), HEADER_BYTES) }) else { return Ok(()) };
        let header = view.header();
        let used = u64::from(header.end.load(Relaxed) & !CLOSED) * PAGE as u64;
        let is_whole = (HEADER_BYTES as u64..metadata.len()).contains(&used);
        if !is_whole || header.exited.load(Relaxed) == 0 && may_run(header, path) {
            return Ok(());
        }
    }
    let file = File::options().read(true).write(true).open(path)?;
    // SAFETY: as above.
    let map = unsafe { MmapOptions::new().len(HEADER_BYTES).map_mut(&file)? };
    // SAFETY: a page is aligned to 8 bytes; it was a header just now, and any bits are one.
    let header = unsafe { &*map.as_ptr().cast::<Header>() };
    // Should the process live after all, it adds nothing from here on; what it has is not cut off.
    let used = header.end.fetch_or(CLOSED, Relaxed) & !CLOSED;
    file.set_len(u64::from(used) * PAGE as u64)
}

/// Whether the process of a recording that has not exited may run still.
fn may_run(header: &Header, path: &Path) -> bool {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    // Its number means another process here, or none.
    if header.namespace != 0 && namespace.as_os_str() != &*format!("pid:[{}]", header.namespace) {
        return is_in_use(path).unwrap_or(false);
    }
    fs::metadata(path).is_ok_and(|metadata| is_mapped_by(header.pid, path, metadata.ino()))
}

/// Whether a process has the file open for writing, or mapped so: the kernel gives no lease then. None if it
/// gives none anyway: the file is another user's, or on a file system without leases.
#[must_use]
pub fn is_in_use(path: &Path) -> Option<bool> {
    is_file_in_use(&File::open(path).ok()?)
}

/// The same of a file that is open for reading.
pub(crate) fn is_file_in_use(file: &File) -> Option<bool> {
    /// Of `fcntl`, on Linux.
    const SET_SIGNAL: libc::c_int = 10;
    let control = |command: libc::c_int, argument: libc::c_int| {
        // SAFETY: an open descriptor, and commands with a number.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
            -1 => Err(io::Error::last_os_error().raw_os_error()),
            _ => Ok(()),
        }
    };
    // By a signal that is ignored the kernel would tell that the lease is in another's way.
    control(SET_SIGNAL, libc::SIGURG).ok()?;
    match control(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => {
            let _ = control(libc::F_SETLEASE, libc::F_UNLCK);
            Some(false)
        }
        Err(error) => (error == Some(libc::EAGAIN)).then_some(true),
    }
}

/// Whether process `pid` lives and has the file mapped; so another process with the same number is not
/// mistaken for it.
fn is_mapped_by(pid: u32, path: &Path, inode: u64) -> bool {
    let Ok(maps) = fs::read_to_string(live_process::directory(pid).join("maps")) else {
        // Another user's: it may be the one.
        return fs::metadata(format!("/proc/{pid}")).is_ok() && !live_process::is_dead(pid);
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
