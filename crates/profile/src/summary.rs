//! The summary, in sentences: which lock matters, which function holds it, which one waits, and whether
//! waiting matters.
//!
//! Waiting for a signal of a condition variable is not waiting for a lock: a thread without work waits for
//! work. It has its own sentence, and no share includes it. Nor does any share include returns from condition
//! variables: they begin with the signal, so what looks like waiting for the mutex may be a thread without a
//! CPU. Where signals hand a well-known lock of a runtime over (CPython's GIL), waiting for them is waiting
//! for that lock.

use spinpark_measure::text::units::{count, short_percent, time};

use crate::blame::{Blame, Whole};
use crate::glibc_locks;
use crate::known_locks::handed_over;
use crate::model::{Detail, Kind, Lock, Profile, Role};
use crate::silence::Said;
use crate::{chain, holders, other_waits, phases, silence, split, stuck, unnamed};

/// Waiting is not what makes a program slow below this share of the threads' time,
const NOTHING: f64 = 0.01;
/// nor below this share and this average number of waiting threads. Both are checked, because the time of
/// threads that ended is not exact.
const SMALL_SHARE: f64 = 0.02;
const SMALL_WAITERS: f64 = 0.05;
/// What is not known comes before what is, if it is this many times as much.
const MUCH_MORE: u64 = 4;
/// Returns from condition variables are reported above this share of all waiting, without that for signals.
const BACK: f64 = 0.1;

/// The summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// One or two sentences.
    pub headline: String,
    /// How much waiting there was, which threads waited, and what was left out: whole sentences.
    pub details: Vec<String>,
    /// Time waited for locks ([`Profile::lock_wait`]) ÷ time of all threads
    /// ([`Thread::time`](crate::model::Thread::time)), 0 to 1.
    pub share_of_time: f64,
    /// How many threads waited for a lock at a time, on average.
    pub waiters: f64,
    /// Whether there is too little waiting to matter.
    pub is_small: bool,
    /// [`Lock::id`] of the lock that was waited for most.
    pub lock: Option<u32>,
}

/// What the summary begins with.
enum Lead<'a> {
    /// Recording was off.
    Off,
    /// A runtime's lock, which signals hand over, and how long threads waited for it.
    Runtime(&'a Lock, u64),
    /// Waiting that may be for locks.
    Unclear,
    /// Returns from condition variables.
    Back,
    /// Little or no waiting for locks.
    Silence,
    /// The lock that was waited for most.
    Lock,
}

