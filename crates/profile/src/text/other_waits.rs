//! Waits for work, events and other threads, and those of which it is not known what they are for.

use super::{Style, render};
use crate::model::{Profile, Role};
use crate::other_waits::rows;
use crate::units::{short_count, time, time_or_dash};

/// The table of waits that are for no lock, as far as that is known; condition variables have their own.
#[must_use]
pub fn other_waits(profile: &Profile, style: Style) -> String {
    let is_wide = style.width >= 100;
    let mut header = vec!["object", "woken in", "waits", "timed\nout", "wait\ntotal"];
    header.extend(is_wide.then_some("wait\nmean"));
    header.extend(["wait\nmax", "may be\na lock"]);
    let rows = rows(profile).into_iter().map(|row| {
        let waits = &row.stats.wait;
        let mut cells = vec![
            row.lock.label.clone(),
            // What a sentence puts in back quotes has them within.
            row.woken_in.as_ref().map_or_else(|| String::from("–"), |name| name.replace('`', "")),
            short_count(row.stats.contended),
            short_count(row.stats.outcomes.timed_out),
            time_or_dash(waits.total),
        ];
        cells.extend(is_wide.then(|| time(waits.mean())));
        cells.push(time_or_dash(waits.longest));
        cells.push(String::from(if row.stats.role == Role::Wake { "yes" } else { "no" }));
        cells
    });
    render(style, "Waits for work, events and other threads", &header, 2, (rows, |row| row))
}
