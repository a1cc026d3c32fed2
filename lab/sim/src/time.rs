//! Virtual time.

/// Picoseconds of virtual time. 2^64 of them are 213 days.
pub(crate) type Ps = u64;

/// Picoseconds in a nanosecond.
pub(crate) const PS_PER_NS: Ps = 1_000;

/// `ns` nanoseconds.
pub(crate) fn ps(ns: f64) -> Ps {
    (ns * PS_PER_NS as f64).round() as Ps
}
