//! Locks of all processes of a run: workers that are alike have the same locks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::locks::name;
use super::{Style, render};
use crate::model::Profile;
use crate::units::{count, short_count, time};

/// What the processes had of locks with one name.
#[derive(Default)]
struct Sum {
    processes: u64,
    waits: u64,
    /// ns.
    waited: u64,
    longest: u64,
    /// Time waited by holder, ns.
    holders: BTreeMap<String, u64>,
}

/// The table of the locks of all these processes, locks with one name of one program together, those that
/// were waited for most first. Empty if fewer than two processes waited.
#[must_use]
pub fn processes(profiles: &[Profile], style: Style) -> String {
    // A process that called exec has several recordings.
    let waited = profiles.iter().filter(|profile| profile.lock_wait() > 0).map(|profile| profile.pid);
    let waited = waited.collect::<BTreeSet<_>>().len();
    if waited < 2 {
        return String::new();
    }
    let mut sums: BTreeMap<(&str, String), Sum> = BTreeMap::new();
    for profile in profiles {
        let program = profile.program.rsplit('/').next().unwrap_or_default();
        let locks = profile.locks.iter().filter(|lock| lock.kind.is_lock());
        let mut seen = BTreeSet::new();
        for (lock, stats) in locks.flat_map(|lock| lock.roles.iter().map(move |stats| (lock, stats))) {
            if stats.wait.total == 0 {
                continue;
            }
            let name = name(lock, stats.role);
            let sum = sums.entry((program, name.clone())).or_default();
            sum.processes += u64::from(seen.insert(name));
            sum.waits += stats.contended;
            sum.waited += stats.wait.total;
            sum.longest = sum.longest.max(stats.wait.longest);
            for pair in profile.pairs.iter().filter(|pair| pair.lock == lock.id && pair.role == stats.role) {
                let holder = pair.holder.map(|holder| profile.call_sites[holder].function());
                *sum.holders.entry(holder.unwrap_or_else(|| "not known".into())).or_default() += pair.held();
            }
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| Reverse(sum.waited));
    let programs = sums.iter().map(|((program, _), _)| program).collect::<BTreeSet<_>>().len();
    let row = |((program, lock), sum): ((&str, String), Sum)| {
        let holder =
            sum.holders.iter().max_by_key(|(_, waited)| **waited).map_or("–", |(name, _)| name.as_str());
        vec![
            if programs > 1 { format!("{program}: {lock}") } else { lock },
            holder.to_owned(),
            count(sum.processes),
            short_count(sum.waits),
            time(sum.waited as f64),
            time(sum.longest as f64),
        ]
    };
    let title = format!("Locks of all {} processes that waited", count(waited as u64));
    let header = ["lock", "most held by", "processes", "waits", "wait\ntotal", "wait\nmax"];
    render(style, &title, &header, 2, (sums.into_iter(), row))
}
