//! Waits while holding another lock: threads that want that lock wait for these, too.

use super::{Style, render};
use crate::chain;
use crate::model::Profile;
use crate::units::{short_count, time, time_or_dash};

/// The table of waits while holding a contended lock; those first that blocked others longest.
#[must_use]
pub fn held_waits(profile: &Profile, style: Style) -> String {
    let row = |row: chain::Row| {
        vec![
            row.outer,
            row.wanted,
            short_count(row.waits.count),
            time(row.waits.wait_total as f64),
            time(row.waits.wait_total as f64 / row.waits.count.max(1) as f64),
            time(row.waits.wait_longest as f64),
            time_or_dash(row.waits.time_blocked),
        ]
    };
    let header = ["lock held", "waited for", "waits", "time", "mean", "max", "time\nblocked"];
    render(style, "Waits while holding another lock", &header, 2, (chain::rows(profile).into_iter(), row))
}
