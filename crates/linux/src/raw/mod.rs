//! System calls without libc's wrapper, which would write `errno`: the call itself, and those of the files
//! and threads of intercepted code.
//!
//! By hand, not by `rustix`: with it the drop-in would be 96 bytes smaller, but a workspace that builds it
//! beside crates that use `rustix` with `std` enables that for the drop-in, too, which then links a second
//! panic handler.

mod files;
mod threads;

use core::arch::asm;
use core::ffi::CStr;

pub use files::{
    allocate, create, create_in_memory, expect_no_order, identity, is_log, largest_space, largest_stack,
    longest_file, make_directory, make_private_directory, map_file, map_file_over, map_zero, open_mapping,
    open_or_create, open_read, open_write, populate, read, read_at, read_link, read_memory, remove,
    remove_directory, set_length, unmap, wipe, wipe_on_fork, working_directory,
};
pub(crate) use threads::{allow_tracers, change_mask};
pub use threads::{
    cpu_time, cpus, has_children, has_ended, order_all_threads, parent_id, prepare_order, process_cpu_time,
    run_delay, sandbox, sleeps, thread_id, thread_name, thread_pointer, timer_slack, without_signals,
};

/// Makes system call `number` with six arguments; unused ones are 0. Returns what the kernel returns: a
/// negative number is an error, `-errno`.
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

/// Opens an existing file for appending; negative on failure.
#[must_use]
pub fn open_append(path: &CStr) -> i32 {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0, 0, 0];
    // SAFETY: a C string that the kernel reads.
    unsafe { call6(libc::SYS_openat, arguments) as i32 }
}

/// Writes `bytes` to `file`; what does not fit is lost, as on a full disk.
pub fn write(file: i32, bytes: &[u8]) {
    let arguments = [file as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
    // SAFETY: the kernel reads `bytes`.
    unsafe { call6(libc::SYS_write, arguments) };
}

/// Closes `file`.
pub fn close(file: i32) {
    // SAFETY: closes a descriptor that the caller opened.
    unsafe { call6(libc::SYS_close, [file as usize, 0, 0, 0, 0, 0]) };
}

/// The process id.
#[must_use]
pub fn process_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { call6(libc::SYS_getpid, [0; 6]) as u32 }
}

/// Lets others run, and lets pending signals in.
pub fn yield_now() {
    // SAFETY: takes nothing.
    unsafe { call6(libc::SYS_sched_yield, [0; 6]) };
}
