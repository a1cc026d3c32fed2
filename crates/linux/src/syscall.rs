//! System calls without libc's wrapper, which would write `errno`.
//!
//! Each returns what the kernel returns: a negative number is an error, `-errno`.

#[cfg(target_arch = "x86_64")]
use core::arch::asm;
#[cfg(target_arch = "aarch64")]
use core::arch::asm;

/// Makes system call `number` with six arguments; unused ones are 0.
///
/// # Safety
///
/// The call with these arguments must be sound: pointers are valid for what the kernel does with them.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) unsafe fn call6(number: i64, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the x86-64 system call convention: rcx and r11 are overwritten, nothing else; the caller
    // vouches for the arguments.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
             in("r10") a[3], in("r8") a[4], in("r9") a[5], lateout("rcx") _, lateout("r11") _,
             options(nostack, preserves_flags));
    }
    result
}

/// As on x86-64.
///
/// # Safety
///
/// As on x86-64.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) unsafe fn call6(number: i64, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the AArch64 system call convention: x0 is overwritten, nothing else; the caller vouches for the
    // arguments.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a[0] => result, in("x1") a[1], in("x2") a[2],
             in("x3") a[3], in("x4") a[4], in("x5") a[5], options(nostack, preserves_flags));
    }
    result
}
