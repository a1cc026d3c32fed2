//! What of a recording can be simulated, and what it lacks.
//!
//! A thread computes (its *non-critical section*), acquires an outermost lock, and while it holds that the
//! locks that the recording has within it. The lengths are drawn from the recorded histograms, which are
//! corrected in three steps, so that all of them together are the time that the program computed:
//!
//! 1. What is acquired within a section is simulated, so its time is not the section's.
//! 2. Where threads outnumber CPUs, times have preemptions in them. No CPU computes for longer than there is
//!    time, so the longest are shortened to one length until they fit.
//! 3. What recording took is subtracted: as much an acquisition, from the non-critical section before it, or
//!    from the section that it is in.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use spinpark_profile::model::{Detail, Kind, Lock, LocksOf, Nest, Profile, Role, RoleStats, Thread, Times};

use spinpark_sim::workload::{Inner, Lengths, Part, Replay, Replayed, Use};

/// A program as the simulator sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The program's path.
    pub program: String,
    /// Threads that used a lock.
    pub threads: u32,
    /// How many of them were at work at a time, on average, or waited for a lock ([`Phase::workers`]).
    pub workers: u32,
    /// CPUs that it could use; 0: not known.
    pub cpus: u32,
    /// For how long it was recorded, ns.
    pub duration_ns: u64,
    /// When its threads were at work: this is simulated.
    pub phase: Phase,
    /// Acquisitions of the simulated locks in that time.
    pub acquisitions: u64,
    /// What a thread computed before an outermost acquisition, ns on average, without what recording took.
    pub non_critical_ns: f64,
    /// The simulated mutex that works as its own.
    pub lock: &'static str,
    /// Time with the recorder ÷ without; 1 if that is not known.
    pub cost: f64,
    /// Whether its threads wait for signals of condition variables, which are simulated as if there were
    /// always work.
    pub waits_for_signals: bool,
    /// Its locks.
    pub replay: Replay,
    /// What the recording does not say, and what is simulated instead: whole sentences.
    pub lacks: Vec<String>,
}

/// Why a recording cannot be simulated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// See the message.
    #[error(
        "{program} was recorded with the detail `{detail}`, which does not time all sections\nRecord it again: spinpark profile \
         --detail full -- {program}"
    )]
    Detail {
        /// The program.
        program: String,
        /// What was recorded.
        detail: &'static str,
    },
    /// See the message.
    #[error(
        "{0} acquired no mutex and no read-write lock while it was recorded, so there is nothing to simulate"
    )]
    NoLocks(String),
}

/// This many locks are simulated, those with the most acquisitions.
const MOST_LOCKS: usize = 512;
/// How much longer than the threads' time their sections may seem: that is known by parts of the recording.
const ROUNDED: f64 = 1.2;

