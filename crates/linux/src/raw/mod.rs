//! The few other system calls that intercepted code makes, without libc: none touches `errno`.

mod files;
mod threads;

use core::ffi::CStr;

use crate::syscall::call6;

pub use files::{
    allocate, create, expect_no_order, identity, is_log, largest_space, largest_stack, longest_file,
    make_directory, map_file, map_zero, open_mapping, open_or_create, open_read, open_write, populate, read,
    read_at, read_link, read_memory, remove, set_length, unmap, wipe_on_fork, working_directory,
};
#[cfg(target_arch = "x86_64")]
pub(crate) use threads::change_mask;
pub use threads::thread_pointer;
pub use threads::{
    cpu_time, cpus, has_ended, parent_id, run_delay, sandbox, sleeps, thread_id, thread_name, timer_slack,
    without_signals,
};

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
