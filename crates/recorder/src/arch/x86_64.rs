//! x86-64.

use core::ffi::c_int;

/// The number of the frame pointer in unwind tables.
pub(crate) const FRAME_POINTER: c_int = 6;

/// Where a frame's return address lies does not depend on a frame record.
pub(crate) const HAS_FRAME_RECORDS: bool = false;

/// Where a return address lies: at the `end` of the frame inside, whatever that one's frame pointer is.
#[inline(always)]
pub(crate) fn return_place(end: usize, _inner_frame: Option<usize>) -> usize {
    end
}

/// The address in a word of the stack that has a return address.
#[inline(always)]
pub(crate) fn code_address(word: usize) -> usize {
    word
}

/// The time stamp counter.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    // SAFETY: every x86-64 has it; a program that forbids it to itself (`PR_SET_TSC`) does so later than
    // this.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Whether the counter ticks at one rate, whatever the CPU does.
pub(crate) fn counter_is_even() -> bool {
    const HIGHEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    #[allow(unused_unsafe, reason = "safe since Rust 1.94")]
    // SAFETY: every x86-64 has it.
    let ask = |leaf| unsafe { core::arch::x86_64::__cpuid(leaf) };
    ask(HIGHEST).eax >= POWER && ask(POWER).edx & INVARIANT != 0
}

/// Whether these bytes end with an instruction that calls.
pub(crate) fn ends_in_call(code: [u8; 8]) -> bool {
    // `call rel32`; `call r/m64`, of which the operand decides the length.
    let is_indirect = |length: usize| {
        let at = 8 - length;
        let (operand, index) = (code[at + 1], code.get(at + 2).copied().unwrap_or(0));
        let (kind, register) = (operand >> 6, operand & 7);
        let has_index = kind != 3 && register == 4;
        let displacement = match kind {
            0 if register == 5 || has_index && index & 7 == 5 => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        code[at] == 0xFF && operand >> 3 & 7 == 2 && length == 2 + usize::from(has_index) + displacement
    };
    code[3] == 0xE8 || (2..=7).any(is_indirect)
}

/// Bytes of a thread's descriptor in which the words are looked for; every version has more.
const LOOKED_AT: usize = 0x780;
/// A descriptor and what is behind it have less, bytes.
const LARGEST: usize = 0x2000;
/// A stack has more (`PTHREAD_STACK_MIN`), bytes.
const LEAST: usize = 16 << 10;

/// From where to where the calling thread's stack lies, as its descriptor has it, which starts at the thread pointer.
pub(crate) fn stack_by_descriptor() -> Option<(usize, usize)> {
    let pointer = spinpark_linux::raw::thread_pointer();
    let word = |at: usize| {
        // SAFETY: inside this thread's descriptor.
        unsafe { (pointer as *const usize).wrapping_add(at).read_volatile() }
    };
    (0..LOOKED_AT / 8 - 2).find_map(|at| find(pointer, [word(at), word(at + 1), word(at + 2)]))
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
        let calls: [&[u8]; 9] = [
            &[0xE8, 2, 0, 0, 0],             // call 1f
            &[0xFF, 0xD0],                   // call *%rax
            &[0x41, 0xFF, 0xD2],             // call *%r10
            &[0xFF, 0x10],                   // call *(%rax)
            &[0xFF, 0x14, 0xC8],             // call *(%rax,%rcx,8)
            &[0xFF, 0x50, 0x18],             // call *24(%rax)
            &[0xFF, 0x54, 0xC8, 0x18],       // call *24(%rax,%rcx,8)
            &[0xFF, 0x15, 1, 2, 3, 4],       // call *f@GOT(%rip)
            &[0xFF, 0x94, 0xC8, 1, 2, 3, 4], // call *n(%rax,%rcx,8)
        ];
        let others: [&[u8]; 5] = [
            &[0x90, 0x90, 0x90],       // nop
            &[0xE9, 2, 0, 0, 0],       // jmp 1f
            &[0xFF, 0xE0],             // jmp *%rax
            &[0xFF, 0x25, 1, 2, 3, 4], // jmp *f@GOT(%rip)
            &[0xFF, 0x50, 0x18, 0x90], // a call, and behind it
        ];
        let last_eight = |code: &[u8]| {
            let mut bytes = [0x90; 8];
            bytes[8 - code.len()..].copy_from_slice(code);
            ends_in_call(bytes)
        };
        assert!(calls.into_iter().all(last_eight));
        assert!(!others.into_iter().any(last_eight));
    }

    #[test]
    fn other_words_are_no_stack() {
        let at = 0x7000_0000_f6c0;
        assert_eq!(
            find(at, [0x7000_0000_0000, 0x1_0000, 0x1000]).map(|(low, _)| low),
            Some(0x7000_0000_1000)
        );
        assert_eq!(find(at, [0, at + 0x940, 0]), None);
        assert_eq!(find(at, [0x7000_0000_0000, 0x2_0000, 0]), None);
        assert_eq!(find(at, [at, 0x1_0000, 0]), None);
        assert_eq!(find(at, [at - 0x100, 0x200, 0]), None);
    }
}
