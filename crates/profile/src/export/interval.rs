//! What a sampler has seen since it was asked last. Its profiles have all since it began, so that no moment is lost
//! between two of them.

use std::collections::HashMap;

use crate::model::{CallSiteId, Kind, Lock, Profile, Role, ThreadTime};

/// A lock in all profiles of a sampler: its address, its name, its kind.
type Which = (u64, String, Kind);

/// What the profile before had.
#[derive(Debug, Default)]
pub struct Interval {
    waits: HashMap<(Which, Role, CallSiteId), u64>,
    holders: HashMap<(Which, String), u64>,
    time: ThreadTime,
    duration: u64,
    snapshots: u64,
    found: u64,
    cost: u64,
}

impl Interval {
    /// `profile`, which is of all since the sampler began or was restarted, with the times of the interval since the
    /// profile before. The time of idle threads is with that of the others: which are idle changes.
    #[must_use]
    pub fn of(&mut self, mut profile: Profile) -> Profile {
        let ids: HashMap<u32, Which> = profile.locks.iter().map(|lock| (lock.id, which(lock))).collect();
        for lock in &mut profile.locks {
            for stats in &mut lock.roles {
                for site in &mut stats.sites {
                    let key = (ids[&lock.id].clone(), stats.role, site.call_site);
                    subtract(&mut site.wait_total, self.waits.entry(key).or_default());
                }
                stats.sites.retain(|site| site.wait_total > 0);
                stats.wait.total = stats.sites.iter().map(|site| site.wait_total).sum();
            }
        }
        if let Some(sampling) = &mut profile.sampling {
            for holder in &mut sampling.holders {
                let Some(which) = ids.get(&holder.lock) else { continue };
                let key = (which.clone(), holder.doing.clone());
                subtract(&mut holder.time, self.holders.entry(key).or_default());
            }
            subtract(&mut sampling.snapshots, &mut self.snapshots);
            subtract(&mut sampling.found, &mut self.found);
            // Of the whole time.
            sampling.independent = 0;
            subtract(&mut sampling.cost, &mut self.cost);
        }
        if let Some(observed) = &mut profile.observed {
            let threads = &mut observed.threads;
            threads.time.add(&threads.idle_time);
            let all = threads.time;
            threads.time.subtract(&self.time);
            (threads.idle_time, self.time) = (ThreadTime::default(), all);
        }
        profile.started = profile.started.saturating_add(self.duration);
        subtract(&mut profile.duration, &mut self.duration);
        profile
    }

    /// The sampler was restarted, or is another one.
    pub fn restart(&mut self) {
        *self = Self::default();
    }
}

/// Leaves what is new of `now`, and keeps all of it for the next time.
fn subtract(now: &mut u64, before: &mut u64) {
    let all = *now;
    *now = all.saturating_sub(*before);
    *before = all;
}

fn which(lock: &Lock) -> Which {
    let name = lock.name.as_ref().or(lock.type_name.as_ref());
    (lock.address, name.cloned().unwrap_or_default(), lock.kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HolderTime, Observed, RoleStats, Sampling, SiteStats, Threads, Times};

    /// Two locks of one name; `times` are the waits for each, at two places each.
    fn profile(times: [[u64; 2]; 2], duration: u64) -> Profile {
        let lock = |(at, times): (usize, [u64; 2])| {
            let site = |(call_site, wait_total)| SiteStats { call_site, wait_total, ..SiteStats::default() };
            let sites: Vec<SiteStats> = times.into_iter().enumerate().map(site).collect();
            let wait = Times { total: times.iter().sum(), ..Times::default() };
            let stats = RoleStats { sites, wait, ..RoleStats::default() };
            Lock { id: 7 - at as u32, address: 64 * at as u64, roles: vec![stats], ..Lock::default() }
        };
        let locks = times.into_iter().enumerate().map(lock).collect();
        let holders = vec![HolderTime {
            lock: 7,
            doing: String::from("ran"),
            time: times[0][0],
            ..HolderTime::default()
        }];
        let time = ThreadTime { locks: times[0][0], ..ThreadTime::default() };
        let idle_time = ThreadTime { signals: duration, ..ThreadTime::default() };
        let threads = Threads { time, idle_time, ..Threads::default() };
        Profile {
            started: 100,
            duration,
            locks,
            sampling: Some(Sampling { holders, snapshots: duration, found: duration, ..Sampling::default() }),
            observed: Some(Observed { threads, ..Observed::default() }),
            ..Profile::default()
        }
    }

    fn waits(profile: &Profile) -> Vec<Vec<u64>> {
        let sites = |lock: &Lock| lock.roles[0].sites.iter().map(|site| site.wait_total).collect();
        profile.locks.iter().map(sites).collect()
    }

    #[test]
    fn what_is_new() {
        let mut interval = Interval::default();
        let first = interval.of(profile([[10, 0], [3, 4]], 50));
        assert_eq!(waits(&first), [vec![10], vec![3, 4]]);
        assert_eq!((first.started, first.duration), (100, 50));
        let second = interval.of(profile([[25, 1], [3, 4]], 80));
        assert_eq!(waits(&second), [vec![15, 1], vec![]]);
        assert_eq!((second.started, second.duration), (150, 30));
        let sampling = second.sampling.as_ref().expect("it is sampled");
        assert_eq!((sampling.holders[0].time, sampling.snapshots, sampling.found), (15, 30, 30));
        let threads = &second.observed.as_ref().expect("it is observed").threads;
        assert_eq!((threads.time.locks, threads.time.signals, threads.idle_time.total()), (15, 30, 0));
        assert_eq!(second.locks[0].roles[0].wait.total, 16);
        interval.restart();
        assert_eq!(waits(&interval.of(profile([[5, 0], [0, 0]], 10))), [vec![5], vec![]]);
    }
}
