//! Restartable sequences: how a lock is released without an atomic read-modify-write.
//!
//! Origin: `rseq(2)` (Desnoyers, Turner, Hunter; Linux 4.18) with `membarrier(2)`'s `PRIVATE_EXPEDITED_RSEQ`
//! (5.10): what a thread begins between two labels is either committed by its last store or started again, if
//! the thread is preempted or signalled, or a barrier asks for it. glibc registers each thread since 2.35;
//! this module only uses that area.
//!
//! # The step
//!
//! ```text
//! start:   rseq_cs == &descriptor ──► armed
//!          rseq_cs = &descriptor
//! armed:   AREA == 0, or *guard & MASK != 0 ──► out
//! commit:  *word = 0
//! out:
//! abort:   as if the guard had held a bit
//! ```
//!
//! An aborted step fails, and the caller continues with a compare-exchange, so that a debugger that steps
//! through it makes progress.
//!
//! A step leaves itself armed, for the next time: the kernel disarms it when the thread is preempted, moved
//! or signalled elsewhere, or by a barrier. The check whether it still is belongs to the step, so an
//! interruption after it restarts the step. A store to arm and one to disarm would be 4 ns of a pair of 11:
//! the read-modify-write of the next acquire waits until they have left the CPU. So the descriptor must stay
//! mapped (S4).
//!
//! `guard` is another word than `word`: a load of what a read-modify-write has just written waits for that
//! store to leave the CPU, 5 ns of a pair's 14 (measured on a Xeon of 2.1 GHz); a load of the word next to it
//! does not.
//!
//! # The steps of a reader
//!
//! [`claim`] finds a free slot of this CPU's line and writes the lock's address there, [`give_back`] frees
//! it; both read the lock's bias first, and the slot's store is the commit. See `slots`.
//!
//! # When it is used
//!
//! [`start`] decides it once. They are not used if `SPINPARK_RSEQ=0`, if this code may be unloaded (S4), if
//! glibc has no registered area (before 2.35, `valgrind`, `GLIBC_TUNABLES=glibc.pthread.rseq=0`, a sandbox),
//! or if the kernel has no such barrier. Then, and on other processors than x86-64, a release is a
//! compare-exchange and the asymmetric barrier does nothing. A release tests this by one load and a
//! predictable branch.
//!
//! - **S1** While `AREA` is not 0, the barrier is registered. So a thread that sees 0 *after* it has written
//!   its flag needs no fence: a thread that reads `AREA` later, and finds it set, reads the flag as well.
//! - **S2** glibc ends the process if it cannot register a new thread, so every thread of a process with
//!   `AREA` set is registered. (A child of `vfork` is not, and may not use locks.)
//! - **S3** A sandbox may forbid the barrier later. If it announces itself ([`sandbox`](crate::sandbox)),
//!   `AREA` is cleared before. Otherwise the first fence that fails clears it for good. It, and every fence
//!   for a while, waits longer than any step that had begun takes: a thread that is preempted in it starts
//!   again, and one that is not needs nanoseconds, or as long as interrupts and a hypervisor keep its CPU.
//!   That this is less than `GRACE_NS` is an assumption: a hypervisor breaks it that stops one of several
//!   CPUs for longer, between a step's check and its store a few instructions later, at the very first
//!   barrier that a sandbox forbids. No other call that every sandbox allows restarts other threads' steps,
//!   so there is no certain way.
//! - **S4** `AREA` is set only if this code stays mapped until the process ends
//!   ([`permanent`](crate::permanent)): the kernel reads the descriptor of a step long after it, even in a
//!   new thread that got a dead one's area, and ends a process whose pointer is wild.

mod step;

use core::sync::atomic::{fence, AtomicU32, AtomicU64, AtomicUsize};
use core::sync::atomic::{Ordering::Relaxed, Ordering::Release, Ordering::SeqCst};

use spinpark_platform::{AsymmetricBarrier, Clock, NS_PER_MS};

use crate::barriers;
use crate::clock::now;
use crate::layout::{LinuxWith, Rooms};
use crate::single::is_single_threaded;
use crate::symbol::{lookup, Scope};
use crate::syscall::call6;

use step::clear_unless;
pub(crate) use step::{claim, give_back, this_cpu};

/// Where this thread's area is, from the thread pointer; 0: not in use.
static AREA: AtomicUsize = AtomicUsize::new(0);

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`.
const BARRIER: usize = 1 << 7;
/// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ`.
const REGISTER: usize = 1 << 8;

