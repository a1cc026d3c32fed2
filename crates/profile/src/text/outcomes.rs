//! Outcomes of waits.

use std::iter;

use super::{Style, render};
use crate::model::{Lock, Profile, RoleStats};
use crate::units::short_count;

/// The table of outcomes; from 100 columns on also why spinning ended. Empty if none is known: glibc's locks
/// do not report them.
#[must_use]
pub fn outcomes(profile: &Profile, style: Style) -> String {
    let locks = profile.locks.iter().filter(|lock| lock.kind.is_lock() && !lock.is_slept_for());
    let used = locks.flat_map(|lock| lock.roles.iter().map(move |stats| (lock, stats)));
    let is_wide = style.width >= 100;
    let mut header = vec!["lock", "waits", "spun", "parked", "handed\nover", "timed\nout", "not\nknown"];
    header.extend(is_wide.then_some(["new\nowner", "off\nCPU", "spin\nlimit"]).into_iter().flatten());
    let has_waiting =
        profile.locks.iter().flat_map(|lock| &lock.roles).any(|stats| stats.outcomes.still_waiting > 0);
    header.extend(has_waiting.then_some("still\nwaiting"));
    header.push("wake-\nups");
    let row = |(lock, stats): (&Lock, &RoleStats)| {
        let outcomes = &stats.outcomes;
        let mut numbers = vec![
            stats.contended,
            outcomes.spun,
            outcomes.parked,
            outcomes.handed_over,
            outcomes.timed_out,
            outcomes.unknown,
        ];
        if is_wide {
            numbers.extend([outcomes.owner_changed, outcomes.off_cpu, outcomes.budget]);
        }
        numbers.extend(has_waiting.then_some(outcomes.still_waiting));
        numbers.push(stats.wake_ups);
        let shown = numbers
            .into_iter()
            .map(|number| if number == 0 { String::from("·") } else { short_count(number) });
        iter::once(super::locks::name(lock, stats.role)).chain(shown).collect()
    };
    let title = if is_wide { "Outcomes of waits, and why spinning ended" } else { "Outcomes of waits" };
    render(style, title, &header, 1, (used.filter(|(_, stats)| is_known(stats)), row))
}

fn is_known(stats: &RoleStats) -> bool {
    let outcomes = &stats.outcomes;
    let known = [
        outcomes.spun,
        outcomes.parked,
        outcomes.handed_over,
        outcomes.timed_out,
        outcomes.owner_changed,
        outcomes.off_cpu,
        outcomes.budget,
        stats.wake_ups,
    ];
    stats.contended > 0 && known.iter().any(|number| *number > 0)
}
