//! Why a place is not used.

use std::path::PathBuf;

use rustix::io::Errno;
use thiserror::Error;

/// Why a place is not used.
#[derive(Debug, Error)]
pub enum Refusal {
    /// A system call failed.
    #[error("{}: {}", .path.display(), std::io::Error::from(*.error))]
    System {
        /// Where.
        path: PathBuf,
        /// What it said.
        error: Errno,
    },
    /// The path is relative, or has a character that separates entries of `LD_PRELOAD`.
    #[error("{}: LD_PRELOAD needs an absolute path without blanks and colons", .0.display())]
    Path(PathBuf),
    /// A symbolic link, or a file, where a directory of ours belongs.
    #[error("{}: not a directory, or a symbolic link", .0.display())]
    NotADirectory(PathBuf),
    /// It belongs to neither root nor the user.
    #[error("{}: belongs to user {owner}, who could replace the library", .path.display())]
    Owner {
        /// Which directory or file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Others can write to it.
    #[error("{}: other users can write to it (mode {mode:04o})", .path.display())]
    Writable {
        /// Which directory or file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A directory that should be the user's alone is not.
    #[error("{}: its mode is {mode:04o}, not 0700; remove the directory, or mend the mode", .path.display())]
    NotPrivate {
        /// Which directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file system begins in a directory where other users can create files.
    #[error("{}: mounted in a directory where other users can write", .0.display())]
    Mounted(PathBuf),
    /// Code there cannot be mapped.
    #[error("{}: programs cannot load code from there (mounted noexec?)", .0.display())]
    NotExecutable(PathBuf),
    /// A file beside the command that is not this command's.
    #[error("{}: not the library of this command", .0.display())]
    Different(PathBuf),
}
