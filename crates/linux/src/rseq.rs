//! Restartable sequences: how a lock is released without an atomic read-modify-write.
//!
//! Origin: `rseq(2)` (Desnoyers, Turner, Hunter; Linux 4.18) with `membarrier(2)`'s `PRIVATE_EXPEDITED_RSEQ` (5.10): what
//! a thread begins between two labels is either committed by its last store or started again, if the thread is preempted
//! or signalled, or a barrier asks for it. glibc registers each thread since 2.35; this module only uses that area.
//!
//! # The step
//!
//! ```text
//! arm:     rseq_cs = &descriptor        (the kernel forgets it at the next interruption outside of the step)
//! start:   seen = *guard
//!          seen & MASK != 0 ──► out
//! commit:  *word = 0
//! out:     rseq_cs = 0                  (or a library that is unloaded would leave a wild pointer to the kernel)
//! abort:   seen = all ones, ──► out
//! ```
//!
//! Aborted, it fails, and the caller goes on with a compare-exchange: a debugger that steps through it makes progress.
//!
//! `guard` is another word than `word`: a load of what a read-modify-write has just written waits for that store to
//! leave the CPU, 5 ns of a pair's 14 (measured on a Xeon of 2.1 GHz); a load beside it does not.
//!
//! # When it is used
//!
//! Decided once ([`start`]): not if `SPINPARK_RSEQ=0`, if glibc has no registered area (before 2.35, `valgrind`,
//! `GLIBC_TUNABLES=glibc.pthread.rseq=0`, a sandbox), or if the kernel has no such barrier. Then, and on other
//! processors than x86-64, a release is a compare-exchange and a heavy fence is nothing. One load and a predictable
//! branch tell.
//!
//! - **S1** While `AREA` is not 0, the barrier is registered. So who sees 0 *after* it has written its mark needs no
//!   fence: whoever reads `AREA` later, and finds it set, reads the mark as well.
//! - **S2** glibc ends the process if it cannot register a new thread, so every thread of a process with `AREA` set is
//!   registered. (A child of `vfork` is not, and may not use locks.)
//! - **S3** A sandbox may forbid the barrier later. The first fence that fails clears `AREA` for good, and waits longer
//!   than any step that had begun takes: a thread that is preempted in it starts again, one that is not needs
//!   nanoseconds.

use core::ffi::CStr;
use core::sync::atomic::{fence, AtomicBool, AtomicU32, AtomicUsize};
use core::sync::atomic::{Ordering::Relaxed, Ordering::Release, Ordering::SeqCst};

use spinpark_platform::NS_PER_MS;

use crate::syscall::call6;

/// Where this thread's area is, from the thread pointer; 0: not in use.
static AREA: AtomicUsize = AtomicUsize::new(0);
static STARTED: AtomicBool = AtomicBool::new(false);

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`.
const BARRIER: usize = 1 << 7;
/// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ`.
const REGISTER: usize = 1 << 8;

/// How long the fence that finds its barrier forbidden waits.
const GRACE_NS: u64 = 10 * NS_PER_MS;

fn name(bytes: &'static [u8]) -> &'static CStr {
    CStr::from_bytes_with_nul(bytes).unwrap_or_default()
}

fn membarrier(command: usize) -> bool {
    // SAFETY: orders memory; takes no pointer.
    unsafe { call6(libc::SYS_membarrier, [command, 0, 0, 0, 0, 0]) == 0 }
}

/// Decides whether this process uses restartable sequences. Once; until then it does not.
#[cold]
pub fn start() {
    if STARTED.swap(true, Relaxed) || crate::is_off(name(b"SPINPARK_RSEQ\0")) {
        return;
    }
    if let Some(area) = find_area() {
        if membarrier(REGISTER) && membarrier(BARRIER) {
            AREA.store(area, SeqCst); // S1
        }
    }
}

/// Where glibc has registered the area of each thread.
#[cfg(target_arch = "x86_64")]
fn find_area() -> Option<usize> {
    let find = |bytes| crate::lookup(libc::RTLD_DEFAULT, name(bytes));
    let size: *const u32 = find(b"__rseq_size\0").cast_const().cast();
    let offset: *const isize = find(b"__rseq_offset\0").cast_const().cast();
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

/// The child has its own registration to make; on the kernels known it inherits the parent's.
pub(crate) fn in_forked_child() {
    if AREA.load(Relaxed) != 0 && !membarrier(REGISTER) {
        AREA.store(0, Relaxed);
    }
}

#[cold]
#[inline(never)]
pub(crate) fn heavy_fence() {
    // Orders the caller's mark before the load; together with S1 that is enough if there is nothing to end.
    fence(SeqCst);
    if AREA.load(SeqCst) != 0 && !membarrier(BARRIER) {
        AREA.store(0, SeqCst); // S3
        crate::nap(GRACE_NS);
    }
}

#[inline(always)]
pub(crate) fn release_unless<const MASK: u32>(
    guard: &AtomicU32,
    word: &AtomicU32,
    likely: impl FnOnce() -> u32,
) -> bool {
    let area = AREA.load(Relaxed);
    if area == 0 {
        return word.compare_exchange(likely(), 0, Release, Relaxed).is_ok();
    }
    clear_unless::<MASK>(area, guard, word) & MASK == 0
}

/// The step: returns what it saw of `guard`, or all ones if it was aborted. `area` is that of [`AREA`], not 0.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn clear_unless<const MASK: u32>(area: usize, guard: &AtomicU32, word: &AtomicU32) -> u32 {
    let seen: u32;
    // SAFETY: the only memory written is `word`, an atomic, by one aligned store (Release, as all stores on x86), and this
    // thread's registered area, whose second word (at 8) is ours to write. The descriptor has the layout of
    // `struct rseq_cs`: version, flags, start, length, abort; before the abort label stands the signature that glibc
    // registered with.
    unsafe {
        core::arch::asm!(
            "lea {seen:r}, [rip + 3f]",
            "mov qword ptr fs:[{area} + 8], {seen:r}",
            "2:",
            "mov {seen:e}, dword ptr [{guard}]",
            "test {seen:e}, {mask}",
            "jnz 4f",
            "mov dword ptr [{word}], 0",
            "4:",
            "mov qword ptr fs:[{area} + 8], 0",
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "3:",
            ".long 0, 0",
            ".quad 2b, 4b - 2b, 5f",
            ".popsection",
            ".pushsection .text.unlikely.spinpark_rseq, \"ax\", @progbits",
            ".byte 0x0f, 0xb9, 0x3d", // ud1: what follows is no instruction
            ".long 0x53053053",
            "5:",
            "mov {seen:e}, -1",
            "jmp 4b",
            ".popsection",
            seen = out(reg) seen,
            area = in(reg) area,
            guard = in(reg) guard.as_ptr(),
            word = in(reg) word.as_ptr(),
            mask = const MASK,
            options(nostack),
        );
    }
    seen
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn clear_unless<const MASK: u32>(_: usize, _: &AtomicU32, _: &AtomicU32) -> u32 {
    u32::MAX
}
