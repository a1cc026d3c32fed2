//! The page by which dormant processes are asked to record: a file that a process maps at its start, beside
//! that of its recording. Its forked children have the same page; each can be asked.
//!
//! A command takes a [`Request`] of the page for itself, writes which process it is for and what it wishes, and
//! rings `bell`: makes it another number. Each process compares that with the number that it heard last, at
//! each intercepted call. A thread that finds another one looks for a request to its process, does what is
//! wished, and writes `done`. Odd numbers wish for a recording, even ones for its end; each is larger than any
//! before. Nothing in the page is trusted: whatever its bits are, the process records or does not, and goes on.
//!
//! | word          | written by  | is                                                                             |
//! |---------------|-------------|--------------------------------------------------------------------------------|
//! | `bell`        | commands    | a number that changes after each wish                                            |
//! | `process`     | the command | the process, by its own number; 0: the request is free                         |
//! | `namespace`   | the command | the number of that process' PID namespace; 0: not known                        |
//! | `wish`        | the command | the number of the latest wish                                                  |
//! | `done`        | the process | the number of the latest wish that it has fulfilled, or that has failed          |
//! | `failure`     | the process | why that one has failed: a [`Cause`](super::Cause) + 1, or [`NO_BARRIER`]; or 0   |
//! | `beat`        | the command | changes while the command runs, every [`BEAT_NS`]                                |
//! | `slower_than` | the command | waits of this length, ns, are kept whole                                       |
//! | `file`        | the process | its descriptor of the recording + 1; 0: the recording is the file beside the page |
//! | the others    | the process | what this is; once                                                               |
//!
//! A command locks the bytes of its request (`F_OFD_SETLK`), so two exclude each other that want the same
//! process; and the file (`flock`) while it chooses a request or rings. If one is killed, `beat` stands still.
//! The process notices that at a wait that it records, after [`LEASE_NS`], and ends the recording as if that
//! had been wished: `done` is one more than `wish` then. The next command does so otherwise.
//!
//! Relaxed, but for `bell`, `wish` and `done`, which are written after what they are about (Release, Acquire).

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The bytes of the file.
pub const CONTROL_BYTES: usize = 4096;
/// The first eight bytes of what does not change; written last.
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"SPINDORM");
/// Changes whenever this module does.
pub const CONTROL_VERSION: u32 = 2;
/// The file's name, in the directory that the process has made for itself.
pub const CONTROL_FILE: &CStr = c"control.dormant";
/// The name of the recording of a forked child, which has no file system's.
pub const MEMORY_FILE: &CStr = c"spinpark-recording";
/// How often a command changes `beat` at least, ns.
pub const BEAT_NS: u64 = 500_000_000;
/// A process whose `beat` has stood still for so long records no more, ns.
pub const LEASE_NS: u64 = 5_000_000_000;
/// The processes with one page that can be asked at a time.
pub const REQUESTS: usize = 100;
/// A `failure`: the kernel does not order the memory of the process' threads (`membarrier`).
pub const NO_BARRIER: u32 = 1 << 16;

/// See above. All zero is that of a process that is not dormant.
#[derive(Debug)]
#[repr(C)]
pub struct Control {
    /// First: trampolines look at it.
    pub bell: AtomicU32,
    /// [`CONTROL_VERSION`].
    pub version: AtomicU32,
    /// [`CONTROL_MAGIC`].
    pub magic: AtomicU64,
    /// See above.
    pub requests: [Request; REQUESTS],
}

/// What one process is asked. All zero: nothing.
#[derive(Debug)]
#[repr(C)]
pub struct Request {
    /// See above.
    pub process: AtomicU32,
    /// See above.
    pub namespace: AtomicU32,
    /// See above.
    pub wish: AtomicU32,
    /// See above.
    pub done: AtomicU32,
    /// See above.
    pub failure: AtomicU32,
    /// See above.
    pub beat: AtomicU32,
    /// See above.
    pub slower_than: AtomicU64,
    /// See above.
    pub file: AtomicU32,
    /// Spare.
    pub reserved: AtomicU32,
}

impl Control {
    /// Of a process that is not dormant.
    #[must_use]
    pub const fn new() -> Self {
        #[allow(clippy::declare_interior_mutable_const, reason = "to fill fields")]
        const ZERO: AtomicU32 = AtomicU32::new(0);
        #[allow(clippy::declare_interior_mutable_const, reason = "to fill an array")]
        const NOTHING: Request = Request {
            process: ZERO,
            namespace: ZERO,
            wish: ZERO,
            done: ZERO,
            failure: ZERO,
            beat: ZERO,
            slower_than: AtomicU64::new(0),
            file: ZERO,
            reserved: ZERO,
        };
        Self { bell: ZERO, version: ZERO, magic: AtomicU64::new(0), requests: [NOTHING; REQUESTS] }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

const _: () = assert!(size_of::<Control>() <= CONTROL_BYTES);
