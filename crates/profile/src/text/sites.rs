//! Call sites in the program: their waits, and the waits that they caused.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Style, render};
use crate::classes::add_site;
use crate::model::{Lock, Profile, Role, SiteStats};
use crate::names::Names;
use crate::units::{short_count, time_or_dash};

/// All sites, with their locks; those first that waited longest or blocked others longest. Without those
/// where threads wait for signals.
pub(super) fn all(profile: &Profile) -> Vec<(&Lock, Role, &SiteStats)> {
    let mut sites: Vec<(&Lock, Role, &SiteStats)> = profile
        .locks
        .iter()
        .flat_map(|lock| lock.roles.iter().map(move |stats| (lock, stats)))
        .filter(|(_, stats)| stats.role.has_holder())
        .flat_map(|(lock, stats)| stats.sites.iter().map(move |site| (lock, stats.role, site)))
        .collect();
    sites.sort_by_key(|(lock, role, site)| order(lock, *role, site));
    sites
}

fn order(lock: &Lock, role: Role, site: &SiteStats) -> impl Ord + use<> {
    (Reverse(site.wait_total.max(site.blocked_total)), Reverse(site.acquisitions), lock.id, role)
}

/// The call sites that waited, or that blocked other threads.
#[must_use]
pub fn sites(profile: &Profile, style: Style) -> String {
    let header = [
        "call site",
        "lock",
        "waits",
        "wait\ntotal",
        "wait\nmax",
        "held\nmax",
        "blocked\nothers",
        "time\nblocked",
    ];
    let names = Names::of(&profile.call_sites);
    // Stacks that differ only in outer frames share a row.
    let mut rows: Vec<(&Lock, Role, String, SiteStats)> = Vec::new();
    let mut known: HashMap<(u32, Role, String), usize> = HashMap::new();
    for (lock, role, site) in all(profile) {
        let at = if site.is_release { " (release)" } else { "" };
        let label = names.label(site.call_site) + at;
        match known.entry((lock.id, role, label.clone())) {
            Entry::Occupied(at) => add_site(&mut rows[*at.get()].3, site),
            Entry::Vacant(free) => {
                free.insert(rows.len());
                rows.push((lock, role, label, site.clone()));
            }
        }
    }
    rows.sort_by_key(|(lock, role, _, site)| order(lock, *role, site));
    let row = |(lock, role, label, site): (&Lock, Role, String, SiteStats)| {
        vec![
            label,
            super::locks::name(lock, role),
            short_count(site.contended),
            time_or_dash(site.wait_total),
            time_or_dash(site.wait_longest),
            time_or_dash(site.hold.measured.longest),
            short_count(site.blocked),
            time_or_dash(site.blocked_total),
        ]
    };
    render(style, "Call sites", &header, 2, (rows.into_iter(), row))
}