fn share_of(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Whether so much waiting (ns) is not what makes a program slow.
pub(crate) fn is_little(profile: &Profile, waited: u64) -> bool {
    // A process has a thread at any time.
    let share = share_of(waited, profile.thread_time().max(profile.duration));
    share < NOTHING || share < SMALL_SHARE && share_of(waited, profile.duration) < SMALL_WAITERS
}

/// The summary of a profile.
#[must_use]
pub fn summary(profile: &Profile) -> Summary {
    let waited = profile.lock_wait();
    let share_of_time = share_of(waited, profile.thread_time()).min(1.0);
    let waiters = share_of(waited, profile.duration);
    let is_little = |waited| is_little(profile, waited);
    let is_small = is_little(waited);
    // Returns from condition variables may be contention, too.
    let unclear = profile.unclear_wait();
    let is_back_first = is_small && !is_little(profile.waited()) && profile.back_wait() >= unclear;
    let top = profile.locks.first().filter(|lock| lock.lock_wait() > 0);
    let blame = top.map(|top| Blame::of(profile, top, waited));
    let runtime = runtime(profile).filter(|(_, waited)| !is_little(*waited));
    // Its mutex is a part of it: a thread that waits there waits for the runtime's lock, too.
    let of_runtimes = profile.locks.iter().filter(|lock| handed_over(&lock.label).is_some());
    let of_runtimes: u64 = of_runtimes.map(Lock::lock_wait).sum();
    // Locks may be among what is not known: it comes first where they are much more than what is known.
    let known = waited.max(runtime.map_or(0, |(_, waited)| waited));
    let is_unclear_first = !is_back_first
        && !is_little(unclear)
        && (is_small && runtime.is_none() || unclear > MUCH_MORE * known);
    let is_before_locks =
        |by_signals: u64| is_small || by_signals + of_runtimes > waited.saturating_sub(of_runtimes);
    let runtime_first = runtime.filter(|(_, by_signals)| !is_unclear_first && is_before_locks(*by_signals));
    let lead = match (runtime_first, top) {
        _ if profile.locks.is_empty() && profile.detail == Detail::Off => Lead::Off,
        (Some((lock, waited)), _) => Lead::Runtime(lock, waited),
        _ if is_unclear_first => Lead::Unclear,
        _ if is_back_first => Lead::Back,
        (None, Some(_)) if !is_small => Lead::Lock,
        _ => Lead::Silence,
    };

    let how_much = || amount(profile, waited, share_of_time, waiters);
    let also = || format!("Threads also waited {}.", how_much());
    let blamed = |whole: Whole| blame.as_ref().map(|blame| blame.sentence(whole));
    let of_known = match unclear > waited / 10 {
        true => Whole::KnownWaiting,
        false if holders::is_seldom(profile) => Whole::Found,
        false => Whole::Waiting,
    };
    let Said { headline, details: said } = match lead {
        Lead::Off => Said::plain(String::from("Nothing was recorded: recording was off.")),
        Lead::Runtime(lock, by_signals) => {
            let headline = of_runtime(profile, lock, by_signals);
            let locks = blamed(Whole::Waiting).filter(|_| !is_small).map(|blamed| [also(), blamed]);
            Said { headline, details: locks.into_iter().flatten().collect() }
        }
        Lead::Unclear => {
            let locks = blamed(Whole::That).map(|blamed| [also(), blamed]);
            let headline = other_waits::unclear(profile).unwrap_or_default();
            Said { headline, details: locks.into_iter().flatten().collect() }
        }
        Lead::Back => {
            Said { headline: back_first(profile), details: blamed(Whole::Waiting).into_iter().collect() }
        }
        Lead::Silence => {
            let little = top.map(|_| how_much());
            let Said { headline, mut details } =
                silence::verdict(profile, little.as_deref(), is_little(holders::most_waiting(profile)));
            details.extend(blamed(of_known));
            Said { headline, details }
        }
        Lead::Lock => {
            let headline = blamed(of_known).unwrap_or_default();
            Said { headline, details: vec![format!("Threads waited {}.", how_much())] }
        }
    };

    // Threads that were stuck come before everything else.
    let stuck = stuck::stuck(profile);
    let (first, stuck) = match stuck::deadlock(profile) {
        None if !is_small && stuck::leads(profile) => (stuck, None),
        deadlock => (deadlock, stuck),
    };
    let mut opening: Vec<String> = deadlocks(profile).into_iter().collect();
    let headline = match first {
        None => headline,
        Some(first) => {
            opening.extend(stuck::of_deadlocks(profile));
            if !is_small || is_back_first || profile.deadlocks.is_empty() {
                opening.push(headline);
            }
            first
        }
    };
    opening.extend(said);
    opening.extend(stuck);
    // What is not in the recording comes after the first of these, and what weighs little after all. A verdict of
    // silence begins with it.
    let (absent, absent_of_little) = match silence::absent(profile) {
        Some((_, true)) if (top.is_none() || is_small) && !is_back_first => (None, None),
        Some((absent, true)) => (Some(absent), None),
        Some((absent, false)) => (None, Some(absent)),
        None => (None, None),
    };
    let mut opening = opening.into_iter();
    let mut details: Vec<String> = opening.next().into_iter().collect();
    details.extend(absent);
    details.extend(top.filter(|_| !is_small).and_then(|_| silence::waited_elsewhere(profile)));
    details.extend(opening);
    details.extend(absent_of_little);
    if let (Some(top), Some(blame)) = (top, &blame) {
        let (of, what) = blame.class().unwrap_or((profile, top));
        let is_it = !is_small && top.lock_wait() as f64 >= 0.5 * waited as f64;
        details.extend(spread(profile, top));
        details.extend(holders::meanwhile(profile, top).filter(|_| !is_small));
        details.extend(roles(top).filter(|_| profile.sampling.is_none()));
        details.extend(of_glibc(top).filter(|_| is_it));
        if is_it || blame.class().is_some() && !is_small {
            details.extend(split::sentences(of, what));
        }
        details.extend(chain::inner(of, what).filter(|_| !is_small));
        details.extend(others(profile, waited));
    }
    if !is_small {
        details.extend(phases::changes(profile));
    }
    details.extend(back(profile).filter(|_| !is_back_first || runtime.is_some()));
    if let Some((lock, waited)) = runtime.filter(|_| runtime_first.is_none()) {
        details.push(of_runtime(profile, lock, waited));
    }
    let signals = profile.signal_wait() - runtime.map_or(0, |(_, waited)| waited);
    if let Some(which) = other_waits::signals(profile).filter(|_| signals > 0) {
        details.push(format!(
            "Threads also waited {} {which}: for work, or for a resource (a pool, a semaphore).",
            time(signals as f64)
        ));
    }
    if !is_unclear_first
        && (!is_little(unclear) || unclear > waited / 10 && unclear > profile.duration / 1_000)
    {
        details.extend(other_waits::unclear(profile));
    }
    details.extend(chain::two_orders(profile));
    details.extend(stuck::unsignalled(profile));
    details.extend(unnamed::hint(profile));
    details.extend(holders::how_sure(profile));
    let is_small = is_small && !is_back_first && !is_unclear_first && runtime.is_none();
    Summary { headline, details, share_of_time, waiters, is_small, lock: top.map(|lock| lock.id) }
}

/// The lock of a runtime that threads waited for most by signals, and how long.
fn runtime(profile: &Profile) -> Option<(&Lock, u64)> {
    let waited = |lock: &Lock| lock.role(Role::Signal).map_or(0, |stats| stats.wait.total);
    let locks = profile.locks.iter().filter(|lock| handed_over(&lock.label).is_some());
    locks.map(|lock| (lock, waited(lock))).max_by_key(|(_, waited)| *waited)
}

/// `Threads waited 744 ms for `CPython's GIL`, 29 % of the time of 4 threads: one thread at a time runs
/// Python code.`
fn of_runtime(profile: &Profile, lock: &Lock, waited: u64) -> String {
    let (threads, _) = profile.threads_and_time();
    let share = (waited as f64 / profile.thread_time().max(1) as f64).min(1.0);
    format!(
        "Threads waited {} for `{}`, {} of the time of {}: {}.",
        time(waited as f64),
        lock.label,
        short_percent(share),
        other_waits::of_threads(threads),
        handed_over(&lock.label).unwrap_or("it is handed over by signals")
    )
}

/// Returns from condition variables, in two sentences.
fn back(profile: &Profile) -> Option<String> {
    let (back, all) = (profile.back_wait(), profile.waited());
    let another = if back < all { "another " } else { "" };
    let time = time(back as f64);
    (back as f64 > BACK * all as f64)
        .then(|| format!("Returning from condition variables took {another}{time}: {BACK_BECAUSE}"))
}

/// The same where threads waited little for locks.
fn back_first(profile: &Profile) -> String {
    let little = match (profile.lock_wait(), profile.is_partial()) {
        (0, true) => "No wait for a lock was recorded, but records are missing;",
        (0, false) => "No thread waited for locks, but",
        _ => "Threads waited little for locks, but",
    };
    let back = profile.back_wait();
    let share = short_percent((back as f64 / profile.thread_time().max(1) as f64).min(1.0));
    let others = split::cpus_of_others(profile).map_or(String::new(), |others| {
        let cpus = count(profile.cpus.into());
        format!(
            " Other programs used {} of the {cpus} CPUs: record again while the machine is idle.",
            short_percent(others)
        )
    });
    format!(
        "{little} returning from condition variables took {}, {share} of the threads' time: {BACK_BECAUSE}{others}",
        time(back as f64)
    )
}

const BACK_BECAUSE: &str = "the mutex was contended, or threads woke late. The recorder cannot tell which.";

/// `1.23 s for locks, 34 % of the time of 8 threads; 2.7 were waiting on average`.
fn amount(profile: &Profile, waited: u64, share: f64, waiters: f64) -> String {
    let (threads, thread_time) = profile.threads_and_time();
    // Most of them lived for a part of the run.
    let at_a_time = thread_time as f64 / profile.duration.max(1) as f64;
    let each = if profile.merged.is_some() { " in a process" } else { "" };
    let at_a_time = match at_a_time {
        few if few >= 0.5 * threads as f64 => String::new(),
        few if few < 9.95 => format!(", {} at a time{each}", shown(few)),
        few => format!(", {few:.0} at a time{each}"),
    };
    let waiting = match waiters {
        waiters if waiters < 0.005 => String::from("fewer than 0.005"),
        waiters if waiters < 9.95 => shown(waiters),
        waiters => format!("{waiters:.0}"),
    };
    // Where a thread spins before it sleeps, that is not seen.
    let unseen = profile
        .locks
        .iter()
        .filter(|lock| lock.is_slept_for() && !lock.is_made)
        .map(Lock::lock_wait)
        .sum::<u64>();
    let least = if unseen > waited / 10 { "at least " } else { "" };
    let time = format!("{least}{}", time(waited as f64));
    match threads {
        0 => format!("{time} for locks"),
        1 => format!("{time} for locks, {} of the time of one thread", short_percent(share)),
        threads => format!(
            "{time} for locks, {} of the time of {} threads{at_a_time}; {waiting} were waiting on average{each}",
            short_percent(share),
            count(threads)
        ),
    }
}

fn shown(number: f64) -> String {
    if number < 0.095 { format!("{number:.2}") } else { format!("{number:.1}") }
}

/// What to do about a lock of glibc's own, which no other lock can take the place of.
fn of_glibc(top: &Lock) -> Option<String> {
    let sampled = top.sampled.as_ref()?;
    let advice = glibc_locks::advice(&sampled.of, &sampled.function).unwrap_or("Call it less often.");
    Some(format!("It is inside of glibc: no library can replace it. {advice}"))
}

/// Readers and writers apart.
fn roles(top: &Lock) -> Option<String> {
    if top.kind != Kind::RwLock {
        return None;
    }
    let of = |role: Role| top.role(role).map_or((0, 0), |stats| (stats.wait.total, stats.contended));
    let (readers, writers) = (of(Role::Read), of(Role::Write));
    let all = (readers.0 + writers.0) as f64;
    let part = |role: &str, (total, waits): (u64, u64)| {
        format!("{role} waited {} ({} waits)", short_percent(total as f64 / all), count(waits))
    };
    Some(format!("Of this, {}, {}.", part("readers", readers), part("writers", writers)))
}

/// In how many processes threads waited for a lock, of a profile that adds several up.
fn spread(profile: &Profile, top: &Lock) -> Option<String> {
    let merged = profile.merged.as_ref().filter(|merged| merged.processes > 1)?;
    let spread = merged.spread.iter().find(|spread| spread.lock == top.id && spread.processes > 0)?;
    let most = match spread.processes {
        1 => format!(
            "Threads waited for it in one of {} processes: {}",
            count(merged.processes),
            spread.most_in
        ),
        some => format!(
            "Threads waited for it in {} of {} processes, the longest in {}",
            count(some),
            count(merged.processes),
            spread.most_in
        ),
    };
    Some(format!("{most} ({}).", time(spread.most as f64)))
}

/// Of a profile that adds several up: how many processes had a deadlock.
fn deadlocks(profile: &Profile) -> Option<String> {
    let merged = profile.merged.as_ref().filter(|merged| merged.deadlocks > 0)?;
    let first = merged.deadlock.as_deref().unwrap_or("one of them");
    Some(match merged.deadlocks {
        1 => format!("There is a deadlock in {first}: report its recording alone."),
        some => format!(
            "There is a deadlock in {} processes, one of which is {first}: report its recording alone.",
            count(some)
        ),
    })
}

/// How many locks have most of the waiting.
fn others(profile: &Profile, waited: u64) -> Option<String> {
    let waits: Vec<u64> = profile.locks.iter().map(Lock::lock_wait).filter(|wait| *wait > 0).collect();
    if waits.len() < 2 || waits[0] as f64 >= 0.8 * waited as f64 {
        return None;
    }
    let mut sum = 0.0;
    let is_needed = |wait: &&u64| {
        let is_needed = sum < 0.8 * waited as f64;
        sum += **wait as f64;
        is_needed
    };
    let most = waits.iter().take_while(is_needed).count();
    // "All locks have all of the waiting" is no information.
    if most == waits.len() {
        return None;
    }
    Some(format!(
        "{most} of {} contended locks have {} of all waiting.",
        count(waits.len() as u64),
        short_percent(waits[..most].iter().sum::<u64>() as f64 / waited as f64)
    ))
}
