//! From a recording to a [`Profile`]: times in ns, call sites instead of stacks, the longest first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use spinpark_recorder::format::{self, CALLS, EXPERIMENT, HolderId, NONE, View, WaitOutcome};

use super::clock::monotonic_of;
use super::experiment::{experiment, missed};
use super::meaning::{Meanings, Moved, Taken, noted, taken_locks};
use super::thread_tables::{LockSum, PairSum, SiteSum, StripSum, Tables, Use, same_locks};
use super::waiting::{Holders, Waiter, waiters};
use super::{Clock, Maps, Recording, labels};
use crate::cost;
use crate::model::Warning;
use crate::model::{
    CallSite, CallSiteId, Detail, FORMAT, Frame, Held, HeldWait, HolderCall, Kind, Lock, LocksOf, Nest,
    OutOfSight, Outcomes, Pair, Profile, RecorderCost, RecordingEnd, Role, RoleStats, SampleError, SiteStats,
    SlowWait, Split, Times, VERSION,
};
use crate::stuck;
use crate::symbols::{Part, Symbols};
use crate::waits::WaitTarget;

/// The profile of a recording. Symbols are looked up with `symbols`, which may be used again for further
/// recordings of the same programs.
#[must_use]
pub fn profile(recording: &Recording, symbols: &mut Symbols) -> Profile {
    let (view, header) = (recording.view(), recording.view().header());
    let mut warnings = Vec::new();
    let clock = Clock::new(header);
    if clock.is_none() {
        let text = "The recording has no clock: times are in CPU ticks, not in ns.";
        warnings.push(Warning::Note(text.to_owned()));
    }
    if recording.is_cut_short() {
        let path = recording.path().display();
        warnings.push(Warning::Loss(format!(
            "{path} was cut short: the last records are missing, so the numbers are too low."
        )));
    }
    if header.bounded.load(Relaxed) > 0 {
        let text = "The recording has reached its size limit (`--max-size`): later records are missing, so the numbers are too low.";
        warnings.push(Warning::Loss(text.to_owned()));
    }
    let left = header.regions[format::RegionId::Slow as usize].dropped.load(Relaxed);
    if left > 0 {
        let text = format!(
            "There was no space for {left} of the longest waits: they are in all sums, and not kept one by one."
        );
        warnings.push(Warning::Note(text));
    }
    let mut same = same_locks(view);
    let mut merge = Merge {
        view,
        is_running: recording.ended() == RecordingEnd::Running,
        clock: clock.unwrap_or(Clock::TICKS),
        maps: Maps::new(&view.maps().collect::<Vec<_>>().concat()),
        symbols,
        call_sites: Vec::new(),
        numbers: HashMap::new(),
        by_stack: HashMap::new(),
        waits: HashMap::new(),
        methods: HashMap::new(),
    };
    merge.symbols.begin(header.pid, header.start_realtime);
    let meanings = merge.meanings(view, &mut same);
    let mut tables = Tables::new(view, &same, &meanings);
    if tables.junk > 0 {
        let text = format!("{} records of the file are damaged and were left out.", tables.junk);
        warnings.push(Warning::Loss(text));
    }
    let duration = merge.duration(recording.ended(), &tables);
    let end = merge.clock.tick_at(duration);
    let mut waiters = waiters(view, &same, &meanings, end, |thread| merge.has_ended(thread));
    let (taken, moved) = merge.take_from_condvars(&mut tables, &mut waiters);
    tables.count_waiters(&waiters, &same, |ticks| merge.clock.ns(ticks), duration);
    let mut whole = StripSum::default();
    for (_, sum) in tables.locks.iter().filter(|((_, wanted), _)| role(*wanted).is_lock()) {
        whole.add(&sum.strip);
    }
    let detail = detail(header.detail.load(Relaxed));
    let pairs = merge.pairs(&tables);
    let held_waits = merge.held_waits(&tables);
    let nests = merge.nests(&tables);
    let unfinished = longest_unfinished(&waiters);
    let mut locks =
        merge.locks(&tables, (&same, &meanings, &taken), (detail, duration), (&pairs, &unfinished));
    let threads = merge.threads(duration, &waiters, &tables);
    let thread_waits = merge.thread_waits(&tables);
    let holders = Holders::new(&waiters, &same);
    let waiting = merge.waiting(&waiters, &holders, &tables);
    let long = end.saturating_sub(merge.clock.tick_at(duration.saturating_sub(stuck::long(duration))));
    let slow_waits = merge.slow_waits((&same, &meanings, &moved), &tables);
    warnings.extend(merge.symbols.take_warnings().into_iter().map(Warning::Note));
    let recorder = merge.recorder();
    widen_by_what_was_counted(&mut locks, &recorder);
    let alone = Profile {
        format: FORMAT.to_owned(),
        version: VERSION,
        program: text(&header.program).next().unwrap_or_default(),
        arguments: text(&header.arguments).collect(),
        pid: header.pid,
        parent: header.parent,
        recording: recording.path().file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        namespace: header.namespace,
        born: header.born,
        started: header.start_realtime,
        duration,
        ended: recording.ended(),
        ended_by: None,
        detail,
        sample_every: header.sample_every,
        locks_of: match header.locks {
            number if number == format::Locks::Glibc as u32 => LocksOf::Glibc,
            number if number == format::Locks::Spinpark as u32 => LocksOf::Spinpark,
            _ => LocksOf::Library,
        },
        cpus: header.cpus,
        threads,
        modules: merge.symbols.modules(&merge.call_sites),
        call_sites: merge.call_sites,
        locks,
        pairs,
        held_waits,
        nests,
        thread_waits,
        waiting,
        slow_waits,
        deadlocks: holders.cycles(&waiters, long),
        strip: whole.shown(),
        dropped: header.dropped(),
        nested: header.nested.load(Relaxed),
        recorder,
        cost: None,
        observed: None,
        sampling: None,
        host: None,
        merged: None,
        measured: Vec::new(),
        warnings,
    };
    Profile { cost: cost::estimate(&alone, 0.0), ..alone }
}

