//! Locks of one creation site as one: a program with a lock per object has thousands of the same kind.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::{
    CallSiteId, Held, HeldWait, Kind, Lock, Nest, Outcomes, Pair, Profile, Role, RoleStats, SampleError,
    SiteStats, Strip, Times,
};

/// The profile with one lock per class ([`Lock::class`]); its label has their number. Everything that
/// shows profiles shows this one too.
///
/// Sums are sums, the longest are the longest; `longest_queue` is that of one lock. Addresses are those of
/// the first lock.
#[must_use]
pub fn by_class(profile: &Profile) -> Profile {
    grouped(profile, 2)
}

/// The same, but locks stay apart of which a class has fewer than `least`.
pub(crate) fn grouped(profile: &Profile, least: usize) -> Profile {
    let mut classes: BTreeMap<(Cow<'_, str>, Kind), Vec<&Lock>> = BTreeMap::new();
    for lock in &profile.locks {
        classes.entry((lock.class(), lock.kind)).or_default().push(lock);
    }
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    let mut merged: Vec<Lock> = Vec::new();
    for ((class, _), members) in classes {
        if members.len() < least {
            merged.extend(members.into_iter().cloned());
            continue;
        }
        let first = members.iter().min_by_key(|lock| lock.id).expect("a class has a lock");
        numbers.extend(members.iter().map(|lock| (lock.id, first.id)));
        let mut lock = (*first).clone();
        if members.len() > 1 {
            lock.label = format!("{class} ({} locks)", members.len());
            lock.is_destroyed = members.iter().all(|lock| lock.is_destroyed);
            lock.roles = roles(&members);
        }
        merged.push(lock);
    }
    merged.sort_by_key(Lock::order);

    type Key = (u32, Role, CallSiteId, Option<CallSiteId>, bool);
    let mut pairs: BTreeMap<Key, Pair> = BTreeMap::new();
    for pair in &profile.pairs {
        let lock = numbers.get(&pair.lock).copied().unwrap_or(pair.lock);
        let nothing = Pair { lock, count: 0, wait_total: 0, wait_longest: 0, free: 0, ..pair.clone() };
        let key = (lock, pair.role, pair.waiter, pair.holder, pair.is_release);
        let sum = pairs.entry(key).or_insert(nothing);
        sum.count += pair.count;
        sum.wait_total += pair.wait_total;
        sum.wait_longest = sum.wait_longest.max(pair.wait_longest);
        sum.free += pair.free;
    }
    let mut pairs: Vec<Pair> = pairs.into_values().collect();
    pairs.sort_by_key(|pair| (pair.role.rank(), Reverse(pair.wait_total), Reverse(pair.count)));
    let mut held_waits: BTreeMap<(u32, u32, Role, Role, bool), HeldWait> = BTreeMap::new();
    for waits in &profile.held_waits {
        let number = |lock: u32| numbers.get(&lock).copied().unwrap_or(lock);
        let (outer, lock) = (number(waits.outer), number(waits.lock));
        let nothing = HeldWait {
            outer,
            lock,
            count: 0,
            wait_total: 0,
            wait_longest: 0,
            time_blocked: 0,
            ..waits.clone()
        };
        let key = (outer, lock, waits.outer_role, waits.role, waits.is_timed);
        held_waits.entry(key).or_insert(nothing).add(waits);
    }
    let mut held_waits: Vec<HeldWait> = held_waits.into_values().collect();
    held_waits.sort_by_key(HeldWait::order);
    let mut nests: BTreeMap<(u32, Role, u32, Role), Nest> = BTreeMap::new();
    for nest in &profile.nests {
        let number = |lock: u32| numbers.get(&lock).copied().unwrap_or(lock);
        let (outer, lock) = (number(nest.outer), number(nest.lock));
        let nothing = Nest { outer, lock, count: 0, wait_total: 0, hold_total: 0, ..*nest };
        let sum = nests.entry((outer, nest.outer_role, lock, nest.role)).or_insert(nothing);
        sum.count += nest.count;
        sum.wait_total += nest.wait_total;
        sum.hold_total += nest.hold_total;
    }
    let mut nests: Vec<Nest> = nests.into_values().collect();
    nests.sort_by_key(|nest| Reverse(nest.count));
    let mut waiting = profile.waiting.clone();
    for wait in &mut waiting {
        wait.lock = numbers.get(&wait.lock).copied().unwrap_or(wait.lock);
    }
    let mut slow_waits = profile.slow_waits.clone();
    for wait in &mut slow_waits {
        wait.lock = numbers.get(&wait.lock).copied().unwrap_or(wait.lock);
    }
    Profile { locks: merged, pairs, held_waits, nests, waiting, slow_waits, ..profile.clone() }
}

fn roles(members: &[&Lock]) -> Vec<RoleStats> {
    let mut roles: BTreeMap<Role, RoleStats> = BTreeMap::new();
    for stats in members.iter().flat_map(|lock| &lock.roles) {
        match roles.get_mut(&stats.role) {
            None => drop(roles.insert(stats.role, stats.clone())),
            Some(sum) => add(sum, stats),
        }
    }
    for stats in roles.values_mut() {
        stats
            .sites
            .sort_by_key(|site| (Reverse(site.wait_total), Reverse(site.blocked_total), site.call_site));
    }
    roles.into_values().collect()
}

/// Adds the same lock of another class or process; call sites are numbered alike.
pub(crate) fn add(sum: &mut RoleStats, other: &RoleStats) {
    sum.acquisitions = sum.acquisitions.saturating_add(other.acquisitions);
    sum.contended = sum.contended.saturating_add(other.contended);
    sum.failed_tries = sum.failed_tries.saturating_add(other.failed_tries);
    add_times(&mut sum.wait, &other.wait);
    add_held(&mut sum.hold, &other.hold);
    add_times(&mut sum.non_critical, &other.non_critical);
    sum.split = sum.split.and(other.split);
    sum.utilisation = None;
    let (error, more) = (&mut sum.error, &other.error);
    *error = SampleError {
        acquisitions: both(error.acquisitions, more.acquisitions),
        contended: both(error.contended, more.contended),
        waited: both(error.waited, more.waited),
    };
    let (outcomes, more) = (&mut sum.outcomes, &other.outcomes);
    *outcomes = Outcomes {
        spun: outcomes.spun.saturating_add(more.spun),
        parked: outcomes.parked.saturating_add(more.parked),
        handed_over: outcomes.handed_over.saturating_add(more.handed_over),
        timed_out: outcomes.timed_out.saturating_add(more.timed_out),
        unknown: outcomes.unknown.saturating_add(more.unknown),
        owner_changed: outcomes.owner_changed.saturating_add(more.owner_changed),
        off_cpu: outcomes.off_cpu.saturating_add(more.off_cpu),
        budget: outcomes.budget.saturating_add(more.budget),
        still_waiting: outcomes.still_waiting.saturating_add(more.still_waiting),
    };
    sum.wake_ups = sum.wake_ups.saturating_add(other.wake_ups);
    sum.longest_queue = sum.longest_queue.max(other.longest_queue);
    sum.strip = Strip::sum([&sum.strip, &other.strip].into_iter());
    for site in &other.sites {
        match sum
            .sites
            .iter_mut()
            .find(|known| (known.call_site, known.is_release) == (site.call_site, site.is_release))
        {
            None => sum.sites.push(site.clone()),
            Some(known) => add_site(known, site),
        }
    }
}

fn add_times(sum: &mut Times, other: &Times) {
    sum.count = sum.count.saturating_add(other.count);
    sum.total = sum.total.saturating_add(other.total);
    sum.longest = sum.longest.max(other.longest);
    let bins = sum.histogram.len().max(other.histogram.len());
    sum.histogram.resize(bins, 0);
    for (bin, more) in sum.histogram.iter_mut().zip(&other.histogram) {
        *bin = bin.saturating_add(*more);
    }
}

/// Errors of independent samples add up as their squares do.
pub(crate) fn both(error: u64, other: u64) -> u64 {
    (error as f64).hypot(other as f64).ceil() as u64
}

fn add_held(sum: &mut Held, other: &Held) {
    add_times(&mut sum.measured, &other.measured);
    sum.total = sum.total.saturating_add(other.total);
    sum.while_waited = sum.while_waited.saturating_add(other.while_waited);
    sum.total_error = both(sum.total_error, other.total_error);
}

pub(crate) fn add_site(sum: &mut SiteStats, other: &SiteStats) {
    sum.acquisitions = sum.acquisitions.saturating_add(other.acquisitions);
    sum.contended = sum.contended.saturating_add(other.contended);
    sum.wait_total = sum.wait_total.saturating_add(other.wait_total);
    sum.wait_longest = sum.wait_longest.max(other.wait_longest);
    add_held(&mut sum.hold, &other.hold);
    sum.blocked = sum.blocked.saturating_add(other.blocked);
    sum.blocked_total = sum.blocked_total.saturating_add(other.blocked_total);
}
