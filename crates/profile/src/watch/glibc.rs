//! The locks of glibc's own at which threads were seen sleeping, as locks of a profile.
//!
//! They are sampled: how long threads slept for them, and where, is known; how often, and which thread held
//! them, is not. A thread that was woken and waits for a CPU, or for its turn once more, is not seen as one that waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::lock_waits::LockWaits;
use crate::glibc_locks;
use crate::maps::Maps;
use crate::model::{
    CallSite, CallSiteId, Kind, Lock, Observed, Pair, Profile, Role, RoleStats, Sampled, SiteStats, Split,
    Times,
};
use crate::symbols::Symbols;

/// What such locks are called.
const TYPE: &str = "glibc lock";

/// A lock of glibc's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlibcLock {
    /// What it is of: `stdout`.
    pub name: String,
    /// The word at which threads sleep.
    pub address: u64,
    /// Where they did, the longest first.
    pub waits: Vec<GlibcWait>,
}

/// How long threads slept for it at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlibcWait {
    /// The function of glibc that was called there.
    pub function: String,
    /// The place.
    pub call_site: CallSite,
    /// ns.
    pub time: u64,
}

impl GlibcLock {
    /// How long threads slept for it, ns.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.waits.iter().map(|wait| wait.time).sum()
    }
}

/// Which of the waits that were seen in a program, which is `pid` and ran at `at`, are for glibc's own locks, with
/// their names.
pub(super) fn locks_of(waits: &LockWaits, (pid, at): (u32, u64), symbols: &mut Symbols) -> Vec<GlibcLock> {
    symbols.begin(pid, at);
    let maps = Maps::new(&waits.maps);
    let mut locks: BTreeMap<(String, u64), BTreeMap<(String, CallSiteKey), GlibcWait>> = BTreeMap::new();
    for wait in waits.waits.iter().filter(|wait| wait.time > 0) {
        let stack = symbols.unwind(&maps, &wait.thread);
        let mut frames = symbols.frames(&maps, u32::MAX, &stack);
        let place = symbols.glibc_place(&maps, wait.word);
        let called = symbols.called_of_glibc(&maps, &stack);
        let Some(found) = glibc_locks::find(&frames, &place, called.as_deref()) else { continue };
        frames.drain(..found.own);
        let key = (found.function.clone(), key(&frames));
        let lock = locks.entry((found.name, wait.word)).or_default();
        let call_site = CallSite { frames, is_cut: false };
        let nothing = GlibcWait { function: found.function, call_site, time: 0 };
        lock.entry(key).or_insert(nothing).time += wait.time;
    }
    let locks = locks.into_iter().map(|((name, address), waits)| {
        let mut waits: Vec<GlibcWait> = waits.into_values().collect();
        waits.sort_by_key(|wait| Reverse(wait.time));
        GlibcLock { name, address, waits }
    });
    let mut locks: Vec<GlibcLock> = locks.collect();
    locks.sort_by_key(|lock| Reverse(lock.time()));
    locks
}

/// Equal ones are the same place.
type CallSiteKey = Vec<(String, u64)>;

fn key(frames: &[crate::model::Frame]) -> CallSiteKey {
    frames.iter().map(|frame| (frame.module.clone(), frame.offset)).collect()
}

/// The profile without such locks.
pub(super) fn without(profile: Profile) -> Profile {
    let is_sampled = |lock: &&Lock| lock.sampled.is_some();
    let sampled: BTreeSet<u32> = profile.locks.iter().filter(is_sampled).map(|lock| lock.id).collect();
    let locks = profile.locks.into_iter().filter(|lock| !sampled.contains(&lock.id));
    let pairs = profile.pairs.into_iter().filter(|pair| !sampled.contains(&pair.lock));
    Profile { locks: locks.collect(), pairs: pairs.collect(), ..profile }
}

