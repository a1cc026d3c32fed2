//! Locks: number of acquisitions, time waited, time held.

use super::spark::Spark;
use super::{Style, render};
use crate::model::{Kind, Lock, Profile, Role, RoleStats};
use crate::units::{percent, short_count, time, time_or_dash};

/// The table of locks; condition variables have their own.
///
/// From 100 columns on it has means and histograms of waits, from 120 on the longest queue and the total time
/// held.
#[must_use]
pub fn locks(profile: &Profile, style: Style) -> String {
    let used: Vec<(&Lock, &RoleStats)> = profile
        .locks
        .iter()
        .filter(|lock| lock.kind.is_lock())
        .flat_map(|lock| lock.roles.iter().map(move |stats| (lock, stats)))
        .collect();
    let (is_wide, is_widest) = (style.width >= 100, style.width >= 120);
    let waits = used.iter().take(style.rows).map(|(_, stats)| &stats.wait);
    let spark = is_wide.then(|| Spark::new(waits, if is_widest { 16 } else { 12 })).flatten();
    let title = spark.map(|spark| spark.title("waits"));

    let mut header = vec!["lock", "taken", "contended", "wait\ntotal"];
    header.extend(is_wide.then_some("wait\nmean"));
    header.push("wait\nmax");
    header.extend(is_widest.then_some("held\ntotal"));
    header.extend(["held\nmean", "held\nmax"]);
    header.extend(is_widest.then_some("longest\nqueue"));
    header.extend(title.as_deref());
    let row_of = |(lock, stats): (&Lock, &RoleStats)| {
        let waits = stats.wait.count > 0;
        let held = stats.hold.measured.count > 0;
        let estimate = if stats.hold.total_error > 0 { "~" } else { "" };
        // Holds of threads that got the lock at once were not measured: the mean of all holds is not known.
        let is_part = is_part(stats);
        let least = if is_part { "≥ " } else { estimate };
        let mut row = vec![
            name(lock, stats.role),
            if lock.is_slept_for() { dash() } else { short_count(stats.acquisitions) },
            match lock.is_slept_for() {
                true => format!("{} waits", short_count(stats.contended)),
                false => stats.contended_share().map_or_else(dash, percent),
            },
            time_or_dash(stats.wait.total),
        ];
        row.extend(is_wide.then(|| if waits { time(stats.wait.mean()) } else { dash() }));
        row.push(time_or_dash(stats.wait.longest));
        row.extend(
            is_widest.then(|| if held { least.to_owned() + &time(stats.hold.total as f64) } else { dash() }),
        );
        row.push(if held && !is_part {
            estimate.to_owned() + &time(stats.hold.mean(stats.acquisitions))
        } else {
            dash()
        });
        row.push(if held {
            let mark = if is_part { "≥ " } else { "" };
            mark.to_owned() + &time(stats.hold.measured.longest as f64)
        } else {
            dash()
        });
        row.extend(
            is_widest
                .then(|| if stats.longest_queue > 0 { short_count(stats.longest_queue) } else { dash() }),
        );
        row.extend(spark.map(|spark| if waits { spark.row(&stats.wait) } else { String::new() }));
        row
    };
    render(style, "Locks", &header, 1, (used.into_iter(), row_of))
}

/// Whether only some of the holds were measured, not chosen at random.
fn is_part(stats: &RoleStats) -> bool {
    !stats.hold.is_estimate()
        && stats.hold.measured.count > 0
        && stats.hold.measured.count < stats.acquisitions
}

fn dash() -> String {
    String::from("–")
}

/// The label; with the role, if the lock has two.
pub(super) fn name(lock: &Lock, role: Role) -> String {
    match lock.kind {
        Kind::RwLock => format!("{}, {}", lock.label, role.word()),
        _ => lock.label.clone(),
    }
}
