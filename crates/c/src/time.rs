//! From the header's two ways to say how long, to deadlines on the monotonic clock.

use libc::timespec;
use spinpark_linux::Linux;
use spinpark_platform::{Clock, Clocks, Deadline};

use crate::misuse::misuse;

/// `span` nanoseconds from now; never, if that is beyond what a clock can show.
pub(crate) fn after(span: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, at: Linux::now(Clock::Monotonic).saturating_add(span) }
}

/// `time` on the monotonic clock.
pub(crate) fn at(time: &timespec) -> Deadline {
    // SAFETY: a reference.
    match unsafe { spinpark_linux::deadline(Clock::Monotonic, time) } {
        Some(deadline) => deadline,
        None => misuse!("a deadline", "its tv_nsec is not from 0 to 999999999"),
    }
}
