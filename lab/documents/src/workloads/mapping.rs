//! A mapping of memory or of a file, unmapped when it is dropped.

use std::io;
use std::ptr::{self, NonNull};

use rustix::fd::AsFd;
use rustix::mm::{MapFlags, ProtFlags};

#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) start: NonNull<u8>,
    pub(crate) length: usize,
}

impl Mapping {
    /// Memory to read and write, filled with zero.
    pub(crate) fn anonymous(length: usize, flags: MapFlags) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), length, protection, flags) };
        Self::at(start?, length)
    }

    /// The first `length` bytes of a file. Should it shrink, the kernel ends a process that touches them.
    pub(crate) fn of(
        file: impl AsFd,
        length: usize,
        protection: ProtFlags,
        flags: MapFlags,
    ) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), length, protection, flags, file, 0) };
        Self::at(start?, length)
    }

    fn at(start: *mut std::ffi::c_void, length: usize) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("it is at address 0"))?;
        Ok(Self { start, length })
    }

    /// Unmaps it, and says whether that worked.
    pub(crate) fn unmap(self) -> io::Result<()> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: our mapping, and it is not used any more: it was moved here.
        Ok(unsafe { rustix::mm::munmap(this.start.as_ptr().cast(), this.length) }?)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our mapping, and it is not used any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
