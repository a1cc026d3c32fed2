//! Where a running process waits, by sampling: snapshots of its threads, some 50 a second, as a [`Profile`].
//!
//! A thread that waits is seen in proportion to how long it does, so that times are unbiased, however short the
//! waits are; how many there were is not known, and not said. A thread that is found blocked counts as blocked in
//! that since the last snapshot, and one that is found on a CPU does not; how long threads were on a CPU or ready
//! for one, the kernel counts. Snapshots are taken less often where they would need more than 2 % of a CPU, but
//! each second.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use spinpark_measure::text::one_line;

use super::access::{Refused, Status};
use super::picture::{Held, Known, State, ThreadNow, Wait, cycles, thread};
use super::target::Target;
use super::task::{Call, Task};
use crate::model::{
    CallSite, CallSiteId, Detail, FORMAT, Holder, HolderTime, Kind, Lock, LocksOf, Observed, OutOfSight,
    Pair, Profile, RecordingEnd, Role, RoleStats, Sampling, SiteStats, Split, Strip, Thread, ThreadTime,
    Threads, Times, VERSION, Waiting,
};
use crate::stuck;
use crate::symbols::Symbols;
use crate::watch::Sched;

/// The part of a CPU that sampling takes at most.
const SHARE: f64 = 0.02;
/// Snapshots between which the files of the process are read again.
const FILES: u64 = 50;
/// Snapshots between which threads that do not run are read again as a whole: a signal may have stopped them.
const WHOLE: u64 = 16;
/// A thread in a deadlock has not run for so long, ns.
const MOMENT: u64 = 100_000_000;
/// Parts of the strip.
const PARTS: u64 = 60;

/// A lock, or another thing that threads wait for: by its address, or by its name.
type Which = (u64, Option<String>, Kind);

/// What was seen of a wait at one place.
type Place = (Which, Role, CallSiteId, Option<CallSiteId>);

/// A thread, over all snapshots.
#[derive(Debug, Default)]
struct Seen {
    name: String,
    time: ThreadTime,
    waited: u64,
    signals: u64,
    others: u64,
    slices: u64,
    snapshots: u64,
    /// As it was found last, and since when it has been so, ns after the start.
    last: Option<ThreadNow>,
    task: Option<Task>,
    /// What it was in, and its times: that changes if it runs.
    was: Option<(Call, Option<Sched>)>,
    since: u64,
    /// For what may be a lock.
    unclear: BTreeMap<Which, u64>,
}

/// Samples a process.
#[derive(Debug)]
pub struct Sampler {
    target: Target,
    symbols: Symbols,
    known: Known,
    interval: Duration,
    begun: Instant,
    started: u64,
    /// When the last snapshot was taken, ns after the start.
    at: u64,
    snapshots: u64,
    cost: Duration,
    /// Of the latest snapshots.
    costs: [Duration; 8],
    /// When the next snapshot is, after the start.
    due: Duration,
    threads: BTreeMap<u32, Seen>,
    call_sites: Vec<CallSite>,
    numbers: HashMap<CallSite, CallSiteId>,
    waits: BTreeMap<Place, u64>,
    /// What the holders of a lock did meanwhile.
    holders: BTreeMap<(Which, String), u64>,
    strip: BTreeMap<u64, u64>,
    has_ended: bool,
}

