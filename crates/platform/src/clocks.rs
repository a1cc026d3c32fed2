//! Clocks and deadlines.

/// Nanoseconds in a microsecond.
pub const NS_PER_US: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const NS_PER_SEC: u64 = 1_000_000_000;

/// The clock that a deadline is read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: does not jump.
    Monotonic,
    /// `CLOCK_REALTIME`: follows the wall clock, also when it is set during the wait.
    Realtime,
}

/// An absolute point in time: `at` nanoseconds on `clock`, saturated at both ends of `u64` (1970 to 2554).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The clock.
    pub clock: Clock,
    /// Nanoseconds since the clock's zero.
    pub at: u64,
}

impl Deadline {
    /// The deadline `seconds` and `nanoseconds` after the zero of `clock`. A negative time has passed
    /// already; one beyond the range of `u64` nanoseconds lies at its end, which no clock reaches.
    #[must_use]
    pub fn from_timespec(clock: Clock, seconds: i64, nanoseconds: u32) -> Self {
        let at = match u64::try_from(seconds) {
            Ok(seconds) => seconds.saturating_mul(NS_PER_SEC).saturating_add(u64::from(nanoseconds)),
            Err(_) => 0,
        };
        Self { clock, at }
    }

    /// How long it is until then, ns; 0: it has passed.
    #[must_use]
    pub fn left<C: Clocks>(self) -> u64 {
        self.at.saturating_sub(C::now(self.clock))
    }
}

/// A time in `ns` as seconds and nanoseconds, the fields of `timespec`.
#[must_use]
pub fn as_timespec(ns: u64) -> (i64, i64) {
    // Both fit: `u64::MAX` nanoseconds are 1.8e10 seconds.
    ((ns / NS_PER_SEC) as i64, (ns % NS_PER_SEC) as i64)
}

/// The machine's clocks.
pub trait Clocks: Sized + Send + Sync + 'static {
    /// The time of `clock`, ns. Never goes back for [`Clock::Monotonic`].
    fn now(clock: Clock) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timespec_saturates_at_both_ends() {
        assert_eq!(Deadline::from_timespec(Clock::Realtime, -1, 999_999_999).at, 0);
        assert_eq!(Deadline::from_timespec(Clock::Realtime, i64::MIN, 0).at, 0);
        assert_eq!(Deadline::from_timespec(Clock::Realtime, i64::MAX, 999_999_999).at, u64::MAX);
        let deadline = Deadline::from_timespec(Clock::Monotonic, 12, 34);
        assert_eq!((deadline.at, as_timespec(deadline.at)), (12_000_000_034, (12, 34)));
    }
}
