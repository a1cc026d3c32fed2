//! The page by which a dormant process is asked to record: a file that it maps, beside that of its recording.
//!
//! A command writes `wish`, then rings `bell`; a thread of the process that makes an intercepted call takes
//! the bell down, does what is wished, and writes `done`. Odd numbers wish for a recording, even ones for its
//! end; each is larger than any before. Nothing in the page is trusted: whatever its bits are, the process
//! records or does not, and goes on.
//!
//! | word          | written by  | is                                                                             |
//! |---------------|-------------|--------------------------------------------------------------------------------|
//! | `bell`        | both        | 1: there may be a wish                                                           |
//! | `wish`        | the command | the number of the latest wish                                                  |
//! | `done`        | the process | the number of the latest wish that it has fulfilled, or that has failed          |
//! | `failure`     | the process | why that one has failed: a [`Cause`](super::Cause) + 1; or 0                     |
//! | `beat`        | the command | changes as long as it wants the recording ([`BEAT_NS`])                          |
//! | `slower_than` | the command | waits of this many ns are kept whole                                             |
//! | the others    | the process | what this is; once                                                               |
//!
//! Two commands exclude each other by a lock on the file (`flock`). If one is killed, `beat` stands still. The
//! process notices that at a wait that it records, after [`LEASE_NS`], and ends the recording as if that had
//! been wished: `done` is one more than `wish` then. The next command does so otherwise.
//!
//! Relaxed, but for `wish` and `done`, which are written after what they are about (Release, Acquire).

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The bytes of the file.
pub const CONTROL_BYTES: usize = 4096;
/// The first eight bytes of what does not change; written last.
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"SPINDORM");
/// Changes whenever this module does.
pub const CONTROL_VERSION: u32 = 1;
/// The file's name, in the directory that the process has made for itself.
pub const CONTROL_FILE: &CStr = c"control.dormant";
/// How often a command changes `beat` at least, ns.
pub const BEAT_NS: u64 = 500_000_000;
/// A process whose `beat` has stood still for so long records no more, ns.
pub const LEASE_NS: u64 = 5_000_000_000;

/// See above. All zero is that of a process that is not dormant.
#[derive(Debug)]
#[repr(C)]
pub struct Control {
    /// First: trampolines look at it.
    pub bell: AtomicU32,
    /// See above.
    pub wish: AtomicU32,
    /// See above.
    pub done: AtomicU32,
    /// See above.
    pub failure: AtomicU32,
    /// See above.
    pub beat: AtomicU32,
    /// [`CONTROL_VERSION`].
    pub version: AtomicU32,
    /// See above.
    pub slower_than: AtomicU64,
    /// [`CONTROL_MAGIC`].
    pub magic: AtomicU64,
    /// The process, by its own number.
    pub pid: AtomicU32,
    /// Spare.
    pub reserved: AtomicU32,
}

impl Control {
    /// Of a process that is not dormant.
    #[must_use]
    pub const fn new() -> Self {
        #[allow(clippy::declare_interior_mutable_const, reason = "to fill fields")]
        const ZERO: AtomicU32 = AtomicU32::new(0);
        Self {
            bell: ZERO,
            wish: ZERO,
            done: ZERO,
            failure: ZERO,
            beat: ZERO,
            version: ZERO,
            slower_than: AtomicU64::new(0),
            magic: AtomicU64::new(0),
            pid: ZERO,
            reserved: ZERO,
        }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

const _: () = assert!(size_of::<Control>() <= CONTROL_BYTES);