/// Waits are counted in light spans, too. Where they are more than the recorded ones stand for, recording
/// slows the program so much that it waits less often in recorded spans: then so much is missing everywhere,
/// perhaps.
fn widen_by_what_was_counted(locks: &mut [Lock], recorder: &RecorderCost) {
    let has_spans = recorder.experiment.is_some_and(|found| found.light > 0);
    let estimated: u64 = locks.iter().flat_map(|lock| &lock.roles).map(|stats| stats.contended).sum();
    if !has_spans || estimated == 0 {
        return;
    }
    let missing = (recorder.waits as f64 / estimated as f64 - 1.0).max(0.0);
    for stats in locks.iter_mut().flat_map(|lock| &mut lock.roles).filter(|stats| stats.error.contended > 0) {
        let add =
            |error: &mut u64, all: u64| *error = error.saturating_add((missing * all as f64).ceil() as u64);
        add(&mut stats.error.acquisitions, stats.acquisitions);
        add(&mut stats.error.contended, stats.contended);
        add(&mut stats.error.waited, stats.wait.total);
    }
}

/// The 97.5 % point of the normal distribution.
const NORMAL: f64 = 1.96;

/// The strings of a field of the header: each ended by a zero, the rest zeros.
pub(super) fn text(bytes: &[u8]) -> impl Iterator<Item = String> {
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let parts = bytes[..used].split(|byte| *byte == 0);
    parts.filter(move |_| used > 0).map(|part| String::from_utf8_lossy(part).into_owned())
}

fn detail(number: u32) -> Detail {
    match number {
        0 => Detail::Off,
        1 => Detail::Contended,
        2 => Detail::Sampled,
        _ => Detail::Full,
    }
}

pub(super) fn role(role: format::Role) -> Role {
    match role {
        format::Role::Write => Role::Write,
        format::Role::Read => Role::Read,
        format::Role::Signal => Role::Signal,
        format::Role::Back => Role::Back,
        format::Role::Late => Role::Late,
        format::Role::Wake => Role::Wake,
    }
}

pub(super) fn kind(number: u32) -> Option<Kind> {
    Some(match format::Kind::from_number(number)? {
        format::Kind::Mutex => Kind::Mutex,
        format::Kind::Recursive => Kind::Recursive,
        format::Kind::ErrorChecking => Kind::ErrorChecking,
        format::Kind::Adaptive => Kind::Adaptive,
        format::Kind::Special => Kind::Special,
        format::Kind::RwLock => Kind::RwLock,
        format::Kind::Condvar => Kind::Condvar,
        format::Kind::Futex => Kind::Futex,
        format::Kind::Semaphore => Kind::Semaphore,
        format::Kind::Barrier => Kind::Barrier,
        format::Kind::Join => Kind::Join,
        format::Kind::Once => Kind::Once,
        format::Kind::Spin => Kind::Spin,
        format::Kind::Call => Kind::Call,
    })
}

