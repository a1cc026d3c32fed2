//! Restartable sequences: how a lock is released without an atomic read-modify-write.
//!
//! Origin: `rseq(2)` (Desnoyers, Turner, Hunter; Linux 4.18) with `membarrier(2)`'s `PRIVATE_EXPEDITED_RSEQ`
//! (5.10): what a thread begins between two labels is either committed by its last store or aborted, if the
//! thread is preempted or signalled, or a barrier asks for it. glibc registers each thread since 2.35; this
//! module only uses that area. (They are called restartable because an abort handler usually begins again;
//! here it reports failure.)
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
//! interruption after it aborts the step. A store to arm and one to disarm would be 4 ns of a pair of 11:
//! the read-modify-write of the next acquire waits until they have left the CPU. So the descriptor must stay
//! mapped (S4).
//!
//! `guard` is another word than `word`: a load of what a read-modify-write has just written waits for that
//! store to leave the CPU, 5 ns of a pair's 14 (measured on a Xeon of 2.1 GHz); a load of the word next to it
//! does not.
//!
//! # The steps of a reader
//!
//! [`claim`] finds a free slot of this CPU's line and writes the lock's name there, [`give_back`] frees it;
//! both read the lock's bias first, and the slot's store is the commit. See `slots`.
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
//!   for a while, waits longer than any step that had begun takes: a step of a thread that is preempted is
//!   aborted, and one that is not needs nanoseconds, or as long as interrupts and a hypervisor keep its CPU.
//!   That this is less than `GRACE_NS` is an assumption: a hypervisor breaks it that stops one of several
//!   CPUs for longer, between a step's check and its store a few instructions later, at the very first
//!   barrier that a sandbox forbids. No other call that every sandbox allows aborts other threads' steps,
//!   so there is no certain way.
//! - **S4** `AREA` is set only if this code stays mapped until the process ends
//!   ([`permanent`](crate::permanent)): the kernel reads the descriptor of a step long after it, even in a
//!   new thread that got a dead one's area, and ends a process whose pointer is wild.

use core::sync::atomic::{fence, AtomicU32, AtomicU64, AtomicU8, AtomicUsize};
use core::sync::atomic::{Ordering::Relaxed, Ordering::Release, Ordering::SeqCst};

use spinpark_platform::{AsymmetricBarrier, Clock, NS_PER_MS};