/// The profile with what was seen of its process: `observed`, and the locks `glibcs`.
pub(super) fn with(profile: Profile, observed: Observed, glibcs: &[GlibcLock]) -> Profile {
    if glibcs.is_empty() {
        return Profile { observed: Some(observed), ..profile };
    }
    // As the threads' time is: what was seen stands for the whole recording.
    let is_whole = !observed.is_left && observed.seen > 0;
    let factor = if is_whole { profile.duration as f64 / observed.seen as f64 } else { 1.0 };
    let whole = |time: u64| (time as f64 * factor).round() as u64;
    let first = profile.locks.iter().map(|lock| lock.id + 1).max().unwrap_or(0);
    let (mut locks, mut pairs, mut call_sites) = (profile.locks, profile.pairs, profile.call_sites);
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (id, glibc) in (first..).zip(glibcs) {
        let mut sites: BTreeMap<CallSiteId, u64> = BTreeMap::new();
        for wait in &glibc.waits {
            *sites.entry(call_site(&mut call_sites, &wait.call_site)).or_default() += whole(wait.time);
        }
        let total = sites.values().sum();
        let mut sites: Vec<SiteStats> = sites
            .into_iter()
            .map(|(call_site, wait_total)| SiteStats { call_site, wait_total, ..SiteStats::default() })
            .collect();
        sites.sort_by_key(|site| (Reverse(site.wait_total), site.call_site));
        pairs.extend(sites.iter().map(|site| Pair {
            lock: id,
            role: Role::Write,
            waiter: site.call_site,
            wait_total: site.wait_total,
            ..Pair::default()
        }));
        let number = counts.entry(&glibc.name).or_default();
        *number += 1;
        let number = if *number > 1 { format!(" #{number}") } else { String::new() };
        let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
        glibc.waits.iter().for_each(|wait| *functions.entry(&wait.function).or_default() += wait.time);
        let function = functions.into_iter().max_by_key(|(_, time)| *time).map_or("", |(name, _)| name);
        locks.push(Lock {
            id,
            label: format!("{} (glibc){number}", glibc.name),
            address: glibc.address,
            kind: Kind::Mutex,
            type_name: Some(TYPE.to_owned()),
            sampled: Some(Sampled { of: glibc.name.clone(), function: function.to_owned() }),
            roles: vec![RoleStats {
                role: Role::Write,
                wait: Times { total, ..Times::default() },
                split: Split::default(),
                sites,
                ..RoleStats::default()
            }],
            ..Lock::default()
        });
    }
    locks.sort_by_key(Lock::order);
    pairs.sort_by_key(|pair| (pair.role.rank(), Reverse(pair.held()), Reverse(pair.count)));
    Profile { locks, pairs, call_sites, observed: Some(observed), ..profile }
}

/// The number of a call site, which may be new.
fn call_site(call_sites: &mut Vec<CallSite>, call_site: &CallSite) -> CallSiteId {
    if let Some(known) = call_sites.iter().position(|known| known == call_site) {
        return known;
    }
    call_sites.push(call_site.clone());
    call_sites.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Frame;

    #[test]
    fn locks_of_glibc_are_locks_of_a_profile() {
        let frame = Frame { function: Some(String::from("log_line")), ..Frame::default() };
        let call_site = CallSite { frames: vec![frame], is_cut: false };
        let wait = GlibcWait { function: String::from("printf"), call_site, time: 500 };
        let of = |address| GlibcLock { name: String::from("a FILE"), address, waits: vec![wait.clone()] };
        let mut profile = Profile { duration: 1_000, ..Profile::default() };
        let observed = Observed::default();
        for _ in 0..2 {
            profile = with(without(profile), observed.clone(), &[of(1), of(2)]);
            let labels: Vec<&str> = profile.locks.iter().map(|lock| lock.label.as_str()).collect();
            assert_eq!(labels, ["a FILE (glibc)", "a FILE (glibc) #2"]);
            assert_eq!((profile.lock_wait(), profile.pairs.len(), profile.call_sites.len()), (1_000, 2, 1));
        }
        let profile = without(profile);
        assert_eq!((profile.lock_wait(), profile.pairs.len()), (0, 0));
    }
}
