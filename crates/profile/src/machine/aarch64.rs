//! AArch64.

use object::elf;

/// What it is called.
pub(crate) const NAME: &str = "aarch64";
/// Its number in ELF files.
pub(crate) const ELF: elf::Machine = elf::EM_AARCH64;

/// Of DWARF's numbers of registers: the frame pointer, and the end of the stack.
pub(crate) const POINTER: u16 = 29;
pub(crate) const STACK: u16 = 31;
/// The return address, as long as a function has not stored it.
pub(crate) const RETURN: u16 = 30;
/// So many registers have numbers.
pub(crate) const REGISTERS: usize = STACK as usize + 1;
/// A function stores its return address where it likes to, or nowhere.
pub(crate) const RETURN_ENDS_FRAME: bool = false;

/// Where glibc's descriptor of a thread has its number, bytes.
pub(crate) const THREAD_ID: u64 = 0xd0;

/// Calls that wait for a signal.
pub(crate) const SLEEPS: [i64; 2] = [libc::SYS_rt_sigsuspend, libc::SYS_rt_sigtimedwait];
/// Calls that wait for another process.
pub(crate) const ENDS: [i64; 2] = [libc::SYS_wait4, libc::SYS_waitid];

/// The address in a word that has a return address: above it is its signature (PAC), if the code signs them.
pub(crate) fn code_address(word: u64) -> u64 {
    word & ((1 << 48) - 1)
}

/// The number of the system call that these bytes make at their end.
pub(crate) fn restarted(before: [u8; 8]) -> Option<i64> {
    let [first, second] = [0, 4].map(|at| {
        let bytes = before[at..at + 4].try_into().unwrap_or_default();
        u32::from_le_bytes(bytes)
    });
    // `mov x8, #number` or `mov w8, #number`, and `svc #0`.
    let is_call = second == 0xd400_0001 && first & 0x7fe0_001f == 0x5280_0008;
    is_call.then_some(i64::from(first >> 5 & 0xffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_call_is_in_the_code_before_it() {
        let code = |first: u32, second: u32| [first.to_le_bytes(), second.to_le_bytes()].concat().try_into();
        // mov x8, #98 and svc #0; mov w8, #98; mov x7, #98; a `nop`.
        assert_eq!(code(0xd280_0c48, 0xd400_0001).map(restarted), Ok(Some(98)));
        assert_eq!(code(0x5280_0c48, 0xd400_0001).map(restarted), Ok(Some(98)));
        assert_eq!(code(0xd280_0c47, 0xd400_0001).map(restarted), Ok(None));
        assert_eq!(code(0xd280_0c48, 0xd503_201f).map(restarted), Ok(None));
    }
}
