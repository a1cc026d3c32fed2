//! What was sampled, as a [`Profile`].

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{End, MOMENT, Place, Sampler, held_by};
use crate::attach::access::Status;
use crate::attach::gil::{self, ForGil};
use crate::attach::object::Held;
use crate::attach::python::GIL;
use crate::attach::snapshot::cycles;
use crate::attach::thread_now::{State, ThreadNow};
use crate::model::{
    CallSite, CallSiteId, Detail, FORMAT, Holder, HolderTime, Lock, LocksOf, Observed, OutOfSight, Pair,
    Profile, RecordingEnd, Role, RoleStats, Sampling, SiteStats, Split, Strip, Thread, Threads, Times,
    VERSION, Waiting, Warning,
};
use crate::stuck;

/// Parts of the strip.
const PARTS: u64 = 60;

impl Sampler {
    /// What was seen so far.
    #[must_use]
    pub fn profile(&mut self) -> Profile {
        self.settle();
        let pid = self.target.pid;
        let (locks, numbers) = self.locks();
        let mut pairs: Vec<Pair> = Vec::new();
        for ((which, role, waiter, holder), time) in self.waits() {
            pairs.push(Pair {
                lock: numbers[which],
                role: *role,
                waiter: *waiter,
                holder: *holder,
                wait_total: time,
                ..Pair::default()
            });
        }
        pairs.sort_by_key(|pair| (pair.role.rank(), Reverse(pair.wait_total)));
        let threads = self.threads.iter().map(|(id, seen)| Thread {
            id: *id,
            name: seen.name.clone(),
            users: 1,
            time: seen.whole_time().total(),
            has_ended: seen.last.is_none(),
            waited: seen.waited,
            signals: seen.signals,
            others: seen.others,
            unclear: seen
                .unclear
                .iter()
                .filter_map(|(which, time)| Some((*numbers.get(which)?, *time)))
                .collect(),
            ..Thread::default()
        });
        let threads: Vec<Thread> = threads.collect();
        let (waiting, deadlocks) = self.waiting(&numbers);
        let part = (self.at / PARTS).max(1);
        let mut strip = Strip { part, waited: vec![0; usize::try_from(PARTS).unwrap_or(0) + 1] };
        for (at, waited) in &self.strip {
            if let Some(slot) = usize::try_from(at / part).ok().and_then(|at| strip.waited.get_mut(at)) {
                *slot += waited;
            }
        }
        let mut holders: Vec<HolderTime> = self
            .holders
            .iter()
            .map(|((which, (kind, doing)), time)| HolderTime {
                lock: numbers[which],
                kind: *kind,
                doing: doing.clone(),
                time: *time,
            })
            .collect();
        holders.sort_by_key(|holder| Reverse(holder.time));
        let is_lost = matches!(self.ended, Some(End::Replaced | End::Forbidden));
        let warnings = self.end().filter(|_| is_lost).map(Warning::Loss);
        let why_not = self.known.why_not().map(|why| Warning::Note(why.to_owned()));
        let status = Status::read(Path::new(&format!("/proc/{pid}"))).ok();
        let parent = status.as_ref().and_then(|status| status.numbers("PPid").first().copied());
        Profile {
            format: String::from(FORMAT),
            version: VERSION,
            program: self.target.program().to_owned(),
            arguments: arguments(pid),
            pid,
            parent: parent.unwrap_or(0),
            recording: format!("{pid}.sampled"),
            started: self.started,
            duration: self.at,
            ended: match self.ended {
                Some(End::Exited) => RecordingEnd::Exited,
                Some(End::Replaced) => RecordingEnd::Killed,
                Some(End::Forbidden) | None => RecordingEnd::Running,
            },
            ended_by: (self.ended == Some(End::Replaced))
                .then(|| String::from("became another program (exec)")),
            warnings: warnings.into_iter().chain(why_not).collect(),
            detail: Detail::Contended,
            locks_of: if self.target.has_loaded("libspinpark_preload.so") {
                LocksOf::Spinpark
            } else {
                LocksOf::Glibc
            },
            cpus: u32::try_from(std::thread::available_parallelism().map_or(0, usize::from)).unwrap_or(0),
            threads,
            call_sites: self.call_sites.clone(),
            modules: self.symbols.modules(&self.call_sites),
            locks,
            pairs,
            waiting,
            deadlocks,
            strip,
            sampling: Some(Sampling {
                interval: self.at / self.snapshots.max(1),
                snapshots: self.snapshots,
                found: self.strip.len() as u64,
                independent: self.batches.independent().map_or(0, |number| number.max(1.0) as u64),
                cost: u64::try_from(self.cost.as_nanos()).unwrap_or(u64::MAX),
                holders,
            }),
            observed: Some(self.observed()),
            ..Profile::default()
        }
    }

