//! Address spaces: the end of the heap moved, pages touched, memory shared.

use std::ptr::{self, NonNull};

use rustix::event::EventfdFlags;
use rustix::fd::OwnedFd;
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};

use super::Context;
use crate::workloads::job::{JobError, expect};

const KB: isize = 1024;

/// Moves the end of the heap, and returns where it was.
///
/// # Safety
///
/// No other thread moves it meanwhile, and what is cut off is not used.
unsafe fn sbrk(bytes: isize) -> Result<*mut u8, JobError> {
    // SAFETY: as the caller promises.
    let old = unsafe { libc::sbrk(bytes) };
    match old.addr() {
        usize::MAX => {
            Err(JobError::failed("cannot move the end of the heap")(std::io::Error::last_os_error()))
        }
        _ => Ok(old.cast()),
    }
}

/// The heap grows by `extra`; `rounds` times it shrinks by 64 KB and grows by 16 pages of 4 KB, which are
/// told to `fresh`; in the end it is as it was. Nothing is allocated in between: allocators use the same end.
fn grow_and_shrink(extra: isize, rounds: usize, fresh: impl Fn(*mut u8)) -> Result<(), JobError> {
    // SAFETY: one thread, and nothing moves.
    let before = unsafe { sbrk(0) }?;
    // SAFETY: one thread; it grows.
    unsafe { sbrk(extra) }?;
    for _ in 0..rounds {
        // SAFETY: cuts off what was added here, and is not used.
        unsafe { sbrk(-64 * KB) }?;
        for _ in 0..16 {
            // SAFETY: one thread; it grows.
            fresh(unsafe { sbrk(4 * KB) }?);
        }
    }
    // SAFETY: cuts off what was added here.
    unsafe { sbrk(-extra) }?;
    // SAFETY: nothing moves.
    let after = unsafe { sbrk(0) }?;
    expect(before == after, || format!("the heap ends at {after:?}, not {before:?}"))
}

/// The end of the heap moved 17,000 times, without touching a page.
pub(super) fn breaks(_: &mut Context) -> Result<(), JobError> {
    grow_and_shrink(64 * KB, 1000, |_| ())
}

/// A megabyte more, of which 64 KB are given back and touched again 100 times: every 128 bytes of fresh
/// pages.
pub(super) fn pages(_: &mut Context) -> Result<(), JobError> {
    grow_and_shrink(1024 * KB, 100, |page| {
        for offset in (0..4096).step_by(128) {
            // SAFETY: inside of the page that was just added.
            let byte = unsafe { page.add(offset) };
            // SAFETY: as before, and of this thread alone.
            unsafe { byte.write_volatile(1) };
        }
    })
}

/// Memory that is mapped twice, written through one mapping and read through the other, 100 times, with four
/// semaphore calls each.
///
/// The published one has System V semaphores. They outlive a user that is killed, so these are eventfd(2)
/// semaphores.
pub(super) fn shared(_: &mut Context) -> Result<(), JobError> {
    const SIZE: usize = 4096;
    let memory = rustix::fs::memfd_create(c"spinpark-jobs", MemfdFlags::CLOEXEC);
    let memory = memory.map_err(JobError::failed("cannot make shared memory"))?;
    rustix::fs::ftruncate(&memory, SIZE as u64).map_err(JobError::failed("cannot size shared memory"))?;
    let (one, other) = (Mapping::new(&memory, SIZE)?, Mapping::new(&memory, SIZE)?);
    let flags = EventfdFlags::SEMAPHORE | EventfdFlags::CLOEXEC;
    let semaphore = || rustix::event::eventfd(0, flags).map_err(JobError::failed("cannot make a semaphore"));
    let (written, read) = (semaphore()?, semaphore()?);
    let mut block = [0_u8; SIZE];
    for round in 0..100_u8 {
        block.fill(round);
        one.write(&block);
        up(&written)?;
        down(&written)?;
        other.read(&mut block);
        up(&read)?;
        down(&read)?;
        expect(block.iter().all(|&byte| byte == round), || format!("round {round}: {} was read", block[0]))?;
    }
    Ok(())
}

fn up(semaphore: &OwnedFd) -> Result<(), JobError> {
    rustix::io::write(semaphore, &1_u64.to_ne_bytes()).map(|_| ()).map_err(JobError::failed("semaphore, up"))
}

fn down(semaphore: &OwnedFd) -> Result<(), JobError> {
    let mut count = [0; 8];
    rustix::io::read(semaphore, &mut count).map(|_| ()).map_err(JobError::failed("semaphore, down"))
}

/// A shared mapping, unmapped when it is dropped.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn new(memory: &OwnedFd, length: usize) -> Result<Self, JobError> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), length, protection, flags, memory, 0) };
        let start = start.map_err(JobError::failed("cannot map shared memory"))?;
        let start =
            NonNull::new(start.cast()).ok_or_else(|| JobError::Mismatch(String::from("memory at 0")))?;
        Ok(Self { start, length })
    }

    /// `block` is as long as the mapping.
    fn write(&self, block: &[u8]) {
        assert_eq!(block.len(), self.length);
        // SAFETY: the mapping is that long, and the block is somewhere else.
        unsafe { self.start.copy_from_nonoverlapping(NonNull::from(block).cast(), self.length) };
    }

    /// `block` is as long as the mapping.
    fn read(&self, block: &mut [u8]) {
        assert_eq!(block.len(), self.length);
        // SAFETY: as in `write`.
        unsafe { self.start.copy_to_nonoverlapping(NonNull::from(block).cast(), self.length) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our mapping; there is no reference into it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
