//! The file in the directory of the recordings that counts how much disk space they take.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Its name in the directory.
pub const QUOTA_FILE: &core::ffi::CStr = c".spinpark-quota";

/// The file: one page, which all processes map that record into the directory. Every word is correct at any
/// moment, so a process that is killed leaves nothing to repair.
#[derive(Debug)]
#[repr(C)]
pub struct QuotaCount {
    /// Bytes on the disk that recordings have, or are about to have.
    pub taken: AtomicU64,
    /// The bound, bytes: the largest that a process was given.
    pub most: AtomicU64,
    /// Processes that are not recorded because the quota was used up.
    pub refused: AtomicU32,
    /// Processes that could not create their file, by [`Cause`].
    pub failed: [AtomicU32; CAUSES],
}

/// Why a process could not create its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Cause {
    /// It may not write in the directory.
    Permission,
    /// The directory is not where it was: another root directory, or removed.
    Missing,
    /// The disk is full.
    DiskFull,
    /// Its limit of open files.
    Descriptors,
    /// Its limit of file lengths.
    FileLength,
    /// Its limit of addresses, or of memory.
    Memory,
    /// It has entered a sandbox, in which another system call might end it.
    Sandbox,
    /// Another error.
    Other,
}

/// How many [`Cause`]s there are.
pub const CAUSES: usize = 8;