use crate::clock::now;
use crate::memory::{LinuxWith, LockPadding};
use crate::raw::call6;
use crate::single::is_single_threaded;
#[cfg(not(target_arch = "x86_64"))]
use crate::slot::Name;
#[cfg(target_arch = "x86_64")]
use crate::slot::{Mark, Name, FREE, LINE, TO_OWNER};
#[cfg(target_arch = "x86_64")]
use crate::symbol::{lookup, Scope};

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
pub(crate) fn asymmetric_barrier() {
    // Orders the caller's flag before the load; with S1 that is enough if restartable sequences were never in
    // use.
    fence(SeqCst);
    if AREA.load(SeqCst) != 0 {
        count_barrier();
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

impl<R: LockPadding> AsymmetricBarrier for LinuxWith<R> {
    #[inline(always)]
    fn release_unless<const MASK: u32>(
        guard: &AtomicU32,
        word: &AtomicU32,
        likely: impl FnOnce() -> u32,
    ) -> bool {
        let area = area();
        if area == 0 {
            // The compare-exchange alone would be safe. A set bit also asks for a release that is timed or
            // seen.
            return guard.load(Relaxed) & MASK == 0
                && word.compare_exchange(likely(), 0, Release, Relaxed).is_ok();
        }
        clear_unless::<MASK>(area, guard, word)
    }

    fn asymmetric_barrier() {
        asymmetric_barrier();
    }
}

// ---- few barriers per wait
//
// A lock's contended bit that ends comes back by a process-wide barrier, so it ends only if a hundred waits
// have passed since the last barrier. Until then it stays, and the releases of that lock are
// compare-exchanges. A bit that stays counts as a wait, once in `Tuning::quiet_releases`: a lock that has no
// waiters any more is not marked for ever.

const WAITS_PER_BARRIER: u8 = 100;

/// How many waits must come before a contended bit may be cleared. Threads race for it: it need not be exact.
static WAITS_MISSING: AtomicU8 = AtomicU8::new(0);

/// Counts a barrier.
fn count_barrier() {
    WAITS_MISSING.store(WAITS_PER_BARRIER, Relaxed);
}

/// Counts a wait. Whether the contended bit may be cleared: enough waits have passed since the last barrier.
#[cold]
#[inline(never)] // for the drop-in's size
pub(crate) fn count_wait() -> bool {
    let missing = WAITS_MISSING.load(Relaxed);
    if missing > 0 {
        WAITS_MISSING.store(missing - 1, Relaxed);
    }
    missing == 0
}

// ---- the steps themselves, in assembly

/// A step: arms it, if it is not, and runs the instructions up to its end. An abort continues at `9:`,
/// outside of the step, which sets the result to 0; the instructions may do so, too.
#[cfg(target_arch = "x86_64")]
macro_rules! step {
    ([$($line:literal),+], $($operands:tt)+) => {
        // The descriptor has the layout of `struct rseq_cs`: version, flags, start, length, abort; the
        // signature of glibc's registration is before the abort label.
        core::arch::asm!(
            "lea {result}, [rip + 3f]",
            "2:",
            "cmp qword ptr fs:[{area} + 8], {result}",
            "je 5f",
            "mov qword ptr fs:[{area} + 8], {result}",
            "5:",
            "cmp qword ptr [rip + {state}], 0", // S3: still in use, also if the thread was stopped before the step
            "je 9f",
            $($line,)+
            "4:",
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "3:",
            ".long 0, 0",
            ".quad 2b, 4b - 2b, 9f",
            ".popsection",
            ".pushsection .text.unlikely.spinpark_rseq, \"ax\", @progbits",
            ".byte 0x0f, 0xb9, 0x3d", // ud1: what follows is no instruction
            ".long 0x53053053",
            "9:",
            "xor {result:e}, {result:e}",
            "jmp 4b",
            ".popsection",
            $($operands)+,
            state = sym AREA,
            options(nostack),
        )
    };
}

/// Stores 0 to `word` unless `guard` holds a bit of `MASK`; whether it did. `area` is that of [`area`], not
/// 0.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn clear_unless<const MASK: u32>(area: usize, guard: &AtomicU32, word: &AtomicU32) -> bool {
    let done: usize;
    // SAFETY: the only memory written is `word`, an atomic, by one aligned store (Release, as all stores on
    // x86), and this thread's registered area, whose second word (at 8) is ours to write.
    unsafe {
        step!(
            ["test dword ptr [{guard}], {mask}", "jnz 9f", "mov dword ptr [{word}], 0"],
            result = out(reg) done,
            area = in(reg) area,
            guard = in(reg) guard.as_ptr(),
            word = in(reg) word.as_ptr(),
            mask = const MASK
        );
    }
    done != 0
}

/// Claims a free slot of this CPU's line, among `lines`, for `lock`, if `bias` holds `open`; null if not.
///
/// # Safety
///
/// `area` is that of [`area`], not 0; `lines` is the address of [`CPUS_COUNTED`](crate::slots::CPUS_COUNTED)
/// lines of a table of `slots`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn claim(
    area: usize,
    bias: &AtomicU32,
    open: u32,
    lines: usize,
    lock: Name,
    thread: u32,
) -> *const AtomicUsize {
    let slot: usize;
    // SAFETY: as in `clear_unless`; the slot is in the line of a CPU below `CPUS_COUNTED`, whose number the
    // area has at 4, and its owner's number at `TO_OWNER` behind it: that of a free slot is not read. Loads
    // are Acquire, stores Release, as all are on x86.
    unsafe {
        step!(
            [
                "cmp dword ptr [{bias}], {open:e}",
                "jne 9f",
                "mov {result:e}, dword ptr fs:[{area} + 4]",
                "cmp {result:e}, dword ptr [rip + {cpus}]",
                "jae 9f",
                "shl {result}, {line_shift}",
                "add {result}, {lines}",
                "cmp qword ptr [{result}], {free}",
                "je 6f",
                "7:",
                "add {result}, 8",
                "test {result:l}, {line_mask}",
                "jz 9f",
                "cmp qword ptr [{result}], {free}",
                "jne 7b",
                "6:",
                "mov dword ptr [{result} + {to_owner}], {thread:e}",
                "mov qword ptr [{result}], {lock}"
            ],
            result = out(reg) slot,
            area = in(reg) area,
            bias = in(reg) bias.as_ptr(),
            open = in(reg) open,
            lines = in(reg) lines,
            lock = in(reg) lock.with(Mark::None),
            thread = in(reg) thread,
            cpus = sym crate::slots::CPUS_COUNTED,
            line_shift = const LINE.trailing_zeros(),
            line_mask = const LINE - 1,
            to_owner = const TO_OWNER,
            free = const FREE
        );
    }
    slot as *const AtomicUsize
}

