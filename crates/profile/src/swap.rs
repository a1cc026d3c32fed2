//! Which part of the waiting is for locks that the drop-in replaces.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use spinpark_measure::text::units::{short_percent, time};

use crate::model::{Kind, Lock, LocksOf, Profile, Role};

/// Below this share of what is not replaced, nothing is said.
const MUCH: f64 = 0.1;

/// Whether the drop-in has a lock in its place: pthread's and C11's.
fn is_replaced(lock: &Lock) -> bool {
    (lock.type_name.is_none() || lock.is_made)
        && lock.kind.is_lock()
        && !matches!(lock.kind, Kind::Once | Kind::Spin)
}

/// The same of one process' report; of a program that records its own locks there is no sentence.
#[must_use]
pub fn of_one(profile: &Profile) -> Option<String> {
    (profile.locks_of != LocksOf::Library).then(|| sentence(std::slice::from_ref(profile))).flatten()
}

/// `Of 3.2 s waiting for locks, 5 % is for pthread locks, the only ones that spinpark replaces without a
/// rebuild: 80 % is for std Mutex, …`; none if most is for those.
#[must_use]
pub fn sentence(profiles: &[Profile]) -> Option<String> {
    let (mut all, mut replaced) = (0, 0);
    let mut others: BTreeMap<&str, u64> = BTreeMap::new();
    for lock in profiles.iter().flat_map(|profile| &profile.locks) {
        let unclear = lock.role(Role::Wake).map_or(0, |stats| stats.wait.total);
        let waited = lock.lock_wait() + if lock.kind == Kind::Call { 0 } else { unclear };
        all += waited;
        if is_replaced(lock) {
            replaced += waited;
        } else {
            *others.entry(lock.noun()).or_default() += waited;
        }
    }
    let share = |part: u64| part as f64 / all.max(1) as f64;
    if share(all - replaced) < MUCH || all == 0 {
        return None;
    }
    let mut others: Vec<(&str, u64)> =
        others.into_iter().filter(|(_, waited)| share(*waited) >= 0.01).collect();
    others.sort_by_key(|(name, waited)| (Reverse(*waited), *name));
    others.truncate(3);
    let listed: Vec<String> =
        others.iter().map(|(name, waited)| format!("{name} ({})", short_percent(share(*waited)))).collect();
    let replaced = if replaced == 0 { String::from("none") } else { short_percent(share(replaced)) };
    let is_rust =
        others.first().is_some_and(|(name, _)| ["std Mutex", "std RwLock", "std Condvar"].contains(name));
    let advice = if is_rust {
        " In Rust, `spinpark::Mutex` and `spinpark::RwLock` take their place with a change of one line."
    } else {
        ""
    };
    Some(format!(
        "Of {} of waiting for locks, and for what may be locks, {replaced} is for pthread locks, which are all that the drop-in \
         replaces. The rest: {}.{advice}",
        time(all as f64),
        listed.join(", ")
    ))
}