impl Recorded {
    /// What this profile says.
    ///
    /// # Errors
    ///
    /// It has not enough detail, or no locks.
    pub fn of(profile: &Profile) -> Result<Self, Unfit> {
        let detail = match profile.detail {
            Detail::Off => Some("off"),
            Detail::Contended => Some("contended"),
            Detail::Sampled | Detail::Full => None,
        };
        if let Some(detail) = detail {
            return Err(Unfit::Detail { program: profile.program.clone(), detail });
        }
        let mut used: Vec<&Lock> = profile.locks.iter().filter(|lock| acquisitions(lock) > 0).collect();
        used.sort_by_key(|lock| std::cmp::Reverse(acquisitions(lock)));
        let all: u64 = used.iter().copied().map(acquisitions).sum();
        if all == 0 {
            return Err(Unfit::NoLocks(profile.program.clone()));
        }
        let (kept, rest) = used.split_at(used.len().min(MOST_LOCKS));
        let kept_acquisitions: u64 = kept.iter().copied().map(acquisitions).sum();
        let phase = Phase::of(profile);
        let threads = profile.threads.iter().map(|thread| thread.users.max(1)).sum::<u32>().max(1);
        let workers = (phase.workers.round() as u32).clamp(1, threads);
        let (nests, both_ways) = nests(profile, kept);
        let mut locks = replayed(profile, kept, &nests);
        // The phase stands for the whole: as if all acquisitions had been at its rate.
        let time = phase.length as f64 / phase.share.max(1e-9);
        let numbers = numbers(kept);
        let is_contradictory =
            computed(&locks, &numbers, Lengths::clone) > ROUNDED * time * f64::from(workers);
        if (1..workers).contains(&profile.cpus) && !is_contradictory {
            cap(&mut locks, &numbers, time * f64::from(profile.cpus));
        }
        let cost = cost(profile);
        subtract(&mut locks, &numbers, cost);
        let mut lacks = lacks(profile, kept);
        if is_contradictory {
            lacks.push(String::from(
                "Sections take longer than the threads' time together, so locks are held within each other in a way that the recording \
                 does not have. They are simulated one after the other: the rate is too low.",
            ));
        }
        if workers < threads {
            lacks.push(format!(
                "Of its {threads} threads, on average {workers} at a time did not wait for signals or for others to end. \
                 That many are simulated to reproduce the recording; of those that --threads asks for, all have work."
            ));
        }
        if both_ways > 0 {
            lacks.push(format!(
                "Locks are held within each other in both orders, in {both_ways} pairs: that can deadlock, so the rarer order is \
                 simulated one after the other."
            ));
        }
        if !rest.is_empty() {
            lacks.push(format!(
                "Simulated are the {MOST_LOCKS} locks with the most acquisitions; {} others have {:.1} % of them.",
                rest.len(),
                100.0 * (1.0 - kept_acquisitions as f64 / all as f64)
            ));
        }
        if workers == 1 || profile.cpus == 1 {
            lacks.push(String::from(
                "One thread or one CPU at a time worked: how much longer sections take where several cores change the same data is not \
                 recorded. The rate with more threads is an upper limit; record it with at least two on two CPUs.",
            ));
        }
        let (outermost, non_critical) = total(&locks, |used| (used.outermost, used.non_critical.mean()));
        Ok(Self {
            program: profile.program.clone(),
            threads,
            workers,
            cpus: profile.cpus,
            duration_ns: profile.duration,
            phase,
            acquisitions: (kept_acquisitions as f64 * phase.share).round() as u64,
            non_critical_ns: non_critical / outermost.max(1) as f64,
            lock: match profile.locks_of {
                LocksOf::Glibc => "classic-mutex-2003",
                LocksOf::Spinpark | LocksOf::Library => "spinpark",
            },
            cost,
            waits_for_signals: waits_for_signals(profile),
            replay: Replay { locks, rwlock: String::from("spinpark") },
            lacks,
        })
    }

    /// Whether its rate with this number of threads is at most the simulated one, since what makes it slower
    /// is not simulated.
    #[must_use]
    pub fn is_upper_limit(&self, threads: u32) -> bool {
        let is_alone = self.workers == 1 || self.cpus == 1;
        self.waits_for_signals || is_alone && threads > self.workers
    }

    /// Acquisitions per second while its threads were at work.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.acquisitions as f64 / (self.phase.length.max(1) as f64 * 1e-9)
    }

    /// The same without the time that recording took.
    #[must_use]
    pub fn unrecorded_rate(&self) -> f64 {
        self.rate() * self.cost
    }
}

/// The use of a lock as a lock: not of condition variables, and not returns from them.
fn roles(lock: &Lock) -> impl Iterator<Item = &RoleStats> {
    let is_lock = lock.kind != Kind::Condvar;
    lock.roles.iter().filter(move |role| is_lock && [Role::Write, Role::Read].contains(&role.role))
}

fn acquisitions(lock: &Lock) -> u64 {
    roles(lock).map(|role| role.acquisitions).sum()
}

fn waits_for_signals(profile: &Profile) -> bool {
    profile.locks.iter().any(|lock| lock.kind == Kind::Condvar)
}

fn cost(profile: &Profile) -> f64 {
    profile.cost.as_ref().map_or(1.0, |cost| cost.ratio.max(1.0))
}

