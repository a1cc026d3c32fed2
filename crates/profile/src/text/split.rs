//! What the time waited was, and for how long locks were held.

use super::{Style, render};
use crate::model::{Lock, LocksOf, Profile, RoleStats};
use crate::units::{percent, time};

/// How the time waited for each lock is split: held, free, not known, which add up to it; for how much of the
/// watched time the holder had no CPU; and the time held in all. Empty for the library's locks, whose
/// recorder does not see that a lock is free.
#[must_use]
pub fn split(profile: &Profile, style: Style) -> String {
    let header =
        ["lock", "wait\ntotal", "held", "free", "not\nknown", "without\nCPU", "held\ntotal", "of\nrun"];
    let locks = profile.locks.iter().filter(|lock| lock.kind.is_lock());
    let used = locks.flat_map(|lock| lock.roles.iter().map(move |stats| (lock, stats)));
    let is_shown =
        |(_, stats): &(&Lock, &RoleStats)| stats.wait.total > 0 && profile.locks_of != LocksOf::Library;
    let row = |(lock, stats): (&Lock, &RoleStats)| {
        let split = &stats.split;
        let of = |part: u64, whole: u64| match (part, whole) {
            (_, 0) => String::from("–"),
            (0, _) => String::from("0"),
            (part, whole) => percent(part as f64 / whole as f64),
        };
        let all = split.held + split.free + split.unknown;
        let mark = crate::split::mark(profile, stats);
        let held = stats.hold.total + stats.hold.while_waited;
        vec![
            super::locks::name(lock, stats.role),
            time(stats.wait.total as f64),
            of(split.held, all),
            of(split.free, all),
            of(split.unknown, all),
            of(split.no_cpu, split.watched),
            if held > 0 { mark.to_owned() + &time(held as f64) } else { String::from("–") },
            match stats.utilisation {
                // Not `≥ < 0.01 %`.
                Some(share) if held > 0 && mark == "≥ " && share < 0.0001 => String::from("≥ 0 %"),
                Some(share) if held > 0 => mark.to_owned() + &percent(share),
                _ => String::from("–"),
            },
        ]
    };
    render(style, "Held and free while threads waited", &header, 1, (used.filter(is_shown), row))
}
