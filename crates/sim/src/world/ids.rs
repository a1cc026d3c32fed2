//! Numbers of threads, CPUs, cores, caches and cache lines.

/// The number of a thread, in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub(crate) u32);

impl ThreadId {
    /// The number: 0 for the first thread.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A hardware thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CpuId(pub(crate) u32);

/// A core: its hardware threads share their cache.
pub(crate) type Core = u32;

/// A last-level cache.
pub(crate) type Cache = u32;

/// The number of a line, in order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LineId(pub(crate) u32);
