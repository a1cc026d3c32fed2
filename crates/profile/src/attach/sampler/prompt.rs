//! A thread that samples must have a CPU when a snapshot is due, not when the program leaves one free: then, it would
//! see too often what the program's threads do while CPUs are idle, such as waits for a holder that sleeps.
//!
//! Since Linux 6.12 a thread may ask for shorter slices of time than others have. It does not get more time, but gets
//! it sooner: when it wakes up, it takes the place of one whose slice is longer (EEVDF, `PREEMPT_SHORT`). That needs no
//! privileges. Older kernels take the call and do nothing; there, a thread that has slept for long is usually given a
//! CPU at once, too.

use std::mem::size_of;

/// The shortest slice that the kernel gives, ns.
const SLICE: u64 = 100_000;

/// Asks for short slices for the calling thread. What the kernel refuses is left as it is.
pub(super) fn ask() {
    let size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0);
    // SAFETY: all its fields are integers.
    let mut own: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is the calling thread; the kernel writes no more than `size` bytes, which `own` has.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut own, size, 0) };
    // Other policies have no slices, or want to run late.
    if result != 0 || own.sched_policy != libc::SCHED_OTHER.unsigned_abs() {
        return;
    }
    own.sched_runtime = SLICE;
    // SAFETY: as above; the kernel reads it. What it says of policy and nice value is what they are.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const own, 0) };
}
