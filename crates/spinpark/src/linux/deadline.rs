//! From std's durations and instants to the platform's deadlines.

use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_platform::{Clock, Clocks, Deadline};

/// `timeout` from now; the far future if that is beyond what a clock can show.
pub(crate) fn after(timeout: Duration) -> Deadline {
    let span = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    Deadline { clock: Clock::Monotonic, at: Linux::now(Clock::Monotonic).saturating_add(span) }
}

/// `instant`, which is on the same clock but does not show its number.
pub(crate) fn at(instant: Instant) -> Deadline {
    after(instant.saturating_duration_since(Instant::now()))
}
