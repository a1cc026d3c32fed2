//! Calls that are not about locks, but tell the locks something about the process.
//!
//! | call                | what is done                                                                       |
//! |---------------------|------------------------------------------------------------------------------------|
//! | `__register_atfork` | our fork handler is registered before the program's                                |
//! | `prctl`             | it announces a seccomp filter: from there on locks make no system call but `futex`; |
//! |                     | it sets the timer slack                                                            |
//! | `spinpark_observe`  | a profiler learns what the locks do                                                |

use core::ffi::{c_int, c_ulong, c_void};

use spinpark_linux::Observer;

use crate::real::Handler;
use crate::{mode, real};

/// `__register_atfork`, which `pthread_atfork` is a static stub for.
///
/// Child handlers run in the order in which they were registered, and the textbook use (lock in the parent,
/// unlock in the child) is a lock operation in the child. So whichever comes first, a lock's call or a
/// registration, our handler is registered before ([`mode::start`]).
///
/// # Safety
///
/// As POSIX has it for `pthread_atfork`.
pub(crate) unsafe extern "C" fn register_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
    library: *mut c_void,
) -> c_int {
    mode::start(); // which registers our handler
    // SAFETY: the caller's handlers.
    unsafe { real::__register_atfork(prepare, parent, child, library) }
}

/// `prctl`: glibc's.
///
/// Without privileges, a seccomp filter must be preceded by `PR_SET_NO_NEW_PRIVS`; libseccomp, OpenSSH and
/// Chromium call it through libc. What comes to the kernel in other ways is not seen.
///
/// # Safety
///
/// As Linux has it.
pub(crate) unsafe extern "C" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    // Without a filter, it is the question whether the kernel knows them (Chromium).
    let filters = option == libc::PR_SET_SECCOMP && b != 0;
    let announces = option == libc::PR_SET_NO_NEW_PRIVS;
    if filters || announces {
        mode::start(); // which asks what cannot be asked later
    }
    if filters {
        spinpark_linux::before_filter();
    }
    if option == libc::PR_SET_TIMERSLACK {
        spinpark_linux::note_timer_slack(a); // which cannot be asked later
    }
    // SAFETY: the caller's arguments; those that it did not pass are not read.
    let result = unsafe { real::prctl(option, a, b, c, d) };
    if announces && result == 0 {
        spinpark_linux::before_filter(); // one that failed has changed nothing
    }
    result
}

/// `spinpark_observe`: installs an observer of slow paths, or none; returns 1 if the locks of this process
/// are ours, else 0.
///
/// The observer gets the number of a `spinpark_platform::Event`.
///
/// # Safety
///
/// The observer stays, uses no lock, and returns.
pub(crate) unsafe extern "C" fn observe(observer: Option<Observer>) -> c_int {
    spinpark_linux::observe(observer);
    c_int::from(mode::ours())
}
