//! What the holder of a lock waits for itself: that comes first, in sentences.

use std::collections::BTreeMap;

use crate::answer::named;
use crate::model::{HeldWait, Kind, Lock, Profile, Role};
use crate::units::{percent, time};

/// It is said if the holder waited for this part of the time for which the lock was held, or of that for which others waited.
const SAID: f64 = 0.1;

/// `Who held the mutex `table` waited meanwhile for the mutex `log`, for 1.20 s, 82 % of the time for which it was held: …`
pub(crate) fn inner(profile: &Profile, top: &Lock) -> Option<String> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for waits in profile.held_waits.iter().filter(|waits| waits.outer == top.id && waits.lock != top.id) {
        // The way back from a condition variable is no wait for a signal, and may be none for a lock.
        if waits.role.is_lock() || waits.role == Role::Signal {
            *sums.entry(waits.lock).or_default() += waits.wait_total;
        }
    }
    let (lock, waited) = sums.into_iter().max_by_key(|(_, waited)| *waited)?;
    let inner = profile.lock(lock)?;
    let is_of = |number: u32| [lock, top.id].contains(&number);
    if profile.deadlocks.iter().flatten().any(|index| is_of(profile.waiting[*index].lock)) {
        return None;
    }
    let locked = [Role::Write, Role::Read].into_iter().filter_map(|role| top.role(role));
    let (mut held, mut is_whole, mut is_estimate) = (0, true, false);
    for stats in locked {
        held += stats.hold.total;
        is_estimate |= stats.hold.is_estimate();
        is_whole &= stats.hold.is_estimate() || stats.hold.measured.count >= stats.acquisitions;
    }
    // Others may have waited for the holder all the time, or only one of them.
    let base = if is_whole { held } else { held.max(top.lock_wait()) };
    if base == 0 || (waited as f64) < SAID * base as f64 {
        return None;
    }
    // A hold that has not ended is not in the sum.
    let has_ended = profile.waiting.iter().all(|wait| wait.lock != lock);
    let part = waited as f64 / held.max(1) as f64;
    let part = if is_whole && has_ended && part <= 1.0 {
        let about = if is_estimate { "about " } else { "" };
        format!(", {about}{} of the time for which it was held", percent(part))
    } else {
        String::new()
    };
    let outer = match top.label.strip_suffix(" locks)").and_then(|label| label.rsplit_once(" (")) {
        Some((class, count)) => format!("one of the {count} locks of `{class}`"),
        None => format!("the {} {}", top.kind.noun(), named(top)),
    };
    let (what, name, time) = (inner.kind.noun(), named(inner), time(waited as f64));
    let is_both_ways = profile.held_waits.iter().any(|other| (other.outer, other.lock) == (lock, top.id));
    Some(if inner.kind == Kind::Condvar {
        format!(
            "Who held {outer} waited meanwhile for a signal of the {what} {name}, for {time}{part}: nothing should be held in \
             such a wait but the mutex that belongs to it."
        )
    } else {
        let advice = if is_both_ways { "" } else { ": that one comes first" };
        format!("Who held {outer} waited meanwhile for the {what} {name}, for {time}{part}{advice}.")
    })
}

/// A row of a table.
pub(crate) struct Row {
    /// What was held.
    pub(crate) outer: String,
    /// What was waited for.
    pub(crate) wanted: String,
    pub(crate) waits: HeldWait,
}

/// The waits with a lock held that others wanted, too; with deadlines and without in one row.
pub(crate) fn rows(profile: &Profile) -> Vec<Row> {
    let label = |lock: u32| profile.lock(lock).map_or_else(|| String::from("?"), |lock| lock.label.clone());
    let is_wanted = |waits: &&HeldWait| {
        profile.lock(waits.outer).is_none_or(|lock| lock.roles.iter().any(|stats| stats.contended > 0))
    };
    let mut rows: Vec<Row> = Vec::new();
    for waits in profile.held_waits.iter().filter(is_wanted) {
        let is_same = |row: &&mut Row| {
            let other = &row.waits;
            (other.outer, other.outer_role, other.lock, other.role)
                == (waits.outer, waits.outer_role, waits.lock, waits.role)
        };
        if let Some(row) = rows.iter_mut().find(is_same) {
            row.waits.add(waits);
            continue;
        }
        let wanted = label(waits.lock);
        let wanted = match waits.role {
            Role::Signal => format!("a signal of {wanted}"),
            Role::Back | Role::Late => format!("the way back from {wanted}"),
            Role::Read => format!("{wanted}, read"),
            Role::Write => wanted,
        };
        let read = if waits.outer_role == Role::Read { ", read" } else { "" };
        rows.push(Row { outer: label(waits.outer) + read, wanted, waits: waits.clone() });
    }
    rows
}

/// Two locks, each of which was waited for with the other one held, so that two threads can wait for each other.
pub(crate) fn two_orders(profile: &Profile) -> Option<String> {
    // Who has a deadline does not wait for ever.
    let is_one = |waits: &&HeldWait| waits.role.is_lock() && !waits.is_timed && waits.lock != waits.outer;
    let waits = || profile.held_waits.iter().filter(is_one);
    let are_readers = |held: &HeldWait, wanted: &HeldWait| {
        held.outer_role == Role::Read && wanted.role == Role::Read // they do not exclude each other
    };
    let is_other_way = |one: &&HeldWait, other: &&HeldWait| {
        (other.lock, other.outer) == (one.outer, one.lock)
            && !are_readers(one, other)
            && !are_readers(other, one)
            // One thread does not wait for itself.
            && (one.thread.is_none() || one.thread != other.thread)
    };
    let is_deadlock = |waits: &&HeldWait| {
        profile.deadlocks.iter().flatten().any(|index| profile.waiting[*index].lock == waits.lock)
    };
    let pair = waits().find(|one| !is_deadlock(one) && waits().any(|other| is_other_way(one, &other)))?;
    let name = |lock: u32| profile.lock(lock).map(|lock| format!("{} {}", lock.kind.noun(), named(lock)));
    Some(format!(
        "Threads waited for the {0} with the {1} held, and the other way round: taken in two orders they can deadlock, \
         unless something else prevents that.",
        name(pair.lock)?,
        name(pair.outer)?
    ))
}