/// What a holder is that was out of sight.
pub(super) fn out_of_sight(holder: u32) -> Option<OutOfSight> {
    match HolderId::from_number(holder) {
        HolderId::OutOfSight(what) => Some(match what {
            format::OutOfSight::Unseen => OutOfSight::Unseen,
            format::OutOfSight::Process => OutOfSight::Process,
            format::OutOfSight::Parent => OutOfSight::Parent,
            format::OutOfSight::Ended => OutOfSight::Ended,
        }),
        _ => None,
    }
}

/// The function with this number.
fn call_name(number: u64) -> Option<String> {
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    CALLS.get(at).map(|name| (*name).to_owned())
}

/// The histogram without the empty bins at its end.
fn histogram(bins: &[u64]) -> Vec<u64> {
    let used = bins.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    bins[..used].to_vec()
}

pub(super) struct Merge<'a> {
    pub(super) view: View<'a>,
    pub(super) is_running: bool,
    pub(super) clock: Clock,
    maps: Maps,
    symbols: &'a mut Symbols,
    pub(super) call_sites: Vec<CallSite>,
    numbers: HashMap<CallSite, CallSiteId>,
    by_stack: HashMap<u32, Option<CallSiteId>>,
    /// What threads wait for, by their stacks.
    waits: HashMap<u32, WaitTarget>,
    /// Methods of locks' classes in which stacks wait.
    methods: HashMap<u32, (String, Role)>,
}

