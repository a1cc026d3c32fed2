//! What the time waited for a lock was: held by other threads, free while its next owner woke up, or held by
//! a thread that had no CPU; and for how much of the run the lock was held. In sentences.

use spinpark_measure::text::units::{count, percent_in_words as percent, time};

use crate::model::{Bound, Lock, LocksOf, Pair, Profile, Role, RoleStats, Split};

/// A share that is not known is reported from here on,
const UNKNOWN: f64 = 0.01;
/// and if it is larger than this, nothing else is.
const TOO_MUCH: f64 = 0.5;
/// Shorter sections alone help above this utilisation.
const SATURATED: f64 = 0.9;
/// Holders without a CPU are reported from this share of the time waited on.
const NO_CPU: f64 = 0.05;
/// More of the time waited than this must have been watched for that.
const WATCHED: f64 = 0.001;

/// The split of all waiting for a lock.
pub(crate) fn of(lock: &Lock) -> Split {
    let roles = lock.roles.iter().filter(|stats| stats.role.is_lock());
    roles.fold(Split::default(), |sum, stats| sum.and(stats.split))
}

/// Share of the recording in which one thread or another held the lock, as far as it is known.
fn used(lock: &Lock) -> Option<&RoleStats> {
    lock.roles.iter().find(|stats| stats.role == Role::Write && stats.utilisation.is_some())
}

/// For the lock that was waited for most: the sentences.
pub(crate) fn sentences(profile: &Profile, lock: &Lock) -> Vec<String> {
    let split = of(lock);
    let all = (split.held + split.free + split.unknown) as f64;
    if all == 0.0 || profile.is_partial() || profile.locks_of == LocksOf::Library {
        return Vec::new();
    }
    // What waits that have not ended are for is said of each.
    let unfinished = profile.waiting.iter().filter(|wait| wait.lock == lock.id && wait.role.is_lock());
    if unfinished.map(|wait| wait.time).sum::<u64>() as f64 > 0.5 * all {
        return Vec::new();
    }
    let pairs = profile.pairs.iter().filter(|pair| pair.lock == lock.id && pair.role.is_lock());
    let unseen = pairs.filter(|pair| pair.out_of_sight.is_some()).map(Pair::held).sum::<u64>();
    let holder = match unseen as f64 > 0.5 * all {
        true => "A holder out of sight",
        false => "Another thread",
    };
    let mut said = Vec::new();
    let unknown = split.unknown as f64 / all;
    if unknown > TOO_MUCH {
        said.push(format!(
            "For {} of this time it is not known whether the lock was held or free.",
            percent(unknown)
        ));
        return said;
    }
    let free = split.free as f64 / all;
    // Of threads that left their acquisitions out, those that barged in are not seen.
    let moments = if profile.recorder.left_out > 0 { ", but for moments" } else { "" };
    let rest = match unknown {
        unknown if unknown >= UNKNOWN => format!("; for {} that is not known", percent(unknown)),
        _ => String::new(),
    };
    let (crowd, advice) = crowd(profile);
    if free > 0.5 {
        said.push(format!(
            "For {} of this time ({}) no thread held the lock{moments}: its next owners woke late{}, or had no CPU{crowd}. For {} another \
             thread held it{rest}.",
            percent(free),
            time(split.free as f64),
            slept(lock),
            percent(split.held as f64 / all)
        ));
    } else if split.free == 0 && split.unknown == 0 {
        said.push(format!("{holder} held the lock for all of this time."));
    } else if lock.is_slept_for() || split.free == 0 {
        said.push(format!(
            "{holder} held the lock for {} of this time{rest}.",
            percent(split.held as f64 / all)
        ));
    } else {
        said.push(format!(
            "{holder} held the lock for {} of this time. For {} it was free, while its next owner woke up{rest}.",
            percent(split.held as f64 / all),
            percent(free)
        ));
    }
    said.extend(no_cpu(profile, &split));
    said.extend(used(lock).and_then(saturated));
    if free > 0.5 {
        said.push(advice.to_owned());
    }
    said
}

/// Of the time waited: the holder was ready to run, without a CPU; 0 if too little was watched.
pub(crate) fn share_without_cpu(split: &Split) -> f64 {
    let all = (split.held + split.free + split.unknown) as f64;
    let watched = split.watched as f64;
    if watched == 0.0 || watched < WATCHED * all {
        return 0.0;
    }
    // The watched waits stand for all.
    split.no_cpu as f64 / watched * split.held as f64 / all
}

fn no_cpu(profile: &Profile, split: &Split) -> Option<String> {
    let part = share_without_cpu(split);
    let (crowd, _) = crowd(profile);
    (part >= NO_CPU).then(|| {
        let sure = if split.watched >= split.held { "" } else { "about " };
        format!(
            "For {sure}{} of this time the holder was ready to run, but had no CPU{crowd}.",
            percent(part)
        )
    })
}

/// Only above 90 %: below it other things limit the program, too.
fn saturated(stats: &RoleStats) -> Option<String> {
    let share = stats.utilisation?;
    let mark = match stats.held()?.bound {
        Bound::AtLeast => "at least ",
        Bound::About => "about ",
        Bound::Exact => "",
    };
    (share >= SATURATED).then(|| {
        format!(
            "It was held {mark}{} of the run: no more throughput without shorter sections.",
            percent(share)
        )
    })
}

/// The share of the CPUs that other programs used, if it was large.
pub(crate) fn cpus_of_others(profile: &Profile) -> Option<f64> {
    /// From here on.
    const LARGE: f64 = 0.2;
    let observed = profile.observed.as_ref()?;
    let all = f64::from(profile.cpus) * observed.duration as f64;
    let share = (observed.cpu_of_others? as f64 / all.max(1.0)).min(1.0);
    (profile.cpus > 0 && share >= LARGE).then_some(share)
}

/// ` (3 threads, 2 CPUs)` if there are more threads than CPUs, and what to do.
pub(crate) fn crowd(profile: &Profile) -> (String, &'static str) {
    // One that comes takes over the table of one that has ended, if there is any: so there were no more at a
    // time than tables.
    let threads = profile.threads.len() as u64;
    let is_reused = profile.threads.iter().any(|thread| thread.users > 1);
    let (at_most, at_a_time) = if is_reused { ("at most ", " at a time") } else { ("", "") };
    let cpus = u64::from(profile.cpus);
    if let Some(share) = cpus_of_others(profile) {
        (
            format!(" (other programs used {} of the {} CPUs)", percent(share), count(cpus)),
            "Record again while the machine is idle.",
        )
    } else if cpus > 0 && threads > cpus {
        (
            format!(" ({at_most}{} threads{at_a_time}, {} CPUs)", count(threads), count(cpus)),
            "Run fewer threads; `spinpark compare` shows whether other locks help.",
        )
    } else {
        (String::new(), "`spinpark compare` shows whether other locks help.")
    }
}

/// ` (70 % of the waits slept)`, if that is known.
fn slept(lock: &Lock) -> String {
    let sum = |of: fn(&RoleStats) -> u64| {
        lock.roles.iter().filter(|stats| stats.role.is_lock()).map(of).sum::<u64>()
    };
    match (sum(|stats| stats.outcomes.parked + stats.outcomes.handed_over), sum(|stats| stats.contended)) {
        (0, _) | (_, 0) => String::new(),
        (sleepers, waits) => format!(" ({} of the waits slept)", percent(sleepers as f64 / waits as f64)),
    }
}
