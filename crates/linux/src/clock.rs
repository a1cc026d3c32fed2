//! The two clocks, read through the vDSO.

use spinpark_platform::{Clock, Deadline};

/// Not inlined: it is called from many slow paths, and the drop-in is to stay small.
#[inline(never)]
pub(crate) fn now(clock: Clock) -> u64 {
    let id = match clock {
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Realtime => libc::CLOCK_REALTIME,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec. The call cannot fail for these clocks, so it leaves errno alone.
    unsafe { libc::clock_gettime(id, &mut time) };
    Deadline::from_timespec(clock, time.tv_sec, time.tv_nsec as u32).at
}