/// The acquisitions of these locks within others of them that are simulated so; and how many pairs are not,
/// since that could deadlock: the rarer of two orders.
fn nests(profile: &Profile, kept: &[&Lock]) -> (Vec<Nest>, usize) {
    let known: BTreeSet<u32> = kept.iter().map(|lock| lock.id).collect();
    let is_lock = |role: Role| matches!(role, Role::Write | Role::Read);
    let mut inner_of: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let (mut nests, mut both_ways) = (Vec::new(), 0);
    // The most frequent first.
    for nest in profile.nests.iter().filter(|nest| is_lock(nest.role) && is_lock(nest.outer_role)) {
        if ![nest.lock, nest.outer].iter().all(|lock| known.contains(lock)) {
            continue;
        }
        if leads_to(&inner_of, nest.lock, nest.outer) {
            both_ways += usize::from(nest.lock != nest.outer);
            continue;
        }
        inner_of.entry(nest.outer).or_default().insert(nest.lock);
        nests.push(*nest);
    }
    (nests, both_ways)
}

/// Whether `to` is acquired within `from`, or is it.
fn leads_to(inner_of: &BTreeMap<u32, BTreeSet<u32>>, from: u32, to: u32) -> bool {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(lock) = left.pop() {
        if lock == to {
            return true;
        }
        if seen.insert(lock) {
            left.extend(inner_of.get(&lock).into_iter().flatten());
        }
    }
    false
}

/// The locks with what was recorded of them, as long as it was recorded.
fn replayed(profile: &Profile, kept: &[&Lock], nests: &[Nest]) -> Vec<Replayed> {
    let numbers: HashMap<u32, usize> = kept.iter().enumerate().map(|(at, lock)| (lock.id, at)).collect();
    let mut locks: Vec<Replayed> = Vec::new();
    for lock in kept {
        let mut uses = [Use::default(), Use::default()];
        for role in roles(lock) {
            let number = role.acquisitions;
            let within = nests.iter().filter(|nest| (nest.lock, nest.role) == (lock.id, role.role));
            let around = || nests.iter().filter(|nest| (nest.outer, nest.outer_role) == (lock.id, role.role));
            let others: u64 = around().map(|nest| nest.wait_total + nest.hold_total).sum();
            let own = role.hold.total.saturating_sub(others) as f64 / number.max(1) as f64;
            let hold = lengths(&role.hold.measured).unwrap_or_else(|| Lengths::all(1, own));
            let inner = around().map(|nest| Inner {
                lock: numbers[&nest.lock],
                is_shared: nest.role == Role::Read,
                number: nest.count as f64 / number.max(1) as f64,
            });
            uses[usize::from(role.role == Role::Read)] = Use {
                outermost: number.saturating_sub(within.map(|nest| nest.count).sum()),
                non_critical: lengths(&role.non_critical).unwrap_or_default(),
                hold: with_mean(&hold, own),
                inner: inner.collect(),
            };
        }
        locks.push(Replayed { name: lock.label.clone(), is_rwlock: lock.kind == Kind::RwLock, uses });
    }
    guess_non_critical(profile, &mut locks);
    locks
}

/// Where no non-critical sections were recorded they are as long as elsewhere; where none were anywhere, all
/// the threads' time outside sections is theirs.
fn guess_non_critical(profile: &Profile, locks: &mut [Replayed]) {
    let is_known = |used: &Use| used.non_critical != Lengths::default();
    let (number, sum) = total(locks, |used| match is_known(used) {
        true => (used.outermost, used.non_critical.mean()),
        false => (0, 0.0),
    });
    let mean = if number > 0 {
        sum / number as f64
    } else {
        let waited: u64 = profile.locks.iter().flat_map(|lock| &lock.roles).map(|role| role.wait.total).sum();
        let time: u64 = profile.threads.iter().map(|thread| thread.time.min(profile.duration)).sum();
        let (_, held) = total(locks, |used| (used.outermost, used.hold.mean()));
        let (outermost, _) = total(locks, |used| (used.outermost, 0.0));
        (time.saturating_sub(waited) as f64 - held).max(0.0) / outermost.max(1) as f64
    };
    for used in locks.iter_mut().flat_map(|lock| &mut lock.uses).filter(|used| !is_known(used)) {
        used.non_critical = Lengths::Exponential(mean);
    }
}

/// These times, if there are any, with their mean.
fn lengths(times: &Times) -> Option<Lengths> {
    let part = |(bin, number): (usize, &u64)| {
        let low = if bin == 0 { 0.0 } else { (1_u64 << bin.min(62)) as f64 };
        Part { number: *number, low, high: (1_u64 << (bin + 1).min(63)) as f64 }
    };
    let parts: Vec<Part> =
        times.histogram.iter().enumerate().filter(|(_, number)| **number > 0).map(part).collect();
    let number: u64 = parts.iter().map(|part| part.number).sum();
    (number > 0).then(|| with_mean(&Lengths::Parts(parts), times.total as f64 / times.count.max(1) as f64))
}

