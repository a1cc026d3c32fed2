//! x86-64.

use object::elf;

/// What it is called.
pub(crate) const NAME: &str = "x86-64";
/// Its number in ELF files.
pub(crate) const ELF: elf::Machine = elf::EM_X86_64;

/// Of System V's numbers of registers: the frame pointer, and the end of the stack.
pub(crate) const POINTER: u16 = 6;
pub(crate) const STACK: u16 = 7;
/// The return address, as if it were a register.
pub(crate) const RETURN: u16 = 16;
/// So many registers have numbers.
pub(crate) const REGISTERS: usize = RETURN as usize + 1;
/// A function's frame ends behind its return address, which its call has pushed.
pub(crate) const RETURN_ENDS_FRAME: bool = true;

/// Where glibc's descriptor of a thread has its number, bytes.
pub(crate) const THREAD_ID: u64 = 0x2d0;

/// Calls that wait for a signal.
pub(crate) const SLEEPS: [i64; 3] = [libc::SYS_pause, libc::SYS_rt_sigsuspend, libc::SYS_rt_sigtimedwait];
/// Calls that wait for another process or its memory.
pub(crate) const ENDS: [i64; 3] = [libc::SYS_wait4, libc::SYS_waitid, libc::SYS_vfork];

/// The address in a word that has a return address.
pub(crate) fn code_address(word: u64) -> u64 {
    word
}

/// The number of the system call that these bytes make at their end.
pub(crate) fn restarted(before: [u8; 8]) -> Option<i64> {
    match before {
        // `mov $number, %eax`, and `syscall`.
        [_, 0xb8, number @ .., 0x0f, 0x05] => Some(i32::from_le_bytes(number).into()),
        _ => None,
    }
}
