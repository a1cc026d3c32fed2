//! The file beside the recordings that counts how much room they take.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Its name in the directory.
pub const ROOM_FILE: &core::ffi::CStr = c".spinpark-room";

/// The file: one page, which all processes map that record into the directory. Every word is right at any moment, so a
/// process that is killed leaves nothing to repair.
#[derive(Debug)]
#[repr(C)]
pub struct RoomCount {
    /// Bytes on the disk that recordings have, or are about to have.
    pub taken: AtomicU64,
    /// The bound, bytes: the largest that a process was told.
    pub most: AtomicU64,
    /// Processes that are not recorded because there was no room left.
    pub refused: AtomicU32,
    /// Processes that could not create their file.
    pub failed: AtomicU32,
}