fn with_mean(lengths: &Lengths, mean: f64) -> Lengths {
    match lengths.mean() {
        0.0 => lengths.clone(),
        now => lengths.scaled(mean / now),
    }
}

/// The sum of a number, and of that × a length, over all uses.
fn total(locks: &[Replayed], of: impl Fn(&Use) -> (u64, f64)) -> (u64, f64) {
    let uses = locks.iter().flat_map(|lock| &lock.uses);
    uses.map(of).fold((0, 0.0), |(numbers, sum), (number, ns)| (numbers + number, sum + number as f64 * ns))
}

/// How often each lock was acquired exclusively and shared, outermost and within others.
fn numbers(kept: &[&Lock]) -> Vec<[f64; 2]> {
    let of = |lock: &&Lock, wanted: Role| {
        roles(lock).filter(|role| role.role == wanted).map(|role| role.acquisitions as f64).sum()
    };
    kept.iter().map(|lock| [of(lock, Role::Write), of(lock, Role::Read)]).collect()
}

/// The time computed in all acquisitions, ns.
fn computed(locks: &[Replayed], numbers: &[[f64; 2]], change: impl Fn(&Lengths) -> Lengths) -> f64 {
    let mut sum = 0.0;
    for (lock, numbers) in locks.iter().zip(numbers) {
        for (used, number) in lock.uses.iter().zip(numbers) {
            sum += used.outermost as f64 * change(&used.non_critical).mean();
            sum += number * change(&used.hold).mean();
        }
    }
    sum
}

fn change_all(locks: &mut [Replayed], change: impl Fn(&Lengths) -> Lengths) {
    for used in locks.iter_mut().flat_map(|lock| &mut lock.uses) {
        used.non_critical = change(&used.non_critical);
        used.hold = change(&used.hold);
    }
}

/// Shortens the longest times to one length, so that all are at most `time` ns.
fn cap(locks: &mut [Replayed], numbers: &[[f64; 2]], time: f64) {
    if computed(locks, numbers, Lengths::clone) <= time {
        return;
    }
    let (mut low, mut high) = (1.0_f64, 1e12_f64);
    while high / low > 1.0001 {
        let middle = (low * high).sqrt();
        let fits = computed(locks, numbers, |lengths| lengths.capped(middle)) <= time;
        (low, high) = if fits { (middle, high) } else { (low, middle) };
    }
    change_all(locks, |lengths| lengths.capped(low));
}

/// Leaves out what recording took, which made the program `cost` times as slow.
fn subtract(locks: &mut [Replayed], numbers: &[[f64; 2]], cost: f64) {
    let before = computed(locks, numbers, Lengths::clone);
    let acquisitions: f64 = numbers.iter().flatten().sum();
    let wanted = before / cost;
    let each = (before - wanted) / acquisitions.max(1.0);
    for used in locks.iter_mut().flat_map(|lock| &mut lock.uses) {
        let inner: f64 = used.inner.iter().map(|inner| inner.number).sum();
        used.non_critical = used.non_critical.shortened(each);
        used.hold = used.hold.shortened(each * inner);
    }
    // What was shorter than that.
    let left = computed(locks, numbers, Lengths::clone);
    if left > 0.0 {
        change_all(locks, |lengths| lengths.scaled(wanted / left));
    }
}

fn lacks(profile: &Profile, kept: &[&Lock]) -> Vec<String> {
    let order = if profile.nests.is_empty() && profile.detail != Detail::Full {
        "A recording with the detail `sampled` has no order of acquisitions: each simulated thread takes the locks at random, by their \
         shares, never one within another."
    } else {
        "A recording does not have which lock is acquired after which: each simulated thread takes the outermost locks at random, by \
         their shares; those that it takes meanwhile are within the same ones as recorded."
    };
    let mut lacks = vec![
        order.to_owned(),
        if profile.locks.iter().flat_map(roles).any(|role| role.non_critical.count > 0) {
            String::from("Sleep and I/O count as computing, inside and outside of sections.")
        } else {
            String::from(
                "It has no non-critical sections: between two acquisitions a thread computes, exponentially distributed around the \
                 mean. Sleep and I/O count as computing.",
            )
        },
        String::from("It has no data: each exclusive section changes one cache line beside its lock."),
    ];
    if waits_for_signals(profile) {
        lacks.push(String::from(
            "It has no causes of signals: waits for condition variables are left out, as if there were always work. The rate is \
             an upper limit.",
        ));
    }
    if kept.iter().any(|lock| lock.kind == Kind::RwLock) {
        lacks.push(String::from(
            "The simulator has no read-write lock of glibc's: those of the program are ours in every row.",
        ));
    }
    if profile.detail == Detail::Sampled {
        lacks.push(String::from("Times of uncontended sections are samples (detail `sampled`)."));
    }
    lacks
}