const NOT_REGISTERED: isize = -(libc::EPERM as isize);

/// The time until no step can be under way, once the barrier was found to be forbidden.
const GRACE_NS: u64 = 100 * NS_PER_MS;
const MOST_NAPS: u32 = 100;
/// The end of that time, on the monotonic clock; 0: it has not begun. Set before `AREA` is cleared.
static GRACE_END: AtomicU64 = AtomicU64::new(0);

fn membarrier(command: usize) -> isize {
    // SAFETY: orders memory; takes no pointer.
    unsafe { call6(libc::SYS_membarrier, [command, 0, 0, 0, 0, 0]) }
}

fn register() -> bool {
    membarrier(REGISTER) == 0
}

/// Makes the barrier; whether it succeeded. It fails in a process that is not registered: on the kernels
/// known, a child inherits the registration.
fn barrier() -> bool {
    match membarrier(BARRIER) {
        0 => true,
        NOT_REGISTERED => register() && membarrier(BARRIER) == 0,
        _ => false,
    }
}

/// Decides whether this process uses restartable sequences. Once, from [`start`](crate::start); until then it
/// does not.
#[cold]
pub(crate) fn start(permanent: bool) {
    if crate::is_off(c"SPINPARK_RSEQ") {
        return;
    }
    if let Some(area) = find_area() {
        if register() && barrier() && (permanent || crate::permanent::is_certain()) {
            AREA.store(area, SeqCst); // S1
        }
    }
}

/// Where glibc has registered the area of each thread.
#[cfg(target_arch = "x86_64")]
fn find_area() -> Option<usize> {
    let find = |name| lookup(Scope::All, name);
    let size: *const u32 = find(c"__rseq_size").cast_const().cast();
    let offset: *const isize = find(c"__rseq_offset").cast_const().cast();
    // SAFETY: null, or glibc's `const unsigned int`.
    let size = unsafe { size.as_ref() }?;
    // SAFETY: null, or glibc's `const ptrdiff_t`.
    let offset = unsafe { offset.as_ref() }?;
    (*size != 0 && *offset != 0).then_some(*offset as usize)
}

#[cfg(not(target_arch = "x86_64"))]
fn find_area() -> Option<usize> {
    None
}

/// Where this thread's area is, from the thread pointer; 0: restartable sequences are not in use.
#[inline(always)]
pub(crate) fn area() -> usize {
    AREA.load(Relaxed)
}

#[cold]
#[inline(never)]
pub(crate) fn heavy_fence() {
    // Orders the caller's flag before the load; with S1 that is enough if restartable sequences were never in
    // use.
    fence(SeqCst);
    if AREA.load(SeqCst) != 0 {
        barriers::count();
        if is_single_threaded() || barrier() {
            return;
        }
        retire();
    }
    let end = GRACE_END.load(SeqCst);
    // A signal handler may shorten it; the bound is for a clock that was stopped.
    for _ in 0..MOST_NAPS {
        let left = end.saturating_sub(now(Clock::Monotonic));
        if left == 0 {
            break;
        }
        crate::sleep_for(left);
    }
}

/// S3: no step begins from here on, and fences wait until those under way have ended.
fn retire() {
    GRACE_END.fetch_max(now(Clock::Monotonic).saturating_add(GRACE_NS), SeqCst);
    AREA.store(0, SeqCst);
}

/// Restartable sequences are not used from here on: releases are compare-exchanges. Best called while the
/// barrier is still allowed.
#[cold]
#[inline(never)]
pub fn stop() {
    if AREA.load(SeqCst) != 0 {
        retire();
        if is_single_threaded() || barrier() {
            GRACE_END.store(0, SeqCst); // those steps have ended
        }
    }
}

#[inline(always)]
pub(crate) fn release_unless<const MASK: u32>(
    guard: &AtomicU32,
    word: &AtomicU32,
    likely: impl FnOnce() -> u32,
) -> bool {
    let area = area();
    if area == 0 {
        return word.compare_exchange(likely(), 0, Release, Relaxed).is_ok();
    }
    clear_unless::<MASK>(area, guard, word)
}

impl<R: Rooms> AsymmetricBarrier for LinuxWith<R> {
    #[inline(always)]
    fn release_unless<const MASK: u32>(
        guard: &AtomicU32,
        word: &AtomicU32,
        likely: impl FnOnce() -> u32,
    ) -> bool {
        release_unless::<MASK>(guard, word, likely)
    }

    fn heavy_fence() {
        heavy_fence();
    }
}
