//! AArch64.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use spinpark_linux::{lookup, Scope};

/// The number of the frame pointer (x29) in unwind tables.
pub(crate) const FRAME_POINTER: c_int = 29;

/// A function that calls others stores the frame pointer and the return address side by side, where the new
/// frame pointer points to; compilers leave it out only if asked to.
pub(crate) const HAS_FRAME_RECORDS: bool = true;

/// Where a return address lies: in the record of the frame inside, if that has one.
#[inline(always)]
pub(crate) fn return_place(_end: usize, inner_frame: Option<usize>) -> usize {
    inner_frame.map_or(0, |frame| frame.wrapping_add(8))
}

/// The bits of an address of a program's code. Above them, in a return address on the stack, is its signature
/// (PAC) if the code was compiled with `-mbranch-protection`.
const ADDRESS: usize = (1 << 48) - 1;

/// The address in a word of the stack that has a return address.
#[inline(always)]
pub(crate) fn code_address(word: usize) -> usize {
    word & ADDRESS
}

/// The counter of the generic timer. What comes before is not waited for: that may move a reading by some tens of
/// nanoseconds, which is about a tick.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    let count: u64;
    // SAFETY: Linux lets programs read it, or reads it for them.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags));
    }
    count
}

/// The architecture has it so.
pub(crate) fn counter_is_even() -> bool {
    true
}

/// Whether these bytes end with an instruction that calls: `bl`, `blr`, or one of the latter's forms that check
/// the address.
pub(crate) fn ends_in_call(code: [u8; 8]) -> bool {
    let [_, _, _, _, last @ ..] = code;
    let instruction = u32::from_le_bytes(last);
    instruction & 0xFC00_0000 == 0x9400_0000 || instruction & 0xFEFF_F000 == 0xD63F_0000
}

/// What is behind a descriptor on the thread's stack, its thread-local memory, has less, bytes.
const LARGEST: usize = 1 << 20;
/// A stack has more (`PTHREAD_STACK_MIN`), bytes.
const LEAST: usize = 16 << 10;
/// A descriptor has less, bytes.
const LARGEST_DESCRIPTOR: u32 = 0x2000;

/// The length of a descriptor, which ends at the thread pointer, as glibc says it to debuggers; 0: not known yet;
/// 1: never.
static DESCRIPTOR: AtomicUsize = AtomicUsize::new(0);

fn descriptor_length() -> usize {
    let known = DESCRIPTOR.load(Relaxed);
    if known != 0 {
        return known;
    }
    let length: *const u32 = lookup(Scope::All, c"_thread_db_sizeof_pthread").cast_const().cast();
    // SAFETY: null, or glibc's `const uint32_t`, which is never unloaded.
    let length =
        unsafe { length.as_ref() }.copied().filter(|length| (64..LARGEST_DESCRIPTOR).contains(length));
    let length = length.map_or(1, |length| length as usize);
    DESCRIPTOR.store(length, Relaxed);
    length
}

/// From where to where the calling thread's stack lies, as its descriptor has it.
pub(crate) fn stack_by_descriptor() -> Option<(usize, usize)> {
    let length = descriptor_length();
    let descriptor = spinpark_linux::raw::thread_pointer().wrapping_sub(length);
    let word = |at: usize| {
        // SAFETY: inside this thread's descriptor.
        unsafe { (descriptor as *const usize).wrapping_add(at).read_volatile() }
    };
    if length == 1 || descriptor % 8 != 0 {
        return Some((0, usize::MAX));
    }
    (0..length / 8 - 2).find_map(|at| find(descriptor, [word(at), word(at + 1), word(at + 2)]))
}

/// Start, length and guard of the stack at whose end `descriptor` is, if that is what these words are.
fn find(descriptor: usize, [start, length, guard]: [usize; 3]) -> Option<(usize, usize)> {
    let end = start.checked_add(length)?;
    let is_it = start >= LEAST
        && length >= LEAST
        && start < descriptor
        && descriptor < end
        && end - descriptor < LARGEST;
    let guard = if guard < length { guard } else { 0 };
    is_it.then_some((start + guard, descriptor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_other_code() {
        let ends = |instruction: u32| {
            let mut code = [0; 8];
            code[4..].copy_from_slice(&instruction.to_le_bytes());
            ends_in_call(code)
        };
        // bl, bl backwards, blr x3, blraa x3 with x4, blraaz x3.
        assert!([0x9400_0001, 0x97FF_FFFF, 0xD63F_0060, 0xD73F_0864, 0xD63F_087F].into_iter().all(ends));
        // b, br x3, ret, nop, mov x29, sp.
        assert!(![0x1400_0001, 0xD61F_0060, 0xD65F_03C0, 0xD503_201F, 0x9100_03FD].into_iter().any(ends));
    }

    #[test]
    fn a_signature_is_no_part_of_an_address() {
        assert_eq!(code_address(0x0033_aaaa_bbbb_cccc), 0xaaaa_bbbb_cccc);
    }

    #[test]
    fn other_words_are_no_stack() {
        let at = 0x7000_0000_f6c0;
        assert_eq!(
            find(at, [0x7000_0000_0000, 0x1_0000, 0x1000]).map(|(low, _)| low),
            Some(0x7000_0000_1000)
        );
        assert_eq!(find(at, [0, at + 0x940, 0]), None);
        assert_eq!(find(at, [0x7000_0000_0000, 0x20_0000, 0]), None);
        assert_eq!(find(at, [at, 0x1_0000, 0]), None);
        assert_eq!(find(at, [at - 0x100, 0x200, 0]), None);
    }
}
