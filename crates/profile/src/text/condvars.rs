//! Condition variables: waiting for signals, and for the mutex afterwards.

use super::{Style, render};
use crate::model::{Kind, Lock, Profile, Role, RoleStats, Times};
use crate::units::{short_count, time, time_or_dash};

/// The table of condition variables. From 100 columns on it has means.
#[must_use]
pub fn condvars(profile: &Profile, style: Style) -> String {
    // Of one whose waits were for something else nothing may be left.
    let is_used = |lock: &&Lock| lock.roles.iter().any(|stats| stats.contended + stats.wake_ups > 0);
    let condvars = profile.locks.iter().filter(|lock| lock.kind == Kind::Condvar).filter(is_used);
    let is_wide = style.width >= 100;
    let mut header = vec!["condvar", "waits", "timed\nout", "for\nsignal"];
    header.extend(is_wide.then_some("\nmean"));
    header.extend(["\nmax", "for\nmutex"]);
    header.extend(is_wide.then_some("\nmean"));
    header.push("\nmax");
    // The table is wide: this column only if there are such waits.
    let late = |lock: &Lock| lock.role(Role::Late).map_or(0, |stats| stats.wait.total);
    let has_late = profile.locks.iter().any(|lock| late(lock) > 0);
    header.extend(has_late.then_some("after\ntime-out"));
    header.push("signals");
    let of_none = Times::default();
    let row_of = |lock: &Lock| {
        let (signal, back) = (lock.role(Role::Signal), lock.role(Role::Back));
        let number = |of: fn(&RoleStats) -> u64| short_count(signal.map_or(0, of));
        let mut row = vec![
            lock.label.clone(),
            number(|stats| stats.contended),
            number(|stats| stats.outcomes.timed_out),
        ];
        for stats in [signal, back] {
            let times = stats.map_or(&of_none, |stats| &stats.wait);
            row.push(time_or_dash(times.total));
            row.extend(
                is_wide.then(|| if times.count == 0 { String::from("–") } else { time(times.mean()) }),
            );
            row.push(time_or_dash(times.longest));
        }
        row.extend(has_late.then(|| time_or_dash(late(lock))));
        row.push(number(|stats| stats.wake_ups));
        row
    };
    render(
        style,
        "Condition variables: waits for signals, and for the mutex afterwards",
        &header,
        1,
        (condvars, row_of),
    )
}
