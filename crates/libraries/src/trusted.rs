//! Paths that no other user can change.
//!
//! A path is walked from `/`, one component at a time, without following a symbolic link; each directory is checked after it
//! was opened, so that what was checked is what the next step starts from. By induction, the name that was walked keeps
//! meaning the same directory for as long as root and the user leave it alone:
//!
//! - T1: each directory belongs to root or to the user.
//! - T2: other users cannot write to it, or it is sticky. In a sticky directory an entry can be renamed or removed by the
//!   owner of the entry, of the directory (T1), and by root. The next component has T1 as well, so it stays.
//! - T3: below a directory where others can write, no other file system begins: one that a user has mounted there (FUSE)
//!   can claim any owner and mode.

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dev, FileType, Mode, OFlags, Stat, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::refusal::Refusal;

/// The permissions in a mode.
pub(crate) const PERMISSIONS: u32 = 0o7777;
/// The permissions of group and others to write.
const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory whose path other users cannot change.
pub(crate) struct Directory {
    pub(crate) fd: OwnedFd,
    /// Its path, without symbolic links.
    pub(crate) path: PathBuf,
    device: Dev,
    /// Others can write to it (it is sticky then).
    is_shared: bool,
}

impl Directory {
    /// Walks to an existing directory.
    ///
    /// Symbolic links in `path` are resolved beforehand (`/home` may be one); the walk is along the resolved path, which has
    /// none. If a link changes meanwhile, another path is walked, and checked all the same.
    pub(crate) fn open(path: &Path) -> Result<Self, Refusal> {
        let failed = |error: std::io::Error| Refusal::System {
            path: path.to_path_buf(),
            error: Errno::from_io_error(&error).unwrap_or(Errno::INVAL),
        };
        let path = path.canonicalize().map_err(failed)?;
        let root = PathBuf::from("/");
        let fd = open(&root, DIRECTORY | OFlags::PATH, Mode::empty()).map_err(system(&root))?;
        let stat = fstat(&fd).map_err(system(&root))?;
        let mut directory = Self::trusted(fd, root, &stat)?;
        for component in path.components() {
            if let Component::Normal(name) = component {
                directory = directory.enter(Path::new(name))?;
            }
        }
        Ok(directory)
    }

    /// As [`open`](Self::open); creates the last component for the user alone if it is missing.
    pub(crate) fn open_or_create(path: &Path) -> Result<Self, Refusal> {
        match (Self::open(path), path.parent(), path.file_name()) {
            (Err(Refusal::System { error: Errno::NOENT, .. }), Some(parent), Some(name)) => {
                Self::open(parent)?.enter_private(Path::new(name))
            }
            (result, ..) => result,
        }
    }

    fn enter(&self, name: &Path) -> Result<Self, Refusal> {
        let path = self.path.join(name);
        let fd = openat(&self.fd, name, DIRECTORY | OFlags::PATH, Mode::empty()).map_err(system(&path))?;
        let stat = fstat(&fd).map_err(system(&path))?;
        self.check_device(&path, &stat)?;
        Self::trusted(fd, path, &stat)
    }

    /// Enters a directory that belongs to the user alone (mode 0700); creates it if it is missing.
    pub(crate) fn enter_private(&self, name: &Path) -> Result<Self, Refusal> {
        let path = self.path.join(name);
        let enter = || openat(&self.fd, name, DIRECTORY | OFlags::RDONLY, Mode::empty());
        let fd = match enter() {
            Err(Errno::NOENT) => match mkdirat(&self.fd, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => enter(),
                Err(error) => Err(error),
            },
            result => result,
        };
        let fd = fd.map_err(system(&path))?;
        let stat = fstat(&fd).map_err(system(&path))?;
        self.check_device(&path, &stat)?;
        // One of root's with this mode could not have been opened.
        if stat.st_mode & 0o777 != 0o700 {
            return Err(Refusal::NotPrivate { path, mode: stat.st_mode & PERMISSIONS });
        }
        Self::trusted(fd, path, &stat)
    }

    /// T3.
    fn check_device(&self, path: &Path, stat: &Stat) -> Result<(), Refusal> {
        if self.is_shared && stat.st_dev != self.device {
            return Err(Refusal::Mounted(path.to_path_buf()));
        }
        Ok(())
    }

    /// T1 and T2.
    fn trusted(fd: OwnedFd, path: PathBuf, stat: &Stat) -> Result<Self, Refusal> {
        check_owner(&path, stat)?;
        let is_shared = stat.st_mode & WRITABLE != 0;
        if is_shared && stat.st_mode & STICKY == 0 {
            return Err(Refusal::Writable { path, mode: stat.st_mode & PERMISSIONS });
        }
        Ok(Self { fd, path, device: stat.st_dev, is_shared })
    }

    /// Opens a regular file in it that other users can neither change nor replace.
    pub(crate) fn file(&self, name: &Path) -> Result<(OwnedFd, Stat), Refusal> {
        let path = self.path.join(name);
        // A fifo would otherwise wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(system(&path))?;
        let stat = fstat(&fd).map_err(system(&path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Refusal::Different(path));
        }
        self.check_device(&path, &stat)?;
        check_owner(&path, &stat)?;
        if stat.st_mode & WRITABLE != 0 {
            return Err(Refusal::Writable { path, mode: stat.st_mode & PERMISSIONS });
        }
        Ok((fd, stat))
    }
}

/// T1.
fn check_owner(path: &Path, stat: &Stat) -> Result<(), Refusal> {
    const ROOT: u32 = 0;
    if [ROOT, geteuid().as_raw()].contains(&stat.st_uid) {
        return Ok(());
    }
    Err(Refusal::Owner { path: path.to_path_buf(), owner: stat.st_uid })
}

/// A system call that failed at `path`.
pub(crate) fn system(path: &Path) -> impl Fn(Errno) -> Refusal {
    move |error| match error {
        Errno::NOTDIR | Errno::LOOP => Refusal::NotADirectory(path.to_path_buf()),
        error => Refusal::System { path: path.to_path_buf(), error },
    }
}
