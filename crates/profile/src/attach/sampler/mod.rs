//! Where a running process waits, by sampling: snapshots of its threads, some 50 a second, as a [`Profile`].
//!
//! A thread that waits is seen in proportion to how long it does, so that times are unbiased, however short the
//! waits are; how many there were is not known, and not said. A thread that is found blocked counts as blocked in
//! that since the last snapshot, and one that is found on a CPU does not. One that was woken from a wait for a lock
//! and has no CPU yet waits for the lock still ([`woken`]): as in a recording, a wait lasts until the thread goes on.
//! How long threads were on a CPU or ready for one, the kernel counts. Snapshots are taken less often where they would
//! need more than 2 % of a CPU, or 0.5 % of all CPUs, but each second. The time between two varies by a quarter, so
//! that they keep step with no clock of the program.
//!
//! A thread that has not run since it was read last, by the kernel's count, is as it was. One that has not for long
//! is *idle*: only some of the idle threads are read in a snapshot, by chance. Horvitz and Thompson's rule keeps times
//! unbiased: what such a thread is found in counts by the inverse of the chance that it was read.

mod batches;
mod profile;
mod prompt;
mod seen;
mod woken;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use spinpark_measure::text::one_line;

use self::batches::Batches;
use self::seen::{Seen, add};
use self::woken::Points;
use super::access::Refused;
use super::gil::ForGil;
use super::object::Held;
use super::stack::{Known, stack, thread_with};
use super::target::{Depth, Since, Target};
use super::task::{Call, Near};
use super::thread_now::{State, ThreadNow};
use crate::model::{CallSite, CallSiteId, Doing, Kind, Role};
use crate::symbols::Symbols;

/// The part of a CPU that sampling takes at most,
const SHARE: f64 = 0.02;
/// and of all CPUs: where all are busy, the program has so much less.
const SHARE_OF_ALL: f64 = 0.005;
/// Snapshots between which the files of the process are read again, and the list of its threads.
const FILES: u64 = 50;
/// Snapshots of a thread between which its name is read again.
const WHOLE: u64 = 16;
/// Of the idle threads, one of so many is read in a snapshot, by chance. What it is found in, if it has run,
/// counts so many times: so that times are unbiased, as if all were read.
const RARE: u64 = 8;
/// What a thread was found in before, of which so much is remembered.
const EARLIER: usize = 4;
/// A thread in a deadlock has not run for so long, ns.
const MOMENT: u64 = 100_000_000;

/// A lock, or another thing that threads wait for: by its address, or by its name.
type Which = (u64, Option<String>, Kind);

/// What was seen of a wait at one place: for what, as an index; where; and where its holder was.
type Place = (usize, Role, CallSiteId, Option<CallSiteId>);

/// A point of a program at which a thread was blocked: its call, the end of its stack, and the next instruction.
type Point = (Call, (u64, u64));

/// Why sampling ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The process has ended.
    Exited,
    /// It is another program now.
    Replaced,
    /// It has changed its user, or may no longer be dumped.
    Forbidden,
}

/// Samples a process.
#[derive(Debug)]
pub struct Sampler {
    target: Target,
    symbols: Symbols,
    known: Known,
    interval: Duration,
    /// The part of a CPU that it takes at most.
    share: f64,
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
    /// Of what is left to chance.
    random: u64,
    /// Its first thread was stopped.
    is_stopped: bool,
    threads: BTreeMap<u32, Seen>,
    /// Those that the process has, and how many there were when they were listed.
    ids: BTreeSet<u32>,
    listed: u64,
    call_sites: Vec<CallSite>,
    numbers: HashMap<CallSite, CallSiteId>,
    /// The same by where they are in memory, where they stay as long as this has them.
    places: HashMap<usize, (Arc<CallSite>, CallSiteId)>,
    /// What threads waited for.
    whiches: Vec<Which>,
    which_numbers: BTreeMap<Which, usize>,
    /// What threads waited, and for how long.
    waits: BTreeMap<Place, usize>,
    sums: Vec<u64>,
    /// What the holders of a lock did meanwhile.
    holders: BTreeMap<(usize, (Doing, String)), u64>,
    strip: BTreeMap<u64, u64>,
    points: Points,
    batches: Batches,
    ended: Option<End>,
}