    /// What was waited, and for how long.
    fn waits(&self) -> impl Iterator<Item = (&Place, u64)> {
        self.waits.iter().map(|(place, sum)| (place, self.sums[*sum])).filter(|(_, time)| *time > 0)
    }

    /// The locks, those with most waiting first, and their numbers.
    fn locks(&self) -> (Vec<Lock>, BTreeMap<usize, u32>) {
        let mut sums: BTreeMap<usize, BTreeMap<Role, BTreeMap<CallSiteId, u64>>> = BTreeMap::new();
        for ((which, role, site, _), time) in self.waits() {
            *sums.entry(*which).or_default().entry(*role).or_default().entry(*site).or_default() += time;
        }
        let total = |roles: &BTreeMap<Role, BTreeMap<CallSiteId, u64>>| -> u64 {
            roles.values().flat_map(BTreeMap::values).sum()
        };
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, roles)| Reverse(total(roles)));
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let (mut locks, mut numbers) = (Vec::new(), BTreeMap::new());
        for (id, (which, roles)) in (1..).zip(sums) {
            let (address, name, kind) = &self.whiches[which];
            numbers.insert(which, id);
            let site = roles.values().flatten().max_by_key(|(_, time)| **time).map(|(site, _)| *site);
            // That there is one of it, its name says.
            let is_type = name.as_ref().is_some_and(|name| name.contains(' ') && name != GIL);
            let label = match name {
                Some(name) => name.clone(),
                None => site
                    .and_then(|site| self.call_sites.get(site))
                    .filter(|site| !site.frames.is_empty())
                    .map_or_else(|| kind.noun().to_owned(), |site| format!("in {}", site.label())),
            };
            let number = counts.entry(label.clone()).or_default();
            *number += 1;
            let label = if *number > 1 { format!("{label} #{number}") } else { label };
            let roles = roles.iter().map(|(role, sites)| {
                let mut sites: Vec<SiteStats> = sites
                    .iter()
                    .map(|(site, time)| SiteStats {
                        call_site: *site,
                        wait_total: *time,
                        ..SiteStats::default()
                    })
                    .collect();
                sites.sort_by_key(|site| (Reverse(site.wait_total), site.call_site));
                RoleStats {
                    role: *role,
                    wait: Times { total: sites.iter().map(|site| site.wait_total).sum(), ..Times::default() },
                    split: Split::default(),
                    sites,
                    ..RoleStats::default()
                }
            });
            locks.push(Lock {
                id,
                label,
                name: name.clone().filter(|_| !is_type),
                address: *address,
                kind: *kind,
                type_name: name.clone().filter(|_| is_type),
                roles: roles.collect(),
                ..Lock::default()
            });
        }
        locks.sort_by_key(Lock::order);
        (locks, numbers)
    }

    /// The waits in the last snapshot that are in a cycle, or for locks and long; and the cycles.
    fn waiting(&mut self, numbers: &BTreeMap<usize, u32>) -> (Vec<Waiting>, Vec<Vec<usize>>) {
        // The places of holders are shown, too.
        let now = |id: u32| self.threads.get(&id)?.last.as_ref();
        let holders = self.threads.values().filter_map(|seen| now(seen.last.as_ref()?.wait()?.holder()?));
        let places: Vec<Arc<CallSite>> = holders.filter_map(|holder| holder.place.clone()).collect();
        places.into_iter().for_each(|place| _ = self.number(place));
        let lock = |thread: &ThreadNow| {
            let State::Waits(wait) = &thread.state else { return None };
            let which = (wait.address, wait.name.clone(), wait.kind);
            numbers.get(self.which_numbers.get(&which)?).copied()
        };
        let is_known = |thread: &ThreadNow| lock(thread).is_some();
        let last = self.threads.values().filter_map(|seen| {
            let lasts = |wait: &&ForGil| wait.lasts(|id| self.blocked_since(id));
            let for_gil = seen.for_gil.as_ref().filter(lasts).map(|wait| (&wait.thread, wait.since));
            for_gil.or(seen.last.as_ref().map(|last| (last, seen.since)))
        });
        let mut last: Vec<(ThreadNow, u64)> = last
            .filter(|(thread, _)| is_known(thread))
            .map(|(thread, since)| (thread.clone(), self.at.saturating_sub(since)))
            .collect();
        last.sort_by_key(|(thread, time)| (Reverse(*time), thread.id));
        let mut threads: Vec<ThreadNow> = last.iter().map(|(thread, _)| thread.clone()).collect();
        let task = |id: u32| self.threads.get(&id)?.followed.task.as_ref();
        let for_gil = gil::waiters(&self.target, self.known.python(), &mut threads, task);
        threads.iter_mut().for_each(|thread| thread.stays |= for_gil.contains(&thread.id));
        let stays = |index: &usize| {
            let (thread, time) = &last[*index];
            let is_still = || task(thread.id).is_some_and(|task| self.target.stays(task));
            *time >= MOMENT && (for_gil.contains(&thread.id) || is_still())
        };
        // What it waits for and what it has is sure of a thread that has not run since.
        let cycles: Vec<Vec<usize>> =
            cycles(&threads).into_iter().filter(|cycle| cycle.iter().all(stays)).collect();
        let long = stuck::long(self.at);
        let is_shown = |index: &usize| {
            let (thread, time) = &last[*index];
            cycles.iter().flatten().any(|other| other == index) || thread.lock().is_some() && *time >= long
        };
        let shown: Vec<usize> = (0..last.len()).filter(is_shown).collect();
        let waiting = shown.iter().filter_map(|index| {
            let (thread, time) = &last[*index];
            let wait = thread.wait()?;
            let (id, out_of_sight) = match wait.held {
                Held::Thread(id) | Held::Perhaps(id) => (Some(id), None),
                Held::Gone(id) => (Some(id), Some(OutOfSight::Ended)),
                Held::Process(id) => (Some(id), Some(OutOfSight::Process)),
                _ => (None, None),
            };
            let now = id.and_then(|id| self.threads.get(&id)?.last.as_ref());
            let place = now.and_then(|now| self.numbers.get(&**now.place.as_ref()?)).copied();
            let holder = Holder {
                thread: id,
                call_site: place,
                is_sure: !matches!(wait.held, Held::Perhaps(_)),
                doing: now.filter(|_| place.is_none()).map(|now| held_by(wait.held, Some(now)).1),
                out_of_sight,
            };
            Some(Waiting {
                thread: thread.id,
                lock: lock(thread)?,
                role: wait.role,
                call_site: thread.place.as_ref().and_then(|place| self.numbers.get(&**place)).copied(),
                time: *time,
                is_timed: wait.is_timed,
                holder: id.is_some().then_some(holder),
            })
        });
        let place = |index: &usize| shown.iter().position(|other| other == index);
        let cycles = cycles.iter().map(|cycle| cycle.iter().filter_map(place).collect());
        (waiting.collect(), cycles.collect())
    }

    fn observed(&self) -> Observed {
        /// ns.
        const MOMENT: u64 = 100_000_000;
        let mut all =
            Threads { number: u32::try_from(self.threads.len()).unwrap_or(u32::MAX), ..Threads::default() };
        for (id, seen) in &self.threads {
            all.samples += seen.snapshots;
            if seen.is_idle() && self.at > MOMENT {
                all.idle += 1;
                all.idle_ids.push(*id);
                all.idle_time.add(&seen.whole_time());
            } else {
                all.time.add(&seen.whole_time());
            }
        }
        Observed {
            duration: self.at,
            interval: self.at / self.snapshots.max(1),
            cost: u64::try_from(self.cost.as_nanos()).unwrap_or(u64::MAX),
            cpu_seen: all.time.running + all.idle_time.running,
            seen: self.at,
            threads: all,
            ..Observed::default()
        }
    }
}

fn arguments(pid: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = text.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut words: Vec<String> = words.collect();
    words.pop();
    words
}
