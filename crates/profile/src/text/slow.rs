//! The longest waits, one by one.

use super::{Style, render};
use crate::model::{Profile, Role, SlowWait};
use crate::names::Names;
use crate::units::{one_line, time};

/// The table of the longest waits that ended: for locks, and for what may be one.
#[must_use]
pub fn slow(profile: &Profile, style: Style) -> String {
    let names = Names::of_profile(profile);
    let waits = profile.slow_waits.iter().filter(|wait| wait.role.is_lock() || wait.role == Role::Wake);
    let has_calls = waits.clone().take(style.rows).any(|wait| wait.holder_call.is_some());
    let mut header = vec!["thread", "waiter", "lock", "holder", "at", "waited", "queue"];
    header.extend(has_calls.then_some("holder\nin"));
    let row = |wait: &SlowWait| {
        let name =
            |site: Option<usize>| site.map_or_else(|| String::from("not known"), |site| names.label(site));
        let release = if wait.is_release && wait.holder.is_some() { " (release)" } else { "" };
        let call = wait.holder_call.as_ref();
        let mut cells = vec![
            format!("{} {}", one_line(&wait.name), wait.thread),
            name(wait.call_site),
            profile.lock(wait.lock).map_or_else(|| String::from("?"), |lock| lock.label.clone()),
            name(wait.holder) + release,
            seconds(wait.start),
            time(wait.time as f64) + if wait.is_timed_out { " (timed out)" } else { "" },
            if wait.queue > 0 { wait.queue.to_string() } else { String::from("–") },
        ];
        cells.extend(has_calls.then(|| {
            call.map_or_else(
                || String::from("–"),
                |call| format!("{} {}", call.function, time(call.time as f64)),
            )
        }));
        cells
    };
    render(style, "The longest waits", &header, 4, (waits, row))
}

/// `12.345 s` after the start.
fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}