impl Sampler {
    /// Begins. `interval`: between two snapshots. It raises this process' limit of open files, as far as it may.
    ///
    /// # Errors
    /// If the process has ended meanwhile.
    pub fn new(mut target: Target, symbols: Symbols, interval: Duration) -> Result<Self, Refused> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let started = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut symbols = symbols.with_kept(std::mem::take(&mut target.kept));
        symbols.begin_running(target.pid, started);
        target.keep_files();
        let pid = target.pid;
        let cpus = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
        let mut sampler = Self {
            target,
            symbols,
            known: Known::default(),
            interval,
            share: SHARE.min(SHARE_OF_ALL * cpus),
            begun: Instant::now(),
            started,
            at: 0,
            snapshots: 0,
            cost: Duration::ZERO,
            costs: [Duration::ZERO; 8],
            due: interval,
            random: started | 1,
            is_stopped: false,
            threads: BTreeMap::new(),
            ids: BTreeSet::new(),
            listed: 0,
            call_sites: Vec::new(),
            numbers: HashMap::new(),
            places: HashMap::new(),
            whiches: Vec::new(),
            which_numbers: BTreeMap::new(),
            waits: BTreeMap::new(),
            sums: Vec::new(),
            holders: BTreeMap::new(),
            strip: BTreeMap::new(),
            points: Points::default(),
            batches: Batches::default(),
            ended: None,
        };
        match sampler.snapshot(true) {
            Some(End::Exited) => Err(Refused::Ended(pid)),
            Some(End::Replaced) => {
                Err(Refused::Other(pid, String::from("it has just become another program\nTry it again")))
            }
            Some(End::Forbidden) => {
                let why = "it has just changed its user or its capabilities, or forbids it\nTry it as root";
                Err(Refused::Other(pid, why.to_owned()))
            }
            None => Ok(sampler),
        }
    }

    /// Samples for so long; whether the process still runs. `goes_on`: asked before each snapshot.
    pub fn sample(&mut self, time: Duration, goes_on: impl Fn() -> bool) -> bool {
        // Which thread samples may change.
        prompt::ask();
        let end = self.begun.elapsed() + time;
        while self.ended.is_none() && self.begun.elapsed() < end && goes_on() {
            std::thread::sleep(end.min(self.due).saturating_sub(self.begun.elapsed()));
            if self.begun.elapsed() < self.due {
                break;
            }
            let before = own_time();
            self.ended = self.snapshot(false);
            let cost = own_time().saturating_sub(before);
            self.cost += cost;
            let at = usize::try_from(self.snapshots).unwrap_or(0) % self.costs.len();
            self.costs[at] = cost;
            // From when it was due on: what a snapshot takes, and a sleep that is longer than asked, make none fewer.
            let pause = self.pause();
            self.due = (self.due + pause).max(self.begun.elapsed() + pause / 2);
        }
        self.ended.is_none()
    }

    /// So long that the snapshots need no more than their share. A quarter more or less, at random: a program
    /// with a clock of its own must not be seen at the same point of its work each time.
    fn pause(&mut self) -> Duration {
        // One may load symbols.
        let mut costs = self.costs;
        costs.sort_unstable();
        let usual = costs[costs.len() / 2].div_f64(self.share);
        let pause = self.interval.max(usual).min(Duration::from_secs(1).max(self.interval));
        pause.mul_f64(0.75 + 0.5 * (self.random() >> 8) as f64 / (1_u64 << 53) as f64)
    }

    /// Marsaglia's xorshift, of which the highest bits are used (Vigna).
    fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 3
    }

    /// Adds the time of idle threads that were not read lately.
    fn settle(&mut self) {
        for seen in self.threads.values_mut() {
            let unread = std::mem::take(&mut seen.unread);
            let blocked = seen.add(unread.cast_signed(), 0);
            seen.sum.into_iter().for_each(|sum| add(&mut self.sums[sum], blocked));
        }
    }

    /// Why it ended before its time, as a sentence; none if it did not.
    #[must_use]
    pub fn end(&self) -> Option<String> {
        let pid = self.target.pid;
        Some(match self.ended? {
            End::Exited => String::from("The program has ended."),
            End::Replaced => format!(
                "Process {pid} has become another program (exec), of which nothing was sampled: sample it anew to see what that waits for."
            ),
            End::Forbidden => format!(
                "Process {pid} can no longer be read: it has changed its user or its capabilities, or forbids it. What it did from then \
                 on is not known; root can read it."
            ),
        })
    }

    /// Takes one; why there can be no further one, if so.
    fn snapshot(&mut self, is_first: bool) -> Option<End> {
        if self.snapshots.is_multiple_of(FILES) && !is_first {
            self.read_files();
        }
        let is_stopped = self.target.is_stopped();
        let is_new_state = is_stopped != std::mem::replace(&mut self.is_stopped, is_stopped);
        if let Some(end) = self.list(is_first) {
            return Some(end);
        }
        self.known.read_python(&self.target, &mut self.symbols, &[]);
        if is_first {
            // What is before the first one is no time of the sample: nothing is known of it.
            self.begun = Instant::now();
        }
        let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let passed = now.saturating_sub(self.at);
        // Those that wait for locks: which may have other holders, though their waiters have not run.
        let mut waiters: Vec<(u32, i64)> = Vec::new();
        let mut near: HashMap<u64, Option<Near>> = HashMap::new();
        let (mut number, mut is_cut, mut is_forbidden) = (0, false, false);
        let ids: Vec<u32> = self.ids.iter().copied().collect();
        for id in ids {
            number += 1;
            let is_rare = self.random().is_multiple_of(RARE);
            let seen = self.threads.entry(id).or_default();
            let is_idle = seen.is_idle_now();
            if is_idle && !is_rare && !is_new_state {
                seen.unread += passed;
                continue;
            }
            let has_state = is_new_state || seen.snapshots.is_multiple_of(WHOLE);
            let depth = Depth { is_idle, has_state, is_stopped };
            let since = self.target.follow(id, number, &mut seen.followed, depth);
            // Time since it was read last; and how much of it what it is in now stands for.
            let unread = std::mem::take(&mut seen.unread) + passed;
            let weight = if is_idle && !is_new_state { passed * RARE } else { passed };
            match since {
                Since::Ended => {
                    seen.unread = unread - passed;
                    self.ids.remove(&id);
                    self.end_of(id);
                    continue;
                }
                Since::Forbidden => {
                    is_forbidden = true;
                    continue;
                }
                Since::Same => self.is_same(id, &mut near),
                Since::Changed => {
                    if unread != weight {
                        let rest = unread.cast_signed() - weight.cast_signed();
                        let (blocked, sum) = (seen.add(rest, 0), seen.sum);
                        sum.into_iter().for_each(|sum| add(&mut self.sums[sum], blocked));
                    }
                    is_cut |= self.has_changed(id, now);
                }
            }
            let Some(seen) = self.threads.get_mut(&id) else { continue };
            seen.is_holder = false;
            let time = if since == Since::Same { unread } else { weight };
            let blocked = if is_first { 0 } else { seen.add(time.cast_signed(), unread) };
            match seen.sum {
                Some(sum) => add(&mut self.sums[sum], blocked),
                None if seen.which.is_some() && blocked > 0 => waiters.push((id, blocked)),
                None => {}
            }
            seen.was = seen.followed.task.as_ref().map(|task| (task.call, task.sched));
        }
        if self.known.has_python() {
            let mut threads: Vec<&mut ThreadNow> =
                self.threads.values_mut().filter_map(|seen| seen.last.as_mut()).collect();
            self.known.name_holders(&self.target, &mut threads);
        }
        self.add_waits(&waiters, now);
        self.at = now;
        self.snapshots += u64::from(!is_first);
        match is_forbidden {
            _ if is_cut && self.target.is_replaced() => Some(self.reason()),
            true => Some(End::Forbidden),
            false if self.ids.is_empty() => Some(End::Exited),
            false => None,
        }
    }

    /// Why there is no memory of the process any more.
    fn reason(&self) -> End {
        // A process that ends has none, either.
        if self.target.has_files() { End::Replaced } else { End::Exited }
    }

    /// Libraries are loaded meanwhile, and code is made.
    fn read_files(&mut self) {
        if self.target.read_maps() {
            self.symbols.begin_running(self.target.pid, self.started);
            self.known = Known::default();
            self.points = Points::default();
            self.threads.values_mut().for_each(|seen| seen.earlier.clear());
        }
        self.known.renew();
        self.points.renew();
        self.symbols.renew_made_code();
        self.places.clear();
        self.listed = 0;
    }

    /// Lists the threads, if there are others.
    fn list(&mut self, is_first: bool) -> Option<End> {
        let number = self.target.number()?;
        if number == self.listed && !is_first {
            return None;
        }
        let Ok(numbers) = self.target.numbers() else { return Some(End::Exited) };
        self.listed = number;
        let ids: BTreeSet<u32> = numbers.into_iter().collect();
        let ended: Vec<u32> = self.ids.difference(&ids).copied().collect();
        ended.into_iter().for_each(|id| self.end_of(id));
        if !ids.is_subset(&self.ids) {
            self.target.renew_numbers();
        }
        self.ids = ids;
        None
    }

    /// A thread has ended.
    fn end_of(&mut self, id: u32) {
        self.known.forget_python_of(id);
        let Some(seen) = self.threads.get_mut(&id) else { return };
        let unread = std::mem::take(&mut seen.unread);
        let blocked = seen.add(unread.cast_signed(), 0);
        seen.sum.into_iter().for_each(|sum| add(&mut self.sums[sum], blocked));
        seen.end();
    }

    /// A thread has not run since the last snapshot.
    fn is_same(&mut self, id: u32, near: &mut HashMap<u64, Option<Near>>) {
        let Some(seen) = self.threads.get_mut(&id) else { return };
        seen.same = seen.same.saturating_add(1);
        seen.snapshots += 1;
        let Some(last) = &mut seen.last else { return };
        last.stays = true;
        if last.lock().is_none() {
            return;
        }
        // Others that wait at the same word have not run either.
        let Some(task) = &mut seen.followed.task else { return };
        if let Some(futex) = task.call.futex() {
            let read = || self.target.near(futex.address);
            task.near = near.entry(futex.address).or_insert_with(read).clone();
        }
        let tools = (&mut self.symbols, &mut self.known);
        *last = thread_with(&self.target, tools, (task, &seen.stack), &self.ids, true);
        self.locate(id);
    }

    /// A thread has run since the last snapshot. Whether its stack could not be copied.
    fn has_changed(&mut self, id: u32, now: u64) -> bool {
        let random = self.random();
        let Some(seen) = self.threads.get_mut(&id) else { return false };
        let Some(task) = &seen.followed.task else { return false };
        let is_lost = task.stack.as_ref().is_some_and(|stack| stack.words.is_empty());
        let (mut shown, mut bytes) = stack(&self.target, (&mut self.symbols, &mut self.known), task);
        if task.stack.is_some() && bytes.is_none() && seen.followed.needed.is_some() {
            self.target.whole_stack(&mut seen.followed);
            if let Some(task) = &seen.followed.task {
                (shown, bytes) = stack(&self.target, (&mut self.symbols, &mut self.known), task);
            }
        }
        let Some(task) = &seen.followed.task else { return false };
        self.known.read_python_of(&self.target, task);
        let base = task.stack.as_ref().and_then(|stack| woken::base(stack, &shown.addresses));
        if task.stack.is_some() {
            seen.followed.needed = bytes;
        }
        base.into_iter().for_each(|base| seen.note_base(base));
        let Some(task) = &seen.followed.task else { return false };
        let stays = seen.was.is_some_and(|was| task.is_still(was));
        let first = seen.followed.first.take();
        let before = first.and_then(|first| seen.earlier.iter().find(|(known, ..)| *known == first));
        // A thread that has gone on while its stack was copied was in a short wait: if these counted as
        // what they were in next, only long waits would count. With the same call, of the same words, at the same
        // depth, its stack is that of then; but not the owner of what it waited for.
        let woken = match task.call {
            Call::Running if before.is_none() => self.points.find(&self.target, task, &seen.bases, random),
            _ => None,
        };
        let woken = woken.filter(|_| self.target.is_ready(&seen.followed));
        let woken = woken.and_then(|woken| {
            let tools = (&mut self.symbols, &mut self.known);
            let thread = thread_with(&self.target, tools, (&woken.task, &woken.stack), &self.ids, false);
            woken.waits(thread)
        });
        seen.is_woken = woken.is_some();
        let (shown, thread) = match (before, woken) {
            (Some((_, shown, thread)), _) => (Arc::clone(shown), thread.clone().without_owner()),
            (None, Some(woken)) => woken,
            (None, None) => {
                let tools = (&mut self.symbols, &mut self.known);
                let thread = thread_with(&self.target, tools, (task, &shown), &self.ids, stays);
                (shown, thread)
            }
        };
        if first.is_none()
            && let Some(stack) = &task.stack
        {
            if thread.lock().is_some() {
                self.points.add(task, &shown, &thread);
            }
            let key = (task.call, (stack.stack, stack.code));
            seen.earlier.retain(|(known, ..)| *known != key);
            if seen.earlier.len() >= EARLIER {
                seen.earlier.remove(0);
            }
            seen.earlier.push((key, Arc::clone(&shown), thread.clone()));
        }
        if !stays {
            (seen.since, seen.same) = (now, 0);
        }
        seen.stack = shown;
        seen.name.clone_from(&thread.name);
        seen.snapshots += 1;
        let for_gil = seen.for_gil.take();
        let for_gil = ForGil::next(for_gil, &thread, now, |id| self.blocked_since(id));
        if let Some(seen) = self.threads.get_mut(&id) {
            (seen.last, seen.for_gil) = (Some(thread), for_gil);
        }
        self.locate(id);
        is_lost
    }

    /// Since when a thread is blocked in what it was found in last.
    fn blocked_since(&self, id: u32) -> Option<u64> {
        let seen = self.threads.get(&id)?;
        seen.last.as_ref().is_some_and(|last| last.state != State::Running).then_some(seen.since)
    }

    /// Notes where a thread's time is to be added, by what it waits for.
    fn locate(&mut self, id: u32) {
        let Some(seen) = self.threads.get_mut(&id) else { return };
        (seen.which, seen.sum) = (None, None);
        let Some(thread) = &seen.last else { return };
        let State::Waits(wait) = &thread.state else { return };
        let which = (wait.address, wait.name.clone(), wait.kind);
        let (role, is_lock, place) = (wait.role, wait.is_lock(), thread.place.clone());
        let number = match self.which_numbers.get(&which) {
            Some(number) => *number,
            None => {
                self.whiches.push(which.clone());
                self.which_numbers.insert(which, self.whiches.len() - 1);
                self.whiches.len() - 1
            }
        };
        let site = self.number(place.unwrap_or_default());
        let sum = (!is_lock).then(|| self.sum((number, role, site, None)));
        if let Some(seen) = self.threads.get_mut(&id) {
            (seen.which, seen.site, seen.sum) = (Some(number), site, sum);
        }
    }

    /// Where the time of such waits is added.
    fn sum(&mut self, place: Place) -> usize {
        let new = self.sums.len();
        let sum = *self.waits.entry(place).or_insert(new);
        if sum == new {
            self.sums.push(0);
        }
        sum
    }

    /// Adds what threads waited for locks since the last snapshot, by lock and holder.
    fn add_waits(&mut self, waiters: &[(u32, i64)], now: u64) {
        let mut by_holder: BTreeMap<(usize, Held, bool), u64> = BTreeMap::new();
        for (id, blocked) in waiters {
            let blocked = blocked.unsigned_abs();
            let seen = &self.threads[id];
            let (Some(wait), Some(which)) = (seen.last.as_ref().and_then(ThreadNow::lock), seen.which) else {
                continue;
            };
            let (site, role, held) = (seen.site, wait.role, wait.held);
            let holder = wait.holder().and_then(|id| self.threads.get(&id)?.last.as_ref());
            let is_past = holder.is_some_and(|holder| holder.has_passed_on(wait));
            let holder = holder.filter(|_| !is_past);
            let holder_site = holder.and_then(|holder| holder.place.clone()).map(|place| self.number(place));
            let sum = self.sum((which, role, site, holder_site));
            self.sums[sum] += blocked;
            *by_holder.entry((which, held, is_past)).or_default() += blocked;
            *self.strip.entry(now).or_default() += blocked;
            self.batches.add(which, blocked);
        }
        self.batches.end_snapshot();
        for ((which, held, is_past), blocked) in by_holder {
            let holder = match held {
                Held::Thread(id) | Held::Perhaps(id) => self.threads.get_mut(&id),
                _ => None,
            };
            let holder = holder.and_then(|seen| {
                seen.is_holder = true;
                // What it did with the lock is not known of one that waits for it again.
                seen.last.as_ref().filter(|_| !is_past)
            });
            *self.holders.entry((which, held_by(held, holder))).or_default() += blocked;
        }
    }

    fn number(&mut self, place: Arc<CallSite>) -> CallSiteId {
        let at = Arc::as_ptr(&place).addr();
        if let Some((_, known)) = self.places.get(&at) {
            return *known;
        }
        let number = match self.numbers.get(&*place) {
            Some(known) => *known,
            None => {
                self.call_sites.push(CallSite::clone(&place));
                self.numbers.insert(CallSite::clone(&place), self.call_sites.len() - 1);
                self.call_sites.len() - 1
            }
        };
        self.places.insert(at, (place, number));
        number
    }

    /// Forgets what was seen, but for symbols: from here on it is another interval.
    pub fn restart(&mut self) {
        self.due = self.due.saturating_sub(self.begun.elapsed());
        self.begun = Instant::now();
        (self.at, self.snapshots, self.cost) = (0, 0, Duration::ZERO);
        self.waits.clear();
        self.sums.clear();
        self.holders.clear();
        self.strip.clear();
        self.batches = Batches::default();
        self.threads.retain(|_, seen| seen.last.is_some());
        for seen in self.threads.values_mut() {
            let before = std::mem::take(seen);
            let Seen { name, followed, last, stack, earlier, was, same, bases, is_woken, .. } = before;
            *seen =
                Seen { name, followed, last, stack, earlier, was, same, bases, is_woken, ..Seen::default() };
        }
        let ids: Vec<u32> = self.ids.iter().copied().collect();
        ids.into_iter().for_each(|id| self.locate(id));
    }
}

/// What the holder of a lock does, after *its holder*.
fn held_by(held: Held, holder: Option<&ThreadNow>) -> (Doing, String) {
    let Some(holder) = holder else {
        let doing = match held {
            Held::Free => "had released it",
            Held::Gone(_) => "had ended",
            Held::Process(_) => "was in another process",
            Held::Readers(_) => "was a reader",
            _ => "is not known",
        };
        return (Doing::Other, String::from(doing));
    };
    let place =
        holder.place.as_ref().map_or(String::new(), |place| format!(" in `{}`", one_line(&place.function())));
    match &holder.state {
        State::Running => (Doing::Runs, String::from("ran, or was ready to")),
        State::Waits(next) if next.is_lock() => {
            (Doing::WaitsForLock, format!("waited for another lock{place}"))
        }
        State::Waits(_) => (Doing::Other, format!("waited for another thread{place}")),
        State::Call(name) => (Doing::Calls, format!("was in `{name}`{place}")),
        State::Fault => (Doing::Other, format!("waited for memory from a disk{place}")),
        State::Stopped(_) => (Doing::Other, String::from("was stopped")),
        State::Unknown => (Doing::Other, String::from("slept")),
    }
}

/// CPU time of this thread.
pub(super) fn own_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}
