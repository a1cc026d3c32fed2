//! What the holder of a lock waits for itself: that comes first, in sentences.

use std::collections::BTreeMap;

use crate::answer::named;
use crate::model::{HeldWait, Kind, Lock, Profile, Role};
use crate::units::{percent, time};

/// It is said if the holder waited for this part of the time for which the lock was held, or of that for which others waited.
const SAID: f64 = 0.1;

/// `Who held it waited itself meanwhile for the mutex `log_lock`, for 1.20 s: 82 % of the time for which it was held.`
pub(crate) fn inner(profile: &Profile, top: &Lock) -> Option<String> {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for waits in profile.held_waits.iter().filter(|waits| waits.outer == top.id) {
        let (all, signals) = sums.entry(waits.lock).or_default();
        *all += waits.wait_total;
        *signals += if waits.role.is_lock() { 0 } else { waits.wait_total };
    }
    let (lock, (waited, signals)) = sums.into_iter().max_by_key(|(_, (waited, _))| *waited)?;
    let inner = profile.lock(lock)?;
    let locked = [Role::Write, Role::Read].into_iter().filter_map(|role| top.role(role));
    let (held, is_whole) = locked.fold((0, true), |(held, is_whole), stats| {
        let knows_all = stats.hold.is_estimate() || stats.hold.measured.count >= stats.acquisitions;
        (held + stats.hold.total, is_whole && knows_all)
    });
    // Others may have waited for the holder all the time, or only one of them.
    let base = if is_whole { held } else { held.max(top.lock_wait()) };
    if base == 0 || (waited as f64) < SAID * base as f64 {
        return None;
    }
    let part = waited as f64 / held.max(1) as f64;
    let part = if is_whole && part <= 1.0 {
        format!(", {} of the time for which it was held", percent(part))
    } else {
        String::new()
    };
    let (what, name, time) = (inner.kind.noun(), named(inner), time(waited as f64));
    Some(if inner.kind == Kind::Condvar || signals > waited / 2 {
        format!(
            "Who held it waited meanwhile for a signal of the {what} {name}, for {time}{part}: \
             nothing should be held in such a wait but the mutex that belongs to it."
        )
    } else {
        format!(
            "Who held it waited meanwhile itself for the {what} {name}, for {time}{part}: that one comes first."
        )
    })
}

/// A row of a table.
pub(crate) struct Row<'a> {
    /// What was held.
    pub(crate) outer: String,
    /// What was waited for.
    pub(crate) wanted: String,
    pub(crate) waits: &'a HeldWait,
}

/// The waits with a lock held that others wanted, too.
pub(crate) fn rows(profile: &Profile) -> Vec<Row<'_>> {
    let label = |lock: u32| profile.lock(lock).map_or_else(|| String::from("?"), |lock| lock.label.clone());
    let is_wanted = |waits: &&HeldWait| {
        profile.lock(waits.outer).is_none_or(|lock| lock.roles.iter().any(|stats| stats.contended > 0))
    };
    let row = |waits| {
        let &HeldWait { outer, lock, role, .. } = waits;
        let wanted = label(lock);
        let wanted = match role {
            Role::Signal => format!("a signal of {wanted}"),
            Role::Back | Role::Late => format!("the way back from {wanted}"),
            Role::Read => format!("{wanted}, read"),
            Role::Write => wanted,
        };
        Row { outer: label(outer), wanted, waits }
    };
    profile.held_waits.iter().filter(is_wanted).map(row).collect()
}

/// Two locks, each of which was waited for with the other one held: taken in two orders.
pub(crate) fn two_orders(profile: &Profile) -> Option<String> {
    let is_lock = |waits: &&HeldWait| waits.role.is_lock() && waits.lock != waits.outer;
    let locks = || profile.held_waits.iter().filter(is_lock);
    let is_other_way = |one: &HeldWait| {
        locks().any(|other| (other.lock, other.outer) == (one.outer, one.lock))
            && !profile.deadlocks.iter().flatten().any(|index| profile.waiting[*index].lock == one.lock)
    };
    let pair = locks().find(|waits| is_other_way(waits))?;
    let name = |lock: u32| profile.lock(lock).map(|lock| format!("{} {}", lock.kind.noun(), named(lock)));
    Some(format!(
        "Threads waited for the {0} with the {1} held, and the other way round: taken in two orders they can deadlock, \
         unless a third lock prevents that.",
        name(pair.lock)?,
        name(pair.outer)?
    ))
}