const PARTS: usize = 64;

/// The part of a recording that is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Its start, ns after that of the recording.
    pub start: u64,
    /// Its length, ns.
    pub length: u64,
    /// Which part of all acquisitions it has.
    pub share: f64,
    /// How many threads were at work at a time, on average: idle ones wait for signals, or for the ends of
    /// others.
    pub workers: f64,
}

impl Phase {
    /// From the first to the last time at which at least three quarters as many threads acquired locks as at
    /// a typical acquisition. The whole recording, if it does not say when they did.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let idle = |thread: &Thread| thread.signals.saturating_add(thread.others);
        let at_work = |thread: &Thread| thread.time.min(profile.duration).saturating_sub(idle(thread));
        let all = profile.threads.iter().map(at_work).sum::<u64>();
        let duration = profile.duration.max(1);
        let whole = Self { start: 0, length: duration, share: 1.0, workers: all as f64 / duration as f64 };
        let activities = || profile.threads.iter().map(|thread| &thread.activity);
        let part = activities().map(|activity| activity.part).max().unwrap_or(0).max(1);
        // Each is a power of two of a µs, and of these there are at most 64.
        let by_thread: Vec<Vec<u64>> = activities()
            .map(|activity| {
                let mut numbers = vec![0; PARTS];
                for (at, number) in (0..).zip(&activity.acquisitions) {
                    let at = u64::saturating_mul(at, activity.part) / part;
                    numbers[(at as usize).min(PARTS - 1)] += number;
                }
                numbers
            })
            .collect();
        let sum = |at: usize| by_thread.iter().map(|numbers| numbers[at]).sum::<u64>();
        let threads = |at: usize| by_thread.iter().filter(|numbers| numbers[at] > 0).count();
        let acquisitions: u64 = (0..PARTS).map(sum).sum();
        if acquisitions == 0 {
            return whole;
        }
        let typical =
            (0..PARTS).map(|at| sum(at) as f64 * threads(at) as f64).sum::<f64>() / acquisitions as f64;
        // A thread may acquire nothing in a part; start-up and end have one thread, of two or more.
        let is_busy = |at: &usize| threads(*at) as f64 >= 0.75 * typical;
        let (Some(mut first), Some(mut last)) = ((0..PARTS).find(is_busy), (0..PARTS).rfind(is_busy)) else {
            return whole;
        };
        // Threads begin and end within a part: the outermost two go, where enough are left.
        const FEW: usize = 6;
        if last - first >= FEW {
            (first, last) = (first + 1, last - 1);
        }
        let at = |parts: usize| (parts as u64).saturating_mul(part).min(duration);
        let (start, end) = (at(first), at(last + 1));
        let length = (end - start).max(1);
        let is_idle = |at: usize| idle(&profile.threads[at]) as f64 / profile.threads[at].time.max(1) as f64;
        let present = |numbers: &[u64]| {
            let (from, to) = (numbers.iter().position(|n| *n > 0), numbers.iter().rposition(|n| *n > 0));
            let (Some(from), Some(to)) = (from, to) else { return 0.0 };
            (last.min(to) + 1).saturating_sub(first.max(from)) as f64 * part as f64
        };
        let workers: f64 = by_thread
            .iter()
            .enumerate()
            .map(|(at, numbers)| present(numbers) * (1.0 - is_idle(at).min(1.0)))
            .sum();
        Self {
            start,
            length,
            share: (first..=last).map(sum).sum::<u64>() as f64 / acquisitions as f64,
            workers: workers / length as f64,
        }
    }
}