impl Merge<'_> {
    /// The call site of a stack. None if it is not in the file.
    pub(super) fn call_site(&mut self, stack: u32) -> Option<CallSiteId> {
        if stack == NONE {
            return None;
        }
        if let Some(known) = self.by_stack.get(&stack) {
            return *known;
        }
        let found = self.view.stack(stack).map(|record| {
            let frames = &record.frames[..(record.depth as usize).min(record.frames.len())];
            let is_cut = record.is_cut != 0;
            let (call_site, wait, method) =
                self.symbols.call_site_and_wait(&self.maps, record.maps, frames, is_cut);
            self.waits.extend(wait.map(|wait| (stack, wait)));
            self.methods.extend(method.map(|method| (stack, method)));
            *self.numbers.entry(call_site).or_insert_with_key(|call_site| {
                self.call_sites.push(call_site.clone());
                self.call_sites.len() - 1
            })
        });
        self.by_stack.insert(stack, found);
        found
    }

    /// What a thread with this stack waits for, if the stack shows it; after [`Merge::call_site`].
    pub(super) fn wait_of(&self, stack: u32) -> Option<&WaitTarget> {
        self.waits.get(&stack)
    }

    /// The method of a lock's class that waits on a stack: the class, and the role.
    pub(super) fn method_of(&self, stack: u32) -> Option<(String, Role)> {
        self.methods.get(&stack).cloned()
    }

    /// The frames of a stack from the innermost one of the program on.
    pub(super) fn own_frames(&mut self, stack: u32) -> &[Frame] {
        self.call_site(stack).map_or(&[], |call_site| &self.call_sites[call_site].frames)
    }

    /// The variable that an address is part of, when this stack was captured.
    pub(super) fn part(&mut self, stack: u32, address: u64) -> Option<Part> {
        let maps = self.view.stack(stack).map_or(u32::MAX, |stack| stack.maps);
        self.symbols.part(&self.maps, maps, address)
    }

    /// The function that waits, if the stack has more than what the wait is made of.
    pub(super) fn function_of(&self, wait: &WaitTarget, call_site: Option<CallSiteId>) -> String {
        let call_site =
            call_site.filter(|_| wait.is_placed).and_then(|call_site| self.call_sites.get(call_site));
        call_site.map(CallSite::function).unwrap_or_default()
    }

    /// For how long it was recorded. If the program was killed and its end was not noted, until its last
    /// recorded event.
    fn duration(&self, ended: RecordingEnd, tables: &Tables) -> u64 {
        let header = self.view.header();
        if ended == RecordingEnd::Running {
            return monotonic_of(header).saturating_sub(header.start_monotonic);
        }
        let locks = self.view.locks().map(|(_, lock)| self.clock.since_start(lock.since));
        let threads = self.view.threads().map(|(_, thread)| self.clock.since_start(thread.since));
        let strips = tables.locks.values().map(|sum| sum.strip.until());
        let begun = self.view.threads().filter_map(|(_, thread)| thread.waiting.get());
        let begun = begun.map(|begun| self.clock.since_start(begun.since));
        let signs = locks.chain(threads).chain(strips).chain(begun).max().unwrap_or(0);
        let seen = header.ended_monotonic.load(Acquire).checked_sub(header.start_monotonic);
        match (ended, self.clock.latest(), seen) {
            (RecordingEnd::Exited, latest, _) if latest > 0 => latest,
            (_, _, Some(seen)) => seen,
            (_, latest, None) => latest.max(signs),
        }
    }

    /// A holder of a lock: its call site, and whether it released the lock there.
    pub(super) fn holder(&mut self, tables: &Tables, lock: u32, number: u32) -> (Option<CallSiteId>, bool) {
        let released_at = match HolderId::from_number(number) {
            HolderId::Unknown | HolderId::OutOfSight(_) => None,
            HolderId::TookAt(stack) => return (self.call_site(stack), false),
            HolderId::ReleasedAt(stack) => Some(stack),
            HolderId::Table(table) => {
                let stacks = tables.released.get(&(lock, table)).into_iter().flatten();
                let most = stacks.max_by_key(|(_, count)| **count).map(|(stack, _)| *stack);
                if most.is_none() {
                    return (self.taken_by(tables, lock, table), false);
                }
                most
            }
        };
        let Some(released_at) = released_at.and_then(|stack| self.call_site(stack)) else {
            return (None, false);
        };
        // The function that releases it takes it, too: as guards do.
        match self.taken_in(tables, lock, released_at) {
            Some(taken_at) => (Some(taken_at), false),
            None => (Some(released_at), true),
        }
    }

    /// The call site at which threads of a table take a lock, if it is the same nearly always.
    fn taken_by(&mut self, tables: &Tables, lock: u32, table: u32) -> Option<CallSiteId> {
        const NEARLY: f64 = 0.9;
        let taken = tables.taken.get(&(lock, table))?;
        let (stack, most) = taken.iter().max_by_key(|(_, count)| **count)?;
        let all: u64 = taken.values().sum();
        (*most as f64 >= NEARLY * all as f64).then(|| self.call_site(*stack)).flatten()
    }

    /// The call site that takes a lock most often in the function of another call site, with the same
    /// callers.
    fn taken_in(&mut self, tables: &Tables, lock: u32, site: CallSiteId) -> Option<CallSiteId> {
        let uses =
            tables.sites.range(((lock, format::Role::Write), 0)..=((lock, format::Role::Read), u32::MAX));
        let uses = uses
            .filter(|(_, sum)| !sum.is_empty())
            .map(|((_, stack), sum)| (*stack, sum.acquisitions + sum.contended));
        let pairs = tables
            .pairs
            .range(((lock, format::Role::Write), 0, 0)..=((lock, format::Role::Read), u32::MAX, u32::MAX));
        let holders = pairs.filter_map(|((_, _, holder), sum)| match HolderId::from_number(*holder) {
            HolderId::TookAt(stack) => Some((stack, sum.count)),
            _ => None,
        });
        let known: Vec<(u32, u64)> = uses.chain(holders).collect();
        let known: Vec<(CallSiteId, u64)> =
            known.into_iter().filter_map(|(stack, count)| Some((self.call_site(stack)?, count))).collect();
        let key = |site: CallSiteId| {
            let frames = &self.call_sites[site].frames;
            let callers = frames.iter().skip_while(|frame| frame.is_inlined).skip(1);
            (frames.first()?.function.clone()?, callers.map(|frame| frame.offset).collect::<Vec<_>>()).into()
        };
        let wanted: Option<(String, Vec<u64>)> = key(site);
        let alike = known.into_iter().filter(|(other, _)| wanted.is_some() && key(*other) == wanted);
        alike.max_by_key(|(_, count)| *count).map(|(site, _)| site)
    }

    /// Pairs of waiters and holders by call site, the longest waiting first; returns from condition variables
    /// after the others, waits for signals last.
    fn pairs(&mut self, tables: &Tables) -> Vec<Pair> {
        type Key = (Use, CallSiteId, Option<CallSiteId>, bool, Option<OutOfSight>);
        let mut sums: BTreeMap<Key, PairSum> = BTreeMap::new();
        for ((which, waiter, holder), sum) in &tables.pairs {
            let out_of_sight = out_of_sight(*holder);
            let (holder, is_release) = self.holder(tables, which.0, *holder);
            if let Some(waiter) = self.call_site(*waiter) {
                sums.entry((*which, waiter, holder, is_release, out_of_sight)).or_default().merge(sum);
            }
        }
        let pairs =
            sums.into_iter().map(|(((lock, wanted), waiter, holder, is_release, out_of_sight), sum)| Pair {
                lock,
                role: role(wanted),
                waiter,
                holder,
                is_release,
                out_of_sight,
                count: sum.count,
                wait_total: self.clock.ns(sum.waited),
                wait_longest: self.clock.ns(sum.longest_wait),
                free: self.clock.ns(sum.free),
            });
        let mut pairs: Vec<Pair> = pairs.collect();
        pairs.sort_by_key(|pair| (pair.role.rank(), Reverse(pair.held()), Reverse(pair.count)));
        pairs
    }

    /// Waits with another lock held, in the order of pairs.
    fn held_waits(&self, tables: &Tables) -> Vec<HeldWait> {
        let threads: HashMap<u32, u32> =
            self.view.threads().map(|(number, table)| (number, table.id.load(Acquire))).collect();
        let thread = |table: &u32| threads.get(table).copied();
        let held_waits = tables.held_waits.iter().map(|(((lock, wanted), outer, how), sum)| HeldWait {
            outer: *outer,
            outer_role: role(how.0),
            lock: *lock,
            role: role(*wanted),
            is_timed: how.1,
            thread: sum.tables.first().filter(|_| sum.tables.len() == 1).and_then(thread),
            count: sum.waits.count,
            wait_total: self.clock.ns(sum.waits.waited),
            wait_longest: self.clock.ns(sum.waits.longest_wait),
            time_blocked: self.clock.ns(sum.blocked),
        });
        let mut held_waits: Vec<HeldWait> = held_waits.collect();
        held_waits.sort_by_key(HeldWait::order);
        held_waits
    }

    /// Acquisitions with another lock held, the most first.
    fn nests(&self, tables: &Tables) -> Vec<Nest> {
        let nest =
            |(((lock, wanted), (outer, held_as)), [count, waited, held]): (&(Use, Use), &[u64; 3])| Nest {
                outer: *outer,
                outer_role: role(*held_as),
                lock: *lock,
                role: role(*wanted),
                count: *count,
                wait_total: self.clock.ns(*waited),
                hold_total: self.clock.ns(*held),
            };
        let mut nests: Vec<Nest> = tables.nests.iter().map(nest).collect();
        nests.sort_by_key(|nest| Reverse(nest.count));
        nests
    }

    /// Waits that were kept whole, the longest first.
    fn slow_waits(
        &mut self,
        (same, meanings, moved): (&HashMap<u32, u32>, &Meanings, &Moved),
        tables: &Tables,
    ) -> Vec<SlowWait> {
        let has = |outcomes: u32, outcome: WaitOutcome| outcomes >> outcome as u32 & 1 != 0;
        let mut kept: Vec<SlowWait> = Vec::new();
        for wait in self.view.slow() {
            let (Some(lock), Some(noted)) =
                (same.get(&wait.lock).copied(), format::Role::from_number(wait.role))
            else {
                continue;
            };
            let noted = meanings.role(wait.lock, noted);
            let as_signal = moved.get(&(lock, wait.stack)).filter(|_| noted == format::Role::Signal);
            let (lock, noted) = as_signal.copied().unwrap_or((lock, noted));
            let (holder, is_release) = self.holder(tables, lock, wait.holder);
            let is_split = wait.is_split && as_signal.is_none();
            let role = role(noted);
            kept.push(SlowWait {
                thread: wait.thread,
                name: text(&wait.name).next().unwrap_or_default(),
                lock,
                role,
                call_site: self.call_site(wait.stack),
                holder,
                is_release,
                start: self.clock.since_start(wait.start),
                time: self.clock.ns(wait.end.saturating_sub(wait.start)),
                free: (is_split && role.is_lock() && !meanings.is_slept_for(wait.lock))
                    .then(|| self.clock.ns(wait.free)),
                queue: wait.queue,
                is_timed_out: has(wait.outcomes, WaitOutcome::TimedOut),
                holder_call: call_name(wait.call.into())
                    .map(|function| HolderCall { function, time: u64::from(wait.call_us) * 1_000 }),
            });
        }
        kept.sort_by_key(|wait| (Reverse(wait.time), wait.start));
        kept
    }

    /// What the recorder measured of itself.
    fn recorder(&self) -> RecorderCost {
        let found = &self.view.header().experiment;
        let light_uses = f64::from_bits(found.sums[EXPERIMENT - 1].load(Relaxed)).max(0.0) as u64;
        let experiment = experiment(found, self.clock);
        let waits = found.waits.load(Relaxed);
        // In light spans nothing is counted but uses; waits are as frequent there as in the others.
        let light_waits = match found.uses.load(Relaxed) {
            0 => 0,
            uses => (waits as f64 * (light_uses as f64 / uses as f64).min(1.0)) as u64,
        };
        let first = RecorderCost {
            uses: found.uses.load(Relaxed),
            waits,
            other_waits: found.others.load(Relaxed),
            cpu: found.cpu.load(Relaxed),
            start: found.start.load(Relaxed),
            experiment,
            left_out: light_uses,
            waits_left_out: light_waits,
            ..RecorderCost::default()
        };
        self.view.threads().fold(first, |sum, (_, table)| {
            let cost = &table.cost;
            let ticks = |counter: &AtomicU64| self.clock.ns(counter.load(Relaxed));
            let (calls_held, rare_held) = (ticks(&cost.calls_held), ticks(&cost.rare_held));
            let more = |sum: u64, more: u64| sum.saturating_add(more);
            RecorderCost {
                calls: more(sum.calls, more(ticks(&cost.calls), calls_held)),
                rare: more(sum.rare, more(ticks(&cost.rare), rare_held)),
                held: more(sum.held, more(calls_held, rare_held)),
                unwound: more(sum.unwound, cost.unwound.load(Relaxed)),
                recorded: more(sum.recorded, cost.recorded.load(Relaxed)),
                left_out: more(sum.left_out, cost.left_out.load(Relaxed)),
                waits_left_out: more(sum.waits_left_out, cost.waits_left_out.load(Relaxed)),
                ..sum
            }
        })
    }

    fn locks(
        &mut self,
        tables: &Tables,
        (same, meanings, taken): (&HashMap<u32, u32>, &Meanings, &[Taken]),
        (detail, duration): (Detail, u64),
        (pairs, unfinished): (&[Pair], &HashMap<u32, u64>),
    ) -> Vec<Lock> {
        let tables_used = self.view.threads().count() as u64;
        let mut records: HashMap<u32, Vec<u32>> = HashMap::new();
        for (other, counts) in same {
            records.entry(*counts).or_default().push(*other);
        }
        let mut blamed: HashMap<u32, Vec<&Pair>> = HashMap::new();
        for pair in pairs {
            blamed.entry(pair.lock).or_default().push(pair);
        }
        let mut locks: Vec<Lock> = Vec::new();
        let mut snapshots: HashMap<u32, u32> = HashMap::new();
        for (number, record) in self.view.locks().filter(|(number, _)| same.get(number) == Some(number)) {
            let meaning = meanings.get(number);
            let noted = kind(record.kind.load(Acquire));
            let Some(kind) = meaning.map(|wait| wait.kind).or(noted) else { continue };
            // What another record of the same lock knows better.
            let others =
                records.get(&number).into_iter().flatten().filter_map(|other| self.view.lock(*other));
            let best = others.max_by_key(|other| (other.is_created != 0, Reverse(other.since), other.thread));
            let best = best.unwrap_or(record);
            let text = |record: &format::Lock| {
                let bytes = self.view.text(record.name.load(Acquire))?;
                Some(String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned())
            };
            let name = match kind {
                Kind::Call => call_name(record.address),
                _ if meaning.is_some_and(|wait| wait.is_single || wait.is_by_function && !wait.is_placed) => {
                    meaning.and_then(|wait| wait.name.clone())
                }
                _ => text(record).or_else(|| text(best)),
            };
            let uses = tables.locks.range((number, format::Role::Write)..=(number, format::Role::Wake));
            let roles: Vec<RoleStats> = uses
                .map(|(which, sum)| {
                    let mut stats = self.role_stats(*which, sum, detail, tables_used);
                    let is_one = stats.role == Role::Write && duration > 0;
                    if is_one && kind.is_lock() && kind != Kind::RwLock {
                        // A hold that has not ended is in no measured sum.
                        let since = unfinished.get(&number).map_or(0, |ticks| self.clock.ns(*ticks));
                        let more = since.saturating_sub(stats.hold.total);
                        stats.hold.while_waited += more;
                        stats.hold.total += more;
                    }
                    let held = stats.held().filter(|_| is_one);
                    stats.utilisation = held.map(|held| (held.time as f64 / duration as f64).min(1.0));
                    stats.sites = self.sites(*which, tables);
                    stats
                })
                .collect();
            let mut lock = Lock {
                id: number,
                label: String::new(),
                name,
                address: record.address,
                kind,
                type_name: meaning.and_then(|wait| wait.name.clone()),
                place: None,
                is_several: meaning.is_some_and(|wait| wait.is_by_function && !wait.is_single),
                is_made: false,
                sampled: None,
                creation_site: self.call_site(best.stack.load(Acquire)),
                is_created: best.is_created != 0,
                is_destroyed: record.destroyed.load(Relaxed) != 0,
                roles,
            };
            let stack = self.view.stack(best.stack.load(Acquire));
            snapshots.extend(stack.map(|stack| (number, stack.maps)));
            if !lock.roles.is_empty() {
                blame(&mut lock, blamed.get(&number).map_or(&[], Vec::as_slice));
                locks.push(lock);
            }
        }
        for lock in taken_locks(taken) {
            let uses = tables.locks.range((lock.id, format::Role::Write)..=(lock.id, format::Role::Wake));
            let mut roles: Vec<RoleStats> =
                uses.map(|(which, sum)| self.role_stats(*which, sum, detail, tables_used)).collect();
            for stats in &mut roles {
                stats.sites = self.sites((lock.id, noted(stats.role)), tables);
            }
            locks.push(Lock { roles, ..lock });
        }
        labels::label(&mut locks, &snapshots, &self.call_sites, &self.maps, self.symbols);
        locks.sort_by_key(Lock::order);
        locks
    }

    /// Of waits that have several parts the longest part is known: the longest wait is no shorter than the
    /// mean.
    fn times(&self, count: u64, total: u64, longest: u64, bins: &[u64]) -> Times {
        let longest = if longest > 0 { longest.max(total.checked_div(count).unwrap_or(0)) } else { 0 };
        Times {
            count,
            total: self.clock.ns(total),
            longest: self.clock.ns(longest),
            histogram: histogram(bins),
        }
    }

    fn role_stats(&self, which: Use, sum: &LockSum, detail: Detail, tables_used: u64) -> RoleStats {
        let measured = sum.held_after_wait.and(sum.held);
        let others = sum.acquisitions.saturating_sub(sum.held_after_wait.count);
        // With everything measured, what is missing is held still.
        let is_whole = detail == Detail::Full && others.saturating_sub(sum.held.count) <= tables_used;
        let (estimated, error) = match detail {
            // No samples, but those that kept others waiting.
            Detail::Contended => (sum.held.total as f64, 0.0),
            _ if is_whole => (sum.held.total as f64, 0.0),
            _ => sum.held.estimate(others),
        };
        let (free, unsplit) = match self.view.header().locks {
            // Acquisitions without a wait are not seen: that a lock is free is not known.
            number if number == format::Locks::Library as u32 => (0, sum.waited),
            _ => (sum.free, sum.unsplit),
        };
        let while_waited = if detail == Detail::Contended { self.clock.ns(sum.held_waited) } else { 0 };
        let unsplit = unsplit.min(sum.waited);
        let free = free.min(sum.waited - unsplit);
        let [spun, parked, handed_over, timed_out, unknown, owner_changed, off_cpu, budget] = sum.outcomes;
        RoleStats {
            role: role(which.1),
            acquisitions: sum.acquisitions,
            contended: sum.contended,
            failed_tries: sum.failed_tries,
            wait: self.times(sum.contended, sum.waited, sum.longest_wait, &sum.waits),
            hold: Held {
                measured: self.times(measured.count, measured.total, measured.longest, &sum.holds),
                total: self.clock.ns_of(sum.held_after_wait.total as f64 + estimated).round() as u64
                    + while_waited,
                total_error: self.clock.ns_of(error).ceil() as u64,
                while_waited,
            },
            non_critical: {
                let lengths = &sum.non_critical_lengths;
                self.times(lengths.iter().sum(), sum.non_critical, 0, lengths)
            },
            split: if which.1.is_mutual() {
                Split {
                    held: self.clock.ns(sum.waited - unsplit - free),
                    free: self.clock.ns(free),
                    unknown: self.clock.ns(unsplit),
                    watched: self.clock.ns(sum.watched),
                    no_cpu: self.clock.ns(sum.no_cpu.min(sum.watched)),
                }
            } else {
                Split::default()
            },
            utilisation: None,
            outcomes: Outcomes {
                spun,
                parked,
                handed_over,
                timed_out,
                unknown,
                owner_changed,
                off_cpu,
                budget,
                still_waiting: sum.still_waiting,
            },
            wake_ups: sum.wake_ups,
            longest_queue: sum.longest_queue,
            strip: sum.strip.shown(),
            sites: Vec::new(),
            error: {
                let [acquisitions, contended, waited] = sum.spread.map(|variance| NORMAL * variance.sqrt());
                // What is wrong with the spans is so with all that was sampled.
                let spans = match acquisitions > 0.0 {
                    true => missed(&self.view.header().experiment),
                    false => 0.0,
                };
                let error = |sampled: f64, all: f64| (sampled + spans * all).ceil() as u64;
                SampleError {
                    acquisitions: error(acquisitions, sum.acquisitions as f64),
                    contended: error(contended, sum.contended as f64),
                    waited: error(self.clock.ns_of(waited), self.clock.ns_of(sum.waited as f64)),
                }
            },
        }
    }

    fn sites(&mut self, which: Use, tables: &Tables) -> Vec<SiteStats> {
        let mut sums: BTreeMap<CallSiteId, SiteSum> = BTreeMap::new();
        for ((_, stack), sum) in tables.sites.range((which, 0)..=(which, u32::MAX)) {
            if let Some(call_site) = self.call_site(*stack).filter(|_| !sum.is_empty()) {
                sums.entry(call_site).or_default().merge(sum);
            }
        }
        let sites = sums.into_iter().map(|(call_site, sum)| SiteStats {
            call_site,
            acquisitions: sum.acquisitions,
            contended: sum.contended,
            wait_total: self.clock.ns(sum.waited),
            wait_longest: self.clock.ns(sum.longest_wait),
            hold: Held {
                measured: self.times(sum.held.count, sum.held.total, sum.held.longest, &[]),
                total: self.clock.ns(sum.held.total),
                ..Held::default()
            },
            ..SiteStats::default()
        });
        sites.collect()
    }
}

