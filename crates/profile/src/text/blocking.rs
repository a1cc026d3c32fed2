//! Call sites of waiters and of holders, in pairs.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Style, render};
use crate::model::{Pair, Profile};
use crate::names::Names;
use crate::units::{percent, short_count, time};

/// The pairs of waiter and holder, those with the longest waiting first, returns from condition variables last. Waiting for
/// signals has no holder and is left out.
#[must_use]
pub fn blocking(profile: &Profile, style: Style) -> String {
    let names = Names::of(&profile.call_sites);
    let holder = |pair: &Pair| {
        let at = if pair.is_release { " (release)" } else { "" };
        pair.holder.map_or_else(|| String::from("not known"), |call_site| names.label(call_site) + at)
    };
    // Stacks that differ only in outer frames share a row.
    let mut rows: Vec<(String, String, Pair)> = Vec::new();
    let mut known: HashMap<(u32, String, String), usize> = HashMap::new();
    for pair in profile.pairs.iter().filter(|pair| pair.role.has_holder()) {
        let (waiter, holder) = (names.label(pair.waiter), holder(pair));
        match known.entry((pair.lock, waiter.clone(), holder.clone())) {
            Entry::Occupied(at) => {
                let sum = &mut rows[*at.get()].2;
                sum.count += pair.count;
                sum.wait_total += pair.wait_total;
                sum.wait_longest = sum.wait_longest.max(pair.wait_longest);
                sum.free += pair.free;
            }
            Entry::Vacant(free) => {
                free.insert(rows.len());
                rows.push((waiter, holder, pair.clone()));
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
            short_count(pair.count),
            time(pair.wait_total as f64),
            time(pair.wait_longest as f64),
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
