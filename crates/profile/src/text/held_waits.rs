//! Waits with another lock held: who wants that one waits for these, too.

use super::{Style, render};
use crate::chain;
use crate::model::Profile;
use crate::units::{short_count, time, time_or_dash};

/// The table of waits with another lock held for which anybody ever waited; those first that made others wait longest.
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
            time_or_dash(row.waits.made_wait),
        ]
    };
    let header =
        ["with this lock held", "threads waited for", "waits", "time", "mean", "max", "others\nwaited"];
    render(style, "Waits with another lock held", &header, 2, (chain::rows(profile).into_iter(), row))
}
