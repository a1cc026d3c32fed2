//! Timeouts as POSIX gives them.

use libc::{clockid_t, timespec};
use spinpark_platform::{Clock, Deadline, NS_PER_SEC};

/// The clock `id`, if one can wait by it.
pub(crate) fn clock(id: clockid_t) -> Option<Clock> {
    match id {
        libc::CLOCK_REALTIME => Some(Clock::Realtime),
        libc::CLOCK_MONOTONIC => Some(Clock::Monotonic),
        _ => None,
    }
}

/// The id of `clock`.
pub(crate) fn id(clock: Clock) -> clockid_t {
    match clock {
        Clock::Realtime => libc::CLOCK_REALTIME,
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
    }
}

/// The deadline at `time` on `clock`; `None` if its nanoseconds are out of range (EINVAL).
///
/// # Safety
///
/// `time` points to a timespec.
pub(crate) unsafe fn deadline(clock: Clock, time: *const timespec) -> Option<Deadline> {
    // SAFETY: the caller's pointer.
    let timespec { tv_sec, tv_nsec } = unsafe { *time };
    let nanoseconds = u32::try_from(tv_nsec).ok().filter(|&it| u64::from(it) < NS_PER_SEC)?;
    Some(Deadline::from_timespec(clock, tv_sec, nanoseconds))
}
