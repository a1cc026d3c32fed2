//! What the holder of a lock was itself blocked on, in sentences: fix that first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use spinpark_measure::text::units::{short_percent, time};

use crate::model::{HeldWait, Kind, Lock, Profile, Role};
use crate::names::{class, with_noun};

/// Reported if holders were blocked for at least this share of the time that others waited for the lock.
const SAID: f64 = 0.1;
/// What blocked them is to be fixed first if it is at least this share.
const FIRST: f64 = 0.5;
/// A second lock is named if it has at least this share of the first one's time.
const BESIDES: f64 = 0.5;
/// The same of a second call.
const BESIDES_CALL: f64 = 0.2;

/// What the holders of a lock were blocked on, most first: for how much of others' waiting, and their own.
fn blocking<'a>(profile: &'a Profile, top: &Lock) -> Vec<(&'a Lock, u64, u64)> {
    // By what its holders waited for: others' waiting meanwhile, and their own.
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for waits in profile.held_waits.iter().filter(|waits| waits.outer == top.id && waits.lock != top.id) {
        // A return from a condition variable is no wait for a signal, and perhaps none for a lock.
        let is_call = || profile.lock(waits.lock).is_some_and(|lock| lock.kind == Kind::Call);
        if waits.role.is_lock() || waits.role == Role::Signal || is_call() {
            let (blocked, waited) = sums.entry(waits.lock).or_default();
            *blocked += waits.time_blocked;
            *waited += waits.wait_total;
        }
    }
    let mut inner: Vec<(&Lock, u64, u64)> = sums
        .into_iter()
        .filter_map(|(lock, (blocked, waited))| Some((profile.lock(lock)?, blocked, waited)))
        .collect();
    inner.sort_by_key(|(lock, blocked, _)| (Reverse(*blocked), lock.id));
    inner
}

/// What its holders were blocked on most, for which share of the time waited for it, and whether holders of that were
/// blocked on it as well.
pub(crate) fn most<'a>(profile: &'a Profile, top: &Lock) -> Option<(&'a Lock, f64, bool)> {
    let (first, blocked, _) = blocking(profile, top).into_iter().next()?;
    let share = (blocked as f64 / top.lock_wait().max(1) as f64).min(1.0);
    Some((first, share, is_both_ways(profile, top, first)))
}

fn is_both_ways(profile: &Profile, top: &Lock, first: &Lock) -> bool {
    profile.held_waits.iter().any(|other| (other.outer, other.lock) == (first.id, top.id))
}

/// `For about 82 % of the time that threads waited for the mutex `table`, its holder was blocked on the mutex
/// `log` (820 ms in all); …`
pub(crate) fn inner(profile: &Profile, top: &Lock) -> Option<String> {
    let mut inner = blocking(profile, top);
    let blocked: u64 = inner.iter().map(|(_, blocked, _)| blocked).sum();
    let part = blocked as f64 / top.lock_wait().max(1) as f64;
    let &(first, most, _) = inner.first()?;
    let is_of = |number: u32| [first.id, top.id].contains(&number);
    let is_deadlock = profile.deadlocks.iter().flatten().any(|index| is_of(profile.waiting[*index].lock));
    if part < SAID || is_deadlock {
        return None;
    }
    let is_signal = |lock: &Lock| !lock.kind.is_lock() && lock.kind != Kind::Call;
    let of_signal = |lock: &Lock| if lock.kind == Kind::Condvar { "a signal of " } else { "" };
    let is_call = |lock: &Lock| lock.kind == Kind::Call;
    inner.retain(|(lock, blocked, _)| {
        let is_alike = is_signal(lock) == is_signal(first) && is_call(lock) == is_call(first);
        let besides = if is_call(first) { BESIDES_CALL } else { BESIDES };
        is_alike && *blocked as f64 >= besides * most as f64
    });
    inner.truncate(2);
    let shown: u64 = inner.iter().map(|(_, blocked, _)| blocked).sum();
    let part = shown as f64 / top.lock_wait().max(1) as f64;
    let named_inner = |(lock, _, waited): &(&Lock, u64, u64)| {
        if is_call(lock) {
            return format!("`{}` ({} in all)", lock.label, time(*waited as f64));
        }
        let signal = of_signal(lock);
        format!("{signal}the {} ({} in all)", with_noun(lock), time(*waited as f64))
    };
    let what = inner.iter().map(named_inner).collect::<Vec<_>>().join(" and ");
    let outer =
        class(top).map_or_else(|| format!("the {}", with_noun(top)), |class| format!("one of {class}"));
    let advice = match first.kind {
        Kind::Condvar => ". Hold only the condvar's own mutex in such a wait",
        kind if !kind.is_lock() => "",
        _ if part < FIRST || is_both_ways(profile, top, first) => "",
        _ if inner.len() > 1 => "; fix those first",
        _ => "; fix that one first",
    };
    // An estimate, from the numbers of waiters at the beginning and at the end.
    let part =
        if part > 0.95 { String::from("more than 95 %") } else { format!("about {}", short_percent(part)) };
    let blocked = match (is_signal(first), is_call(first)) {
        (true, _) => "waited for",
        (_, true) => "was in",
        _ => "was blocked on",
    };
    Some(format!(
        "For {part} of the time that threads waited for {outer}, its holder {blocked} {what}{advice}."
    ))
}

/// A row of a table.
pub(crate) struct Row {
    /// What was held.
    pub(crate) outer: String,
    /// What was waited for.
    pub(crate) wanted: String,
    pub(crate) waits: HeldWait,
}

/// The waits with a contended lock held, those first that blocked others longest; with deadlines and without
/// in one row.
pub(crate) fn rows(profile: &Profile) -> Vec<Row> {
    let label = |lock: u32| profile.lock(lock).map_or_else(|| String::from("?"), |lock| lock.label.clone());
    let is_wanted = |waits: &&HeldWait| {
        profile.lock(waits.outer).is_none_or(|lock| lock.roles.iter().any(|stats| stats.contended > 0))
    };
    let is_call = |lock: u32| profile.lock(lock).is_some_and(|lock| lock.kind == Kind::Call);
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
            Role::Wake if is_call(waits.lock) => format!("{wanted} (call)"),
            Role::Wake => format!("a wake-up at {wanted}"),
            Role::Back | Role::Late => format!("the return from {wanted}"),
            Role::Read => format!("{wanted}, read"),
            Role::Write => wanted,
        };
        let read = if waits.outer_role == Role::Read { ", read" } else { "" };
        rows.push(Row { outer: label(waits.outer) + read, wanted, waits: waits.clone() });
    }
    rows.sort_by_key(|row| Reverse(row.waits.time_blocked));
    rows
}

/// Two locks, each of which was waited for while the other one was held, so that two threads can deadlock.
pub(crate) fn two_orders(profile: &Profile) -> Option<String> {
    // A wait with a deadline ends.
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
    let name = |lock: u32| profile.lock(lock).map(with_noun);
    Some(format!(
        "Threads waited for the {0} while holding the {1}, and the other way round. Taken in two orders, they can deadlock, \
         unless something else prevents that: take them in one order.",
        name(pair.lock)?,
        name(pair.outer)?
    ))
}
