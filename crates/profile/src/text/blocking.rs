//! Call sites of waiters and of holders, in pairs.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Style, render};
use crate::model::{Pair, Profile};
use crate::names::{FREE, Names};
use crate::units::{percent, short_count, time};

/// The pairs of waiter and holder, those with the longest waiting first, returns from condition variables
/// last. Waiting for signals has no holder and is left out.
#[must_use]
pub fn blocking(profile: &Profile, style: Style) -> String {
    let names = Names::of(&profile.call_sites);
    let holder = |pair: &Pair| {
        let at = if pair.is_release { " (release)" } else { "" };
        pair.holder.map_or_else(|| String::from("not known"), |call_site| names.label(call_site) + at)
    };
    // The time in which no thread had the lock has a row of its own.
    let parts = profile.pairs.iter().filter(|pair| pair.role.has_holder()).flat_map(|pair| {
        let is_free = pair.role.is_lock() && pair.free > 0;
        let free = is_free.then(|| Pair { wait_total: pair.free, count: 0, wait_longest: 0, ..pair.clone() });
        let held = if is_free { pair.held() } else { pair.wait_total };
        let held = (pair.count > 0 || held > 0).then(|| Pair { wait_total: held, ..pair.clone() });
        held.map(|held| (holder(pair), held)).into_iter().chain(free.map(|free| (FREE.to_owned(), free)))
    });
    // Stacks that differ only in outer frames share a row.
    let mut rows: Vec<(String, String, Pair)> = Vec::new();
    let mut known: HashMap<(u32, String, String), usize> = HashMap::new();
    for (holder, pair) in parts {
        let waiter = names.label(pair.waiter);
        match known.entry((pair.lock, waiter.clone(), holder.clone())) {
            Entry::Occupied(at) => {
                let sum = &mut rows[*at.get()].2;
                sum.count += pair.count;
                sum.wait_total += pair.wait_total;
                sum.wait_longest = sum.wait_longest.max(pair.wait_longest);
            }
            Entry::Vacant(free) => {
                free.insert(rows.len());
                rows.push((waiter, holder, pair));
            }
        }
    }
    rows.sort_by_key(|(.., pair)| (pair.role.rank(), Reverse(pair.wait_total), Reverse(pair.count)));
    let all = profile.lock_wait().max(1);
    let header = ["waiter", "holder", "lock", "waits", "time", "max", "share"];
    let row = |(waiter, holder, pair): (String, String, Pair)| {
        vec![
            waiter,
            holder,
            profile.lock(pair.lock).map_or_else(|| String::from("?"), |lock| lock.label.clone()),
            if pair.count > 0 { short_count(pair.count) } else { String::from("·") },
            time(pair.wait_total as f64),
            if pair.wait_longest > 0 { time(pair.wait_longest as f64) } else { String::from("–") },
            // Shares are of waits for locks only.
            if pair.role.is_lock() {
                percent(pair.wait_total as f64 / all as f64)
            } else {
                String::from("–")
            },
        ]
    };
    render(style, "Waiters and holders", &header, 3, (rows.into_iter(), row))
}
