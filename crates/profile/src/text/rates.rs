//! Locks between two looks at a running program: rates.

use super::locks::name;
use super::{Style, render};
use crate::model::{Lock, Profile, Role, RoleStats};
use crate::units::{short_count, time};

/// What a lock did in between.
struct Change<'a> {
    lock: &'a Lock,
    role: Role,
    acquisitions: u64,
    waits: u64,
    /// ns.
    waited: u64,
}

/// The table of the locks that were used between two looks at one process, those that were waited for most
/// first. Empty if there are none.
#[must_use]
pub fn rates(before: &Profile, now: &Profile, style: Style) -> String {
    let seconds = now.duration.saturating_sub(before.duration) as f64 / 1e9;
    if seconds <= 0.0 {
        return String::new();
    }
    let locks = now.locks.iter().filter(|lock| lock.kind.is_lock());
    let mut changes: Vec<Change<'_>> = locks
        .flat_map(|lock| lock.roles.iter().map(move |stats| change(before, lock, stats)))
        .filter(|change| change.acquisitions + change.waits > 0)
        .collect();
    changes.sort_by_key(|change| std::cmp::Reverse((change.waited, change.waits, change.acquisitions)));
    let per_second = |number: u64| short_count((number as f64 / seconds).round() as u64);
    let row = |change: Change<'_>| {
        vec![
            name(change.lock, change.role),
            per_second(change.acquisitions),
            per_second(change.waits),
            format!("{:.2}", change.waited as f64 / 1e9 / seconds),
            match change.waits {
                0 => String::from("–"),
                waits => time(change.waited as f64 / waits as f64),
            },
        ]
    };
    let header = ["lock", "taken\na second", "waits\na second", "threads\nwaiting", "wait\nmean"];
    let title = format!("Locks in the last {seconds:.1} s");
    render(style, &title, &header, 1, (changes.into_iter(), row))
}

fn change<'a>(before: &Profile, lock: &'a Lock, stats: &RoleStats) -> Change<'a> {
    let earlier = before.locks.iter().find(|earlier| earlier.id == lock.id);
    let earlier = earlier.and_then(|earlier| earlier.role(stats.role));
    let less = |now: u64, of: fn(&RoleStats) -> u64| now.saturating_sub(earlier.map_or(0, of));
    Change {
        lock,
        role: stats.role,
        acquisitions: less(stats.acquisitions, |stats| stats.acquisitions),
        waits: less(stats.contended, |stats| stats.contended),
        waited: less(stats.wait.total, |stats| stats.wait.total),
    }
}
