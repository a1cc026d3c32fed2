//! The stacks of loom's threads, kept from one execution to the next.
//!
//! Loom gives each thread of each execution a new stack: three system calls and two or three page faults,
//! millions of times. That is a third of a model's time. Two models that run at once also wait for each other
//! there: the kernel changes the mappings of a process under one lock, and interrupts the other CPUs when
//! memory is unmapped. With stacks that are kept, all models take 336 s instead of 1,310 s (two CPUs,
//! 2026-11-26).
//!
//! `generator`, which makes the stacks, calls libc's `mmap`, `mprotect` and `munmap`. The functions of these
//! names in this file take their place in every program that this crate is linked into. They hand out stacks
//! from an arena, whose guard pages stay as they are; every other call is passed on to the kernel. `malloc`,
//! the stacks of glibc's threads and std (which calls `mmap64`) do not come here.

use std::cell::Cell;
use std::ffi::{c_int, c_long, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What `generator` asks for: its default of 0x1000 words, rounded down to 7 pages, one page more, and the
/// guard page.
const SIZE: usize = 9 * 4096;
/// How it asks.
const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
/// The arena's stacks. Models have up to six threads, and libtest runs one model a CPU; what goes beyond is
/// mapped as before.
const STACKS: usize = 1024;

static ARENA: Mutex<Arena> = Mutex::new(Arena { start: 0, carved: 0, free: Vec::new() });

thread_local! {
    /// The stack that this thread has just been given with its guard page in place: `generator` protects it
    /// next.
    static GUARDED: Cell<usize> = const { Cell::new(0) };
}

/// The stacks `start..start + carved * SIZE`, each in use or in `free`.
struct Arena {
    start: usize,
    carved: usize,
    free: Vec<usize>,
}

impl Arena {
    fn get() -> MutexGuard<'static, Self> {
        ARENA.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stack, and whether its guard page is in place.
    fn take(&mut self) -> Option<(usize, bool)> {
        if let Some(stack) = self.free.pop() {
            return Some((stack, true));
        }
        if self.start == 0 {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: the kernel chooses the address.
            self.start = unsafe { pass_on(null_mut(), STACKS * SIZE, protection, FLAGS, -1, 0) } as usize;
        }
        if self.start == libc::MAP_FAILED as usize || self.carved == STACKS {
            return None;
        }
        self.carved += 1;
        Some((self.start + (self.carved - 1) * SIZE, false))
    }

    fn has(&self, address: usize) -> bool {
        (self.start..self.start + self.carved * SIZE).contains(&address)
    }
}

/// The system call `mmap`.
///
/// # Safety
///
/// That of `mmap(2)`.
unsafe fn pass_on(
    at: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: c_long,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_mmap, at, length, protection, flags, file, offset) as *mut c_void }
}

/// `mmap(2)`, which gives `generator` a stack of the arena.
///
/// # Safety
///
/// That of `mmap(2)`.
// SAFETY: it does what libc's function of this name does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: c_long,
) -> *mut c_void {
    if length == SIZE
        && flags == FLAGS
        && at.is_null()
        && let Some((stack, is_guarded)) = Arena::get().take()
    {
        GUARDED.set(if is_guarded { stack } else { 0 });
        return stack as *mut c_void;
    }
    // SAFETY: the caller's.
    unsafe { pass_on(at, length, protection, flags, file, offset) }
}

/// `mprotect(2)`, but for a guard page that is in place.
///
/// # Safety
///
/// That of `mprotect(2)`.
// SAFETY: it does what libc's function of this name does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(at: *mut c_void, length: usize, protection: c_int) -> c_int {
    if protection == libc::PROT_NONE && !at.is_null() && GUARDED.replace(0) == at as usize {
        return 0;
    }
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_mprotect, at, length, protection) as c_int }
}

/// `munmap(2)`, which keeps a stack of the arena.
///
/// # Safety
///
/// That of `munmap(2)`.
// SAFETY: it does what libc's function of this name does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: *mut c_void, length: usize) -> c_int {
    if length == SIZE {
        let mut arena = Arena::get();
        if arena.has(at as usize) {
            arena.free.push(at as usize);
            return 0;
        }
    }
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_munmap, at, length) as c_int }
}

/// How many stacks the models of this process have had at once. Zero after a model means that `generator`
/// asks for its stacks in another way than this module knows, and that models are slow again.
pub fn most_at_once() -> usize {
    Arena::get().carved
}
