//! Who waits for whom: sites of waiters and of holders.

use super::{Style, render};
use crate::model::{Pair, Profile};
use crate::names::Names;
use crate::units::{percent, short_count, time};

/// The longest pairs of waiter and holder. Waiting for signals is nobody's fault, and not in it.
#[must_use]
pub fn blocking(profile: &Profile, style: Style) -> String {
    let pairs = profile.pairs.iter().filter(|pair| pair.role.is_lock());
    let all = profile.lock_wait().max(1);
    let header = ["waits here", "while it is\nheld from", "lock", "waits", "time", "max", "share"];
    let names = Names::of(&profile.places);
    let row = |pair: &Pair| {
        let holder = pair.holder.map_or_else(|| String::from("not known"), |holder| names.label(holder));
        vec![
            names.label(pair.waiter),
            holder,
            profile.lock(pair.lock).map_or_else(|| String::from("?"), |lock| lock.label.clone()),
            short_count(pair.count),
            time(pair.wait_total as f64),
            time(pair.wait_longest as f64),
            percent(pair.wait_total as f64 / all as f64),
        ]
    };
    render(style, "Who waits for whom", &header, 3, (pairs, row))
}