impl Sampler {
    /// Begins. `interval`: between two snapshots.
    ///
    /// # Errors
    /// If the process has ended meanwhile.
    pub fn new(mut target: Target, symbols: Symbols, interval: Duration) -> Result<Self, Refused> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let started = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut symbols = symbols.with_kept(std::mem::take(&mut target.kept));
        symbols.begin(target.pid, started);
        let mut sampler = Self {
            target,
            symbols,
            known: Known::default(),
            interval,
            begun: Instant::now(),
            started,
            at: 0,
            snapshots: 0,
            cost: Duration::ZERO,
            costs: [Duration::ZERO; 8],
            due: interval,
            threads: BTreeMap::new(),
            call_sites: Vec::new(),
            numbers: HashMap::new(),
            waits: BTreeMap::new(),
            holders: BTreeMap::new(),
            strip: BTreeMap::new(),
            has_ended: false,
        };
        sampler.snapshot(true)?;
        Ok(sampler)
    }

    /// Samples for so long; whether the process still runs. `goes_on`: asked before each snapshot.
    pub fn sample(&mut self, time: Duration, goes_on: impl Fn() -> bool) -> bool {
        let end = self.begun.elapsed() + time;
        while !self.has_ended && self.begun.elapsed() < end && goes_on() {
            std::thread::sleep(end.min(self.due).saturating_sub(self.begun.elapsed()));
            if self.begun.elapsed() < self.due {
                break;
            }
            let before = own_time();
            self.has_ended = self.snapshot(false).is_err();
            let cost = own_time().saturating_sub(before);
            self.cost += cost;
            let at = usize::try_from(self.snapshots).unwrap_or(0) % self.costs.len();
            self.costs[at] = cost;
            self.due = self.begun.elapsed() + self.pause();
        }
        !self.has_ended
    }

    /// So long that the snapshots need no more than their share.
    fn pause(&self) -> Duration {
        // One may load symbols.
        let mut costs = self.costs;
        costs.sort_unstable();
        let usual = costs[costs.len() / 2].div_f64(SHARE);
        self.interval.max(usual).min(Duration::from_secs(1).max(self.interval))
    }

    fn snapshot(&mut self, is_first: bool) -> Result<(), Refused> {
        if self.snapshots.is_multiple_of(FILES) && !is_first {
            self.target.read_maps();
            self.symbols.begin(self.target.pid, self.started);
            self.known = Known::default();
        }
        let mut before: HashMap<u32, Task> = HashMap::new();
        if !self.snapshots.is_multiple_of(WHOLE) {
            let threads = self.threads.iter_mut();
            before.extend(threads.filter_map(|(id, seen)| Some((*id, seen.task.take()?))));
        }
        let tasks = self.target.snapshot(&mut before)?;
        let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let passed = now.saturating_sub(self.at);
        if tasks.iter().any(|task| !self.threads.contains_key(&task.id)) {
            self.target.renew_numbers();
        }
        let ids: BTreeSet<u32> = tasks.iter().map(|task| task.id).collect();
        let mut present: Vec<(u32, ThreadNow, u64)> = Vec::new();
        for task in tasks {
            let seen = self.threads.entry(task.id).or_default();
            let stays = seen.was.is_some_and(|was| task.is_still(was));
            let before = seen.was.and_then(|(_, sched)| sched);
            // A lock may have another owner now.
            let same = seen.last.take().filter(|thread| stays && thread.lock().is_none());
            let shown = match same {
                Some(thread) => ThreadNow { stays, ..thread },
                None => thread(&self.target, (&mut self.symbols, &mut self.known), &task, &ids, stays),
            };
            let blocked = if is_first { 0 } else { seen.add((before, task.sched), &shown, passed) };
            if !stays {
                seen.since = now;
            }
            seen.name = shown.name.clone();
            seen.snapshots += 1;
            seen.last = Some(shown.clone());
            seen.was = Some((task.call, task.sched));
            seen.task = Some(task);
            present.push((shown.id, shown, blocked));
        }
        self.add_waits(&present, now);
        for (id, seen) in &mut self.threads {
            if !ids.contains(id) {
                (seen.last, seen.task, seen.was) = (None, None, None);
            }
        }
        self.at = now;
        self.snapshots += u64::from(!is_first);
        Ok(())
    }

    /// Adds what each thread waited since the last snapshot.
    fn add_waits(&mut self, present: &[(u32, ThreadNow, u64)], now: u64) {
        let by_id: HashMap<u32, &ThreadNow> = present.iter().map(|(id, thread, _)| (*id, thread)).collect();
        for (_, waiter, blocked) in present {
            let Some(wait) = waiter.wait().filter(|_| *blocked > 0) else { continue };
            let which = which(wait);
            let site = self.number(waiter.place.clone().unwrap_or_default());
            let mut holder_site = None;
            if wait.is_lock() {
                let holder = wait.holder().and_then(|id| by_id.get(&id)).copied();
                holder_site = holder.and_then(|holder| holder.place.clone()).map(|place| self.number(place));
                *self.holders.entry((which.clone(), held_by(wait, holder))).or_default() += blocked;
                *self.strip.entry(now).or_default() += blocked;
            }
            *self.waits.entry((which, wait.role, site, holder_site)).or_default() += blocked;
        }
    }

    fn number(&mut self, call_site: CallSite) -> CallSiteId {
        if let Some(known) = self.numbers.get(&call_site) {
            return *known;
        }
        self.call_sites.push(call_site.clone());
        self.numbers.insert(call_site, self.call_sites.len() - 1);
        self.call_sites.len() - 1
    }

    /// Forgets what was seen, but for symbols: from here on it is another interval.
    pub fn restart(&mut self) {
        self.due = self.due.saturating_sub(self.begun.elapsed());
        self.begun = Instant::now();
        (self.at, self.snapshots, self.cost) = (0, 0, Duration::ZERO);
        self.waits.clear();
        self.holders.clear();
        self.strip.clear();
        self.threads.retain(|_, seen| seen.last.is_some());
        for seen in self.threads.values_mut() {
            let (name, last) = (std::mem::take(&mut seen.name), seen.last.take());
            *seen = Seen { name, last, task: seen.task.take(), was: seen.was, ..Seen::default() };
        }
    }

    /// What was seen so far.
    #[must_use]
    pub fn profile(&mut self) -> Profile {
        let pid = self.target.pid;
        let (locks, numbers) = self.locks();
        let mut pairs: Vec<Pair> = Vec::new();
        for ((which, role, waiter, holder), time) in &self.waits {
            pairs.push(Pair {
                lock: numbers[which],
                role: *role,
                waiter: *waiter,
                holder: *holder,
                wait_total: *time,
                ..Pair::default()
            });
        }
        pairs.sort_by_key(|pair| (pair.role.rank(), Reverse(pair.wait_total)));
        let threads = self.threads.iter().map(|(id, seen)| Thread {
            id: *id,
            name: seen.name.clone(),
            users: 1,
            time: seen.time.total(),
            has_ended: seen.last.is_none(),
            waited: seen.waited,
            signals: seen.signals,
            others: seen.others,
            unclear: seen.unclear.iter().map(|(which, time)| (numbers[which], *time)).collect(),
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
            .map(|((which, doing), time)| HolderTime {
                lock: numbers[which],
                doing: doing.clone(),
                time: *time,
            })
            .collect();
        holders.sort_by_key(|holder| Reverse(holder.time));
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
            ended: if self.has_ended { RecordingEnd::Exited } else { RecordingEnd::Running },
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
                cost: u64::try_from(self.cost.as_nanos()).unwrap_or(u64::MAX),
                holders,
            }),
            observed: Some(self.observed()),
            ..Profile::default()
        }
    }

    /// The locks, those with most waiting first, and their numbers.
    fn locks(&self) -> (Vec<Lock>, BTreeMap<Which, u32>) {
        let mut sums: BTreeMap<&Which, BTreeMap<Role, BTreeMap<CallSiteId, u64>>> = BTreeMap::new();
        for ((which, role, site, _), time) in &self.waits {
            *sums.entry(which).or_default().entry(*role).or_default().entry(*site).or_default() += time;
        }
        let total = |roles: &BTreeMap<Role, BTreeMap<CallSiteId, u64>>| -> u64 {
            roles.values().flat_map(BTreeMap::values).sum()
        };
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, roles)| Reverse(total(roles)));
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let (mut locks, mut numbers) = (Vec::new(), BTreeMap::new());
        for (id, (which, roles)) in (1..).zip(sums) {
            let (address, name, kind) = which;
            numbers.insert(which.clone(), id);
            let site = roles.values().flatten().max_by_key(|(_, time)| **time).map(|(site, _)| *site);
            let is_type = name.as_ref().is_some_and(|name| name.contains(' '));
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
    fn waiting(&self, numbers: &BTreeMap<Which, u32>) -> (Vec<Waiting>, Vec<Vec<usize>>) {
        let is_known =
            |thread: &ThreadNow| thread.wait().is_some_and(|wait| numbers.contains_key(&which(wait)));
        let last = self.threads.values().filter_map(|seen| Some((seen.last.as_ref()?, seen.since)));
        let mut last: Vec<(ThreadNow, u64)> = last
            .filter(|(thread, _)| is_known(thread))
            .map(|(thread, since)| (thread.clone(), self.at.saturating_sub(since)))
            .collect();
        last.sort_by_key(|(thread, time)| (Reverse(*time), thread.id));
        let threads: Vec<ThreadNow> = last.iter().map(|(thread, _)| thread.clone()).collect();
        let stays = |index: &usize| {
            let (thread, time) = &last[*index];
            let task = self.threads[&thread.id].task.as_ref();
            *time >= MOMENT && task.is_some_and(|task| self.target.stays(task))
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
                Held::Thread(id) => (Some(id), None),
                Held::Gone(id) => (Some(id), Some(OutOfSight::Ended)),
                Held::Process(id) => (Some(id), Some(OutOfSight::Process)),
                _ => (None, None),
            };
            let holder = Holder { thread: id, call_site: None, is_sure: true, out_of_sight };
            Some(Waiting {
                thread: thread.id,
                lock: numbers[&which(wait)],
                role: wait.role,
                call_site: thread.place.as_ref().and_then(|place| self.numbers.get(place)).copied(),
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
                all.idle_time.add(&seen.time);
            } else {
                all.time.add(&seen.time);
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

impl Seen {
    /// Adds the time since the last snapshot. `sched`: of the thread then and now. Returns how much of it counts as
    /// blocked in what it was found in.
    fn add(&mut self, sched: (Option<Sched>, Option<Sched>), now: &ThreadNow, passed: u64) -> u64 {
        let (ran, ready) = match sched {
            (Some(before), Some(sched)) => {
                self.slices += sched.slices.saturating_sub(before.slices);
                (sched.ran.saturating_sub(before.ran), sched.waited.saturating_sub(before.waited))
            }
            _ => (0, 0),
        };
        self.time.running += ran.min(passed);
        self.time.runnable += ready.min(passed - ran.min(passed));
        // The whole interval: those that find it on a CPU count for none of what blocks it.
        let blocked = passed;
        let part = match &now.state {
            State::Running => return 0,
            State::Unknown => &mut self.time.unknown,
            State::Stopped => &mut self.time.stopped,
            State::Fault => &mut self.time.io,
            State::Call(name) => match *name {
                "nanosleep" | "clock_nanosleep" | "pause" | "rt_sigsuspend" | "rt_sigtimedwait" => {
                    &mut self.time.sleep
                }
                "wait4" | "waitid" | "vfork" => &mut self.time.ends,
                "semop" | "semtimedop" | "flock" => &mut self.time.semaphores,
                _ => &mut self.time.io,
            },
            State::Waits(wait) if wait.is_lock() => {
                self.waited += blocked;
                &mut self.time.locks
            }
            State::Waits(wait) if wait.kind == Kind::Join => {
                (self.waited, self.others) = (self.waited + blocked, self.others + blocked);
                &mut self.time.ends
            }
            State::Waits(wait) if wait.role == Role::Signal => {
                (self.waited, self.signals) = (self.waited + blocked, self.signals + blocked);
                &mut self.time.signals
            }
            State::Waits(wait) => {
                (self.waited, self.others) = (self.waited + blocked, self.others + blocked);
                *self.unclear.entry(which(wait)).or_default() += blocked;
                &mut self.time.unclear
            }
        };
        *part += blocked;
        blocked
    }

    /// Whether it has no work: hardly any CPU time, and rarely woken; and does not wait for locks.
    fn is_idle(&self) -> bool {
        /// Wake-ups a second.
        const RARE: f64 = 2.0;
        let all = self.time.total();
        let is_rare = self.slices as f64 <= RARE * all as f64 / 1e9;
        self.time.running <= all / 100 && is_rare && self.time.locks <= all / 20 && self.time.stopped == 0
    }
}

fn which(wait: &Wait) -> Which {
    (wait.address, wait.name.clone(), wait.kind)
}

/// What the holder of a lock does, after *its holder*.
fn held_by(wait: &Wait, holder: Option<&ThreadNow>) -> String {
    let Some(holder) = holder else {
        return String::from(match wait.held {
            Held::Free => "had released it",
            Held::Gone(_) => "had ended",
            Held::Process(_) => "was in another process",
            Held::Readers(_) => "was a reader",
            _ => "is not known",
        });
    };
    let place =
        holder.place.as_ref().map_or(String::new(), |place| format!(" in `{}`", one_line(&place.function())));
    match &holder.state {
        State::Running => String::from("ran, or was ready to"),
        State::Waits(next) if next.is_lock() => format!("waited for another lock{place}"),
        State::Waits(_) => format!("waited for another thread{place}"),
        State::Call(name) => format!("was in `{name}`{place}"),
        State::Fault => format!("waited for memory from a disk{place}"),
        State::Stopped => String::from("was stopped"),
        State::Unknown => String::from("slept"),
    }
}

fn arguments(pid: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = text.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut words: Vec<String> = words.collect();
    words.pop();
    words
}

/// CPU time of this thread.
fn own_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}