/// By lock, the longest wait for it that had not ended, in ticks.
fn longest_unfinished(waiters: &[Waiter]) -> HashMap<u32, u64> {
    let mut longest: HashMap<u32, u64> = HashMap::new();
    for waiter in waiters.iter().filter(|waiter| waiter.role == format::Role::Write) {
        let ticks = longest.entry(waiter.begun.lock).or_default();
        *ticks = waiter.ticks.max(*ticks);
    }
    longest
}

/// The sites that blocked other threads (FreeBSD's `cnt_hold`, with real numbers): counts each wait for
/// `lock` at the site from which it was held then. A holder that never waited gets a site, too.
fn blame(lock: &mut Lock, pairs: &[&Pair]) {
    for pair in pairs {
        let Some(holder) = pair.holder else { continue };
        let role = holder_role(&lock.roles, pair, holder);
        let stats = &mut lock.roles[role];
        let is_it = |site: &SiteStats| site.call_site == holder && site.is_release == pair.is_release;
        let index = stats.sites.iter().position(is_it).unwrap_or_else(|| {
            stats.sites.push(SiteStats {
                is_release: pair.is_release,
                call_site: holder,
                ..SiteStats::default()
            });
            stats.sites.len() - 1
        });
        stats.sites[index].blocked += pair.count;
        stats.sites[index].blocked_total += pair.held();
    }
    for stats in &mut lock.roles {
        stats
            .sites
            .sort_by_key(|site| (Reverse(site.wait_total), Reverse(site.blocked_total), site.call_site));
    }
}

/// In which role the holder had the lock: a recording does not have it, but it was a role that has the call
/// site; readers are held up by writers only.
fn holder_role(roles: &[RoleStats], pair: &Pair, holder: CallSiteId) -> usize {
    let has = |wanted: Role| {
        roles
            .iter()
            .position(|stats| stats.role == wanted && stats.sites.iter().any(|site| site.call_site == holder))
    };
    let is = |wanted: Role| roles.iter().position(|stats| stats.role == wanted);
    let known = match pair.role {
        Role::Read => has(Role::Write).or_else(|| is(Role::Write)),
        Role::Write => has(Role::Write).or_else(|| has(Role::Read)).or_else(|| is(Role::Write)),
        other => is(other),
    };
    known.or_else(|| is(pair.role)).unwrap_or(0)
}
