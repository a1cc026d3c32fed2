//! The futex system calls, as they are.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Wakes at most `count` threads that wait for `word`; how many were woken.
pub(super) fn wake(word: &AtomicU32, count: i32) -> i64 {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives; the call reads nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, count) }
}

/// Waits while `word` is `value`, at most for `timeout`.
pub(super) fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word and the timeout live; a null timeout is none.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) };
}
