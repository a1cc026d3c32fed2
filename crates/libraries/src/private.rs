//! A directory that is the user's alone, and a library in it.
//!
//! - P1: the directory has mode 0700 and belongs to the user, and its path is [trusted](crate::trusted): only the user's own
//!   processes create, replace or remove files in it. What was checked is therefore what programs load.
//! - P2: a name is bound to a complete file only, by `rename`. Two processes that write at once bind it twice, to the same
//!   content; a program that has mapped the older file keeps it.
//! - P3: content is compared at each start, since a crash of the machine may leave an empty file: nothing is synced.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::ptr;

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::Library;
use crate::places::Parent;
use crate::refusal::Refusal;
use crate::sweep;
use crate::trusted::{Directory, system};

/// Puts `library` into the directory `version` of ours, unless it is there; the path of the file.
pub(crate) fn put(library: Library, version: &str, parent: &Parent) -> Result<PathBuf, Refusal> {
    speakable(&parent.path)?;
    let open = if parent.is_created { Directory::open_or_create } else { Directory::open };
    let ours = open(&parent.path)?.enter_private(Path::new(&parent.name))?;
    let directory = ours.enter_private(Path::new(version))?;
    let path = directory.path.join(library.file);
    speakable(&path)?;
    // Before the file is looked at: from here on, no sweep takes this version for unused.
    let is_due = sweep::mark_used(&directory);
    if !holds(&directory, library)? {
        write(&directory, library)?;
    }
    if is_due {
        sweep::sweep(&ours, &directory);
    }
    Ok(path)
}

/// Whether `directory` has the library, complete, and not for others to change. It can be loaded then.
fn holds(directory: &Directory, library: Library) -> Result<bool, Refusal> {
    let Ok((fd, _)) = directory.file(Path::new(library.file)) else { return Ok(false) };
    let path = directory.path.join(library.file);
    let file = File::from(fd);
    if !equals(&file, library.content) {
        return Ok(false);
    }
    executable(file.as_fd(), &path).map(|()| true)
}

/// Whether a file has exactly this content.
pub(crate) fn equals(file: &File, content: &[u8]) -> bool {
    let mut found = Vec::with_capacity(content.len() + 1);
    // A byte more than expected is enough to tell them apart.
    let read = file.take(content.len() as u64 + 1).read_to_end(&mut found);
    read.is_ok() && found == content
}

/// P2.
fn write(directory: &Directory, library: Library) -> Result<(), Refusal> {
    // Random, not the process id: two containers may share a home.
    let unique = RandomState::new().build_hasher().finish();
    let new = PathBuf::from(format!("{}{}.{unique:016x}", sweep::UNFINISHED, library.file));
    let path = directory.path.join(library.file);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(&directory.fd, &new, flags, Mode::RUSR | Mode::WUSR).map_err(system(&path))?;
    let mut file = File::from(fd);
    let written = file
        .write_all(library.content)
        .map_err(|error| system(&path)(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
        .and_then(|()| executable(file.as_fd(), &path))
        .and_then(|()| renameat(&directory.fd, &new, &directory.fd, library.file).map_err(system(&path)));
    if written.is_err() {
        let _ = unlinkat(&directory.fd, &new, AtFlags::empty());
    }
    written
}

/// Tries what the loader will do: to map code of the file.
pub(crate) fn executable(fd: BorrowedFd<'_>, path: &Path) -> Result<(), Refusal> {
    const LENGTH: usize = 1;
    let protection = ProtFlags::READ | ProtFlags::EXEC;
    // SAFETY: a new mapping at an address of the kernel's choice, which nothing reads or runs.
    let mapped = unsafe { mmap(ptr::null_mut(), LENGTH, protection, MapFlags::PRIVATE, fd, 0) };
    match mapped {
        Ok(address) => {
            // SAFETY: it is the mapping that was just made, and nothing points into it.
            let _ = unsafe { munmap(address, LENGTH) };
            Ok(())
        }
        Err(Errno::PERM | Errno::ACCESS) => Err(Refusal::NotExecutable(path.to_path_buf())),
        Err(error) => Err(system(path)(error)),
    }
}

/// Whether `LD_PRELOAD` can name it.
pub(crate) fn speakable(path: &Path) -> Result<(), Refusal> {
    let separates = |byte: &u8| matches!(byte, b' ' | b':' | b'\t' | b'\n');
    if path.is_absolute() && !path.as_os_str().as_encoded_bytes().iter().any(separates) {
        return Ok(());
    }
    Err(Refusal::Path(path.to_path_buf()))
}
