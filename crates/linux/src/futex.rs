//! Sleeping on a word. Private futexes: what other processes share is not ours.
//!
//! Only two operations, both as old as any kernel that glibc still supports: `FUTEX_WAIT_BITSET` (its deadline is
//! absolute, on either clock) and `FUTEX_WAKE`.

use core::ptr;
use core::sync::atomic::AtomicU32;

use spinpark_platform::{Clock, Deadline, Wait};

use crate::syscall::call6;

const WAIT: i32 = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
const WAKE: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
const ANY_BIT: usize = u32::MAX as usize;

const AGAIN: isize = -(libc::EAGAIN as isize);
const TIMED_OUT: isize = -(libc::ETIMEDOUT as isize);

#[inline(never)]
pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
    let (seconds, nanoseconds) = deadline.map_or((0, 0), Deadline::as_timespec);
    let timeout = libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let (clock, timeout) = match deadline {
        None => (0, ptr::null()),
        Some(Deadline { clock: Clock::Monotonic, .. }) => (0, ptr::addr_of!(timeout)),
        Some(Deadline { clock: Clock::Realtime, .. }) => (libc::FUTEX_CLOCK_REALTIME, ptr::addr_of!(timeout)),
    };
    let word: *const AtomicU32 = word;
    let arguments = [word as usize, (WAIT | clock) as usize, expected as usize, timeout as usize, 0, ANY_BIT];
    // SAFETY: `word` is a live, aligned 32-bit word; `timeout` is null or a live timespec; the kernel writes neither.
    match unsafe { call6(libc::SYS_futex, arguments) } {
        TIMED_OUT => Wait::TimedOut,
        AGAIN => Wait::ValueChanged,
        _ => Wait::Woken, // woken, or EINTR: a handler ran, and the caller checks its word
    }
}

#[cold]
#[inline(never)]
pub(crate) fn wake(key: *const AtomicU32, count: u32) -> u32 {
    let count = count.min(i32::MAX as u32) as usize;
    // SAFETY: the kernel hashes the address of a private futex and does not access it.
    let woken = unsafe { call6(libc::SYS_futex, [key as usize, WAKE as usize, count, 0, 0, 0]) };
    u32::try_from(woken).unwrap_or(0)
}