/// Frees `slot` if it still names `lock`, without a mark, and `bias` holds `open`; whether it did.
///
/// # Safety
///
/// `area` is that of [`area`], not 0; `slot` is one that this thread has claimed.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn give_back(
    area: usize,
    bias: &AtomicU32,
    open: u32,
    slot: *const AtomicUsize,
    lock: Name,
) -> bool {
    let done: usize;
    // SAFETY: as in `clear_unless`; the caller promises that the slot is its own.
    unsafe {
        step!(
            [
                "cmp dword ptr [{bias}], {open:e}",
                "jne 9f",
                "cmp qword ptr [{slot}], {lock}",
                "jne 9f",
                "mov qword ptr [{slot}], {free}"
            ],
            result = out(reg) done,
            area = in(reg) area,
            bias = in(reg) bias.as_ptr(),
            open = in(reg) open,
            slot = in(reg) slot,
            lock = in(reg) lock.with(Mark::None),
            free = const FREE
        );
    }
    done != 0
}

/// The CPU that this thread was on when it checked.
#[cfg(target_arch = "x86_64")]
pub(crate) fn this_cpu() -> u32 {
    let cpu: u32;
    // SAFETY: reads this thread's registered area.
    unsafe {
        core::arch::asm!("mov {cpu:e}, dword ptr fs:[{area} + 4]", cpu = out(reg) cpu, area = in(reg) area(),
                         options(readonly, nostack, preserves_flags));
    }
    cpu
}

/// Never called, because there is no area.
#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    use super::{AtomicU32, AtomicUsize, Name};

    pub(crate) fn clear_unless<const MASK: u32>(_: usize, _: &AtomicU32, _: &AtomicU32) -> bool {
        false
    }

    pub(crate) unsafe fn claim(
        _: usize,
        _: &AtomicU32,
        _: u32,
        _: usize,
        _: Name,
        _: u32,
    ) -> *const AtomicUsize {
        core::ptr::null()
    }

    pub(crate) unsafe fn give_back(_: usize, _: &AtomicU32, _: u32, _: *const AtomicUsize, _: Name) -> bool {
        false
    }

    pub(crate) fn this_cpu() -> u32 {
        u32::MAX
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use elsewhere::{claim, clear_unless, give_back, this_cpu};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_is_followed_by_a_hundred_waits() {
        count_barrier();
        assert_eq!((0..1_000).take_while(|_| !count_wait()).count(), usize::from(WAITS_PER_BARRIER));
        assert!(count_wait());
    }
}
