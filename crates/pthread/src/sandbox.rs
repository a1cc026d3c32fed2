//! `prctl`, because of what it announces: from there on locks make no system call but `futex`.
//!
//! Without privileges, a seccomp filter must be preceded by `PR_SET_NO_NEW_PRIVS`; libseccomp, OpenSSH and Chromium call it
//! through libc. What comes to the kernel in other ways is not seen.

use core::ffi::{c_int, c_ulong};

use crate::{mode, real};

/// `prctl`: glibc's.
///
/// # Safety
///
/// As Linux has it.
pub unsafe fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    // Without a filter, it is the question whether the kernel knows them (Chromium).
    let filters = option == libc::PR_SET_SECCOMP && b != 0;
    let announces = option == libc::PR_SET_NO_NEW_PRIVS;
    if filters || announces {
        mode::start(); // which asks what cannot be asked later
    }
    if filters {
        spinpark_linux::before_filter();
    }
    // SAFETY: the caller's arguments; those that it did not pass are not looked at.
    let result = unsafe { real::prctl(option, a, b, c, d) };
    if announces && result == 0 {
        spinpark_linux::before_filter(); // one that failed has changed nothing
    }
    result
}
