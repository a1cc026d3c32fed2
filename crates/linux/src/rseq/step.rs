//! The steps themselves, in assembly: see [`rseq`](crate::rseq).

use core::sync::atomic::{AtomicU32, AtomicUsize};

#[cfg(target_arch = "x86_64")]
use super::{area, AREA};
#[cfg(target_arch = "x86_64")]
use crate::slot::{CPUS, FREE, LINE};

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
pub(super) fn clear_unless<const MASK: u32>(area: usize, guard: &AtomicU32, word: &AtomicU32) -> bool {
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
/// `area` is that of [`area`], not 0; `lines` is the address of [`CPUS`] lines, each as `slots` has them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn claim(
    area: usize,
    bias: &AtomicU32,
    open: u32,
    lines: usize,
    lock: usize,
) -> *const AtomicUsize {
    let slot: usize;
    // SAFETY: as in `clear_unless`; the slot is in the line of a CPU below `CPUS`, whose number the area has
    // at 4. Loads are Acquire, stores Release, as all are on x86.
    unsafe {
        step!(
            [
                "cmp dword ptr [{bias}], {open:e}",
                "jne 9f",
                "mov {result:e}, dword ptr fs:[{area} + 4]",
                "cmp {result:e}, {cpus}",
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
                "mov qword ptr [{result}], {lock}"
            ],
            result = out(reg) slot,
            area = in(reg) area,
            bias = in(reg) bias.as_ptr(),
            open = in(reg) open,
            lines = in(reg) lines,
            lock = in(reg) lock,
            cpus = const CPUS,
            line_shift = const LINE.trailing_zeros(),
            line_mask = const LINE - 1,
            free = const FREE
        );
    }
    slot as *const AtomicUsize
}

/// Frees `slot` if it still says `lock` and `bias` holds `open`; whether it did.
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
    lock: usize,
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
            lock = in(reg) lock,
            free = const FREE
        );
    }
    done != 0
}

/// The CPU that this thread was on when it looked.
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
    use super::{AtomicU32, AtomicUsize};

    pub(crate) fn clear_unless<const MASK: u32>(_: usize, _: &AtomicU32, _: &AtomicU32) -> bool {
        false
    }

    pub(crate) unsafe fn claim(_: usize, _: &AtomicU32, _: u32, _: usize, _: usize) -> *const AtomicUsize {
        core::ptr::null()
    }

    pub(crate) unsafe fn give_back(_: usize, _: &AtomicU32, _: u32, _: *const AtomicUsize, _: usize) -> bool {
        false
    }

    pub(crate) fn this_cpu() -> u32 {
        u32::MAX
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use elsewhere::{claim, clear_unless, give_back, this_cpu};
