//! Where a workload may write: a directory of its own, on a file system in memory, that is gone afterwards.
//!
//! The command makes one for each run and removes it after the run, however that ended: the worker never
//! removes it, so a worker that is killed leaves nothing. Only if the command itself is killed with
//! `SIGKILL`, it stays; its name is then `spinpark-` and six random characters.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The start of the names of our directories.
const PREFIX: &str = "spinpark-";

/// The kernel's numbers of file systems, as in statfs(2).
const FILE_SYSTEMS: [(i64, &str); 9] = [
    (TMPFS, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0xef53, "ext4"),
    (0x9123_683e, "btrfs"),
    (0x5846_5342, "xfs"),
    (0xf2f5_2010, "f2fs"),
    (0x2fc1_2fc1, "zfs"),
    (0x794c_7630, "overlay"),
    (0x6969, "nfs"),
];

const TMPFS: i64 = 0x0102_1994;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory in which they are made.
    pub path: PathBuf,
    pub file_system: String,
}

/// There is nowhere to write.
#[derive(Debug, Error)]
pub enum NoPlace {
    /// No file system in memory was found.
    #[error(
        "there is no tmpfs to write to: {} is none, or cannot be written\n\
         Mount one (`mount -t tmpfs none /mnt`) and name it with --dir /mnt; --dir also takes a directory on a disk, \
         whose speed is then measured, too",
        .0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NoTmpfs(Vec<PathBuf>),
    /// The user's choice is none.
    #[error("cannot write to --dir {}: {error}\nName a directory that exists and that you may write to", .path.display())]
    Unusable { path: PathBuf, error: io::Error },
}

impl Place {
    /// The user's choice, or the first tmpfs that can be written: `/dev/shm`, `$XDG_RUNTIME_DIR`, `/run/shm`,
    /// the directory for temporary files.
    pub fn find(chosen: Option<&Path>) -> Result<Self, NoPlace> {
        if let Some(path) = chosen {
            return Self::at(path).map_err(|error| NoPlace::Unusable { path: path.into(), error });
        }
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
        let candidates = [
            Some(OsString::from("/dev/shm")),
            runtime,
            Some(OsString::from("/run/shm")),
            Some(std::env::temp_dir().into_os_string()),
        ];
        let candidates: Vec<PathBuf> = candidates.into_iter().flatten().map(PathBuf::from).collect();
        let found = candidates.iter().filter_map(|path| Self::at(path).ok()).find(Self::is_in_memory);
        found.ok_or(NoPlace::NoTmpfs(candidates))
    }

    fn at(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let kind = rustix::fs::statfs(&path)?.f_type;
        let named = FILE_SYSTEMS.iter().find(|(number, _)| *number == kind);
        let file_system =
            named.map_or_else(|| format!("file system {kind:#x}"), |(_, name)| (*name).to_owned());
        let place = Self { path, file_system };
        // Whether it can be written shows only by writing: permissions are not everything.
        place.create()?.remove()?;
        Ok(place)
    }

    /// Whether what is written there stays in memory.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.file_system.as_str(), "tmpfs" | "ramfs")
    }

    pub fn create(&self) -> io::Result<PrivateDirectory> {
        // Readable by this user alone, and a new name, as from mkdtemp(3).
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).permissions(Permissions::from_mode(0o700));
        Ok(PrivateDirectory(builder.tempdir_in(&self.path)?))
    }
}

/// An empty directory of this run alone. It goes with everything in it when this is dropped.
#[derive(Debug)]
pub struct PrivateDirectory(tempfile::TempDir);

impl PrivateDirectory {
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn remove(self) -> io::Result<()> {
        let path = self.path().to_path_buf();
        self.0.close().map_err(|error| {
            io::Error::other(format!("cannot remove {}: {error}; remove it by hand", path.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_gone_afterwards() {
        let outside = tempfile::tempdir().unwrap();
        let place = Place::find(Some(outside.path())).unwrap();
        let directory = place.create().unwrap();
        let path = directory.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir(path.join("inner")).unwrap();
        fs::write(path.join("inner/file"), "x").unwrap();
        // What a link points to is not ours.
        fs::write(outside.path().join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), path.join("link")).unwrap();
        drop(directory);
        assert!(!path.exists() && outside.path().join("kept").exists());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn places_that_are_none() {
        let message = Place::find(Some(Path::new("/no/such/place"))).unwrap_err().to_string();
        assert!(message.contains("--dir /no/such/place") && message.contains("No such file"), "{message}");
        let message = Place::find(Some(Path::new("/proc"))).unwrap_err().to_string();
        assert!(message.contains("--dir /proc"), "{message}");
        let message = NoPlace::NoTmpfs(vec!["/a".into(), "/b".into()]).to_string();
        assert!(message.contains("/a, /b") && message.contains("mount -t tmpfs"), "{message}");
    }
}
