//! The summary, in sentences: which lock matters, which function holds it, which one waits, and whether
//! waiting matters.
//!
//! Waiting for a signal of a condition variable is not waiting for a lock: a thread without work waits for
//! work. It has its own sentence, and no share includes it. Nor does any share include returns from condition
//! variables: they begin with the signal, so what looks like waiting for the mutex may be a thread without a
//! CPU. Where signals hand a well-known lock of a runtime over (CPython's GIL), waiting for them is waiting
//! for that lock.

use std::collections::BTreeMap;

use spinpark_measure::units::{count, short_percent, time};

use crate::classes::by_class;
use crate::glibc_locks;
use crate::known_locks::handed_over;
use crate::model::{CallSiteId, Detail, Kind, Lock, OutOfSight, Pair, Profile, Role};
use crate::names::{Names, class, named, with_noun};
use crate::{chain, other_waits, phases, silence, split, stuck, unnamed};

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
/// A holder or waiter with a smaller share of a lock's waiting than this is not named.
const NAMED: f64 = 0.25;

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

/// The summary of a profile.
#[must_use]
pub fn summary(profile: &Profile) -> Summary {
    let waited = profile.lock_wait();
    let share_of = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let share_of_time = share_of(waited, profile.thread_time()).min(1.0);
    let waiters = share_of(waited, profile.duration);
    let is_little = |waited| {
        // A process has a thread at any time.
        let share = share_of(waited, profile.thread_time().max(profile.duration));
        share < NOTHING || share < SMALL_SHARE && share_of(waited, profile.duration) < SMALL_WAITERS
    };
    let is_small = is_little(waited);
    // Returns from condition variables may be contention, too.
    let unclear = profile.unclear_wait();
    let is_back_first = is_small && !is_little(profile.waited()) && profile.back_wait() >= unclear;
    let top = profile.locks.first().filter(|lock| lock.lock_wait() > 0);
    let runtime = runtime(profile).filter(|(_, waited)| !is_little(*waited));
    // Its mutex is a part of it: a thread that waits there waits for the runtime's lock, too.
    let of_runtimes = profile.locks.iter().filter(|lock| handed_over(&lock.label).is_some());
    let of_runtimes: u64 = of_runtimes.map(Lock::lock_wait).sum();
    // Locks may be among what is not known: it comes first where they are much more than what is known.
    let known = waited.max(runtime.map_or(0, |(_, waited)| waited));
    let is_unclear_first = !is_back_first
        && !is_little(unclear)
        && (is_small && runtime.is_none() || unclear > MUCH_MORE * known);
    let is_runtime_first = !is_unclear_first
        && runtime.is_some_and(|(_, by_signals)| {
            is_small || by_signals + of_runtimes > waited.saturating_sub(of_runtimes)
        });

    let mut details = Vec::new();
    let stuck = stuck::stuck(profile);
    let first =
        stuck::deadlock(profile).or_else(|| stuck.clone().filter(|_| !is_small && stuck::leads(profile)));
    details.extend(first.as_ref().and_then(|_| stuck::of_deadlocks(profile)));
    let headline = match top {
        _ if profile.locks.is_empty() && profile.detail == Detail::Off => {
            String::from("Nothing was recorded: recording was off.")
        }
        _ if is_runtime_first => {
            if let Some(top) = top.filter(|_| !is_small) {
                details.push(format!(
                    "Threads also waited {}.",
                    amount(profile, waited, share_of_time, waiters)
                ));
                details.push(blame(profile, top, waited));
            }
            runtime.map_or(String::new(), |(lock, waited)| runtime_first(profile, lock, waited))
        }
        _ if is_unclear_first => {
            if let Some(top) = top {
                details.push(format!(
                    "Threads also waited {}.",
                    amount(profile, waited, share_of_time, waiters)
                ));
                // Of what is known to be for locks.
                let of_that = blame(profile, top, waited).replacen("All waiting is", "All of that is", 1);
                details.push(of_that.replacen(" of all waiting is", " of that is", 1));
            }
            other_waits::unclear(profile).unwrap_or_default()
        }
        _ if is_back_first => {
            details.extend(top.map(|top| blame(profile, top, waited)));
            back_first(profile)
        }
        None => {
            let said = silence::verdict(profile, None);
            details.extend(said.details);
            said.headline
        }
        Some(top) => {
            let mut sentence = blame(profile, top, waited);
            if unclear > waited / 10 {
                let known = "waiting that is known to be for locks is";
                sentence = sentence.replacen("All waiting is", &format!("All {known}"), 1);
                sentence = sentence.replacen(" of all waiting is", &format!(" of the {known}"), 1);
            }
            if is_small {
                let how_much = amount(profile, waited, share_of_time, waiters);
                let said = silence::verdict(profile, Some(&how_much));
                details.extend(said.details);
                details.push(sentence);
                said.headline
            } else {
                details.push(format!("Threads waited {}.", amount(profile, waited, share_of_time, waiters)));
                sentence
            }
        }
    };
    // Threads that were stuck come before everything else.
    let (headline, rest) = match first {
        None => (headline, stuck),
        Some(first) => {
            if !is_small || is_back_first || profile.deadlocks.is_empty() {
                details.insert(usize::from(!profile.deadlocks.is_empty()), headline);
            }
            let rest = stuck.filter(|stuck| *stuck != first);
            (first, rest)
        }
    };
    details.extend(rest);
    if top.is_some() && !is_small {
        let at = details.len().min(1);
        details.splice(at..at, silence::waited_elsewhere(profile));
    }
    // A verdict of silence begins with the processes that are not in the recording; here they come after the
    // lock.
    if let Some((absent, is_important)) = silence::absent(profile) {
        let is_told = is_important && (top.is_none() || is_small) && !is_back_first;
        let at = if is_important { details.len().min(1) } else { details.len() };
        details.splice(at..at, (!is_told).then_some(absent));
    }
    if let Some(top) = top {
        // The same lock or class that the sentence about blame names.
        let classes = leading_class(profile, top, waited);
        let (of, what) = classes.as_ref().map_or((profile, top), |classes| (classes, &classes.locks[0]));
        let inner = chain::inner(of, what).filter(|_| !is_small);
        let is_it = !is_small && top.lock_wait() as f64 >= 0.5 * waited as f64;
        details.extend(roles(top));
        details.extend(of_glibc(top).filter(|_| is_it));
        if is_it {
            details.extend(split::sentences(profile, top));
        } else if classes.is_some() && !is_small {
            details.extend(split::sentences(of, what));
        }
        details.extend(inner);
        details.extend(others(profile, waited));
    }
    if !is_small {
        details.extend(phases::changes(profile));
    }
    details.extend(back(profile).filter(|_| !is_back_first || runtime.is_some()));
    if let Some((lock, waited)) = runtime.filter(|_| !is_runtime_first) {
        details.push(runtime_first(profile, lock, waited));
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
    // A sentence does not begin with a sign.
    let begun =
        |text: String| text.strip_prefix("> ").map_or(text.clone(), |rest| format!("More than {rest}"));
    let (headline, details) = (begun(headline), details.into_iter().map(begun).collect());
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
fn runtime_first(profile: &Profile, lock: &Lock, waited: u64) -> String {
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
    let at_a_time = match at_a_time {
        few if few >= 0.5 * threads as f64 => String::new(),
        few if few < 9.95 => format!(", {} at a time", shown(few)),
        few => format!(", {few:.0} at a time"),
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
            "{time} for locks, {} of the time of {} threads{at_a_time}; {waiting} were waiting on average",
            short_percent(share),
            count(threads)
        ),
    }
}

fn shown(number: f64) -> String {
    if number < 0.095 { format!("{number:.2}") } else { format!("{number:.1}") }
}

/// `87 % of all waiting is on one mutex, `cache_lock`, held by `store_update` while `flush` waits.`
fn blame(profile: &Profile, top: &Lock, waited: u64) -> String {
    let share = top.lock_wait() as f64 / waited as f64;
    if let Some(class) = leading_class(profile, top, waited).and_then(|classes| blame_class(&classes, waited))
    {
        return class;
    }
    if let Some(sampled) = &top.sampled {
        let lock = sampled.phrase();
        let of = match share {
            1.0 => String::from("All waiting is on "),
            share if share >= 0.5 => format!("{} of all waiting is on ", short_percent(share)),
            share => {
                format!("No lock stands out: the most waiting, {}, is on ", short_percent(share))
            }
        };
        return format!("{of}{lock}, below `{}`{}.", sampled.function, in_function(profile, top));
    }
    let lock = match named(top) {
        named if named.is_empty() => named,
        named => format!(", {named}"),
    };
    let start = match share {
        1.0 => format!("All waiting is on {}{lock}", one(top)),
        share if share >= 0.5 => {
            format!("{} of all waiting is on {}{lock}", short_percent(share), one(top))
        }
        share => {
            format!(
                "No lock stands out: the most waiting, {}, is on the {}",
                short_percent(share),
                with_noun(top)
            )
        }
    };
    format!("{start}{}.", holder_and_waiter(profile, top))
}

/// `one mutex`; `one or more parking_lot Mutexes` if it stands for all that are used in one function.
fn one(lock: &Lock) -> String {
    match lock.is_several {
        true => format!("one or more of type {}", lock.noun()),
        false => format!("one {}", lock.noun()),
    }
}

/// The profile by classes, if locks that are created or named together lead, where no single one does.
fn leading_class(profile: &Profile, top: &Lock, waited: u64) -> Option<Profile> {
    if top.lock_wait() as f64 >= 0.5 * waited as f64 {
        return None;
    }
    Some(by_class(profile)).filter(|classes| blame_class(classes, waited).is_some())
}

/// `75 % of all waiting is on the 16 locks of `shard`, …`: if locks that are created or named together lead,
/// and no single one does.
fn blame_class(classes: &Profile, waited: u64) -> Option<String> {
    let top = classes.locks.first()?;
    let share = top.lock_wait() as f64 / waited as f64;
    let class = class(top)?;
    let share = if share == 1.0 { String::from("All") } else { format!("{} of all", short_percent(share)) };
    (top.lock_wait() as f64 >= 0.5 * waited as f64)
        .then(|| format!("{share} waiting is on {class}{}.", holder_and_waiter(classes, top)))
}

/// The name that most of the waiting for a lock has, of holders or of waiters.
struct Most {
    name: String,
    /// Of the waiting.
    share: f64,
    /// The call sites of that name, and where in the source most of it is.
    call_sites: Vec<CallSiteId>,
    line: Option<String>,
}

impl Most {
    /// Of `sites` with the time of each; none if no name has enough of `all`.
    fn of(profile: &Profile, names: &Names<'_>, sites: &[(CallSiteId, u64)], all: u64) -> Option<Self> {
        fn largest(parts: impl Iterator<Item = (String, u64)>) -> Option<(String, u64)> {
            let mut sums: BTreeMap<String, u64> = BTreeMap::new();
            parts.for_each(|(name, time)| *sums.entry(name).or_default() += time);
            sums.into_iter().max_by_key(|(_, sum)| *sum)
        }
        let plain = |call_site: CallSiteId| {
            let found = profile.call_sites.get(call_site);
            found.map_or_else(|| String::from("?"), |call_site| names.own_function(call_site))
        };
        let by = |name: &dyn Fn(CallSiteId) -> String| {
            let (name, sum) = largest(sites.iter().map(|(call_site, time)| (name(*call_site), *time)))?;
            let share = sum as f64 / all as f64;
            (share >= NAMED).then_some((name, share))
        };
        // The callers of a wrapper are more useful than the wrapper, unless it has many.
        let (name, share) = by(&|call_site| names.in_sentence(call_site)).or_else(|| by(&plain))?;
        let is_it = |call_site: CallSiteId| [names.in_sentence(call_site), plain(call_site)].contains(&name);
        let its: Vec<(CallSiteId, u64)> =
            sites.iter().copied().filter(|(call_site, _)| is_it(*call_site)).collect();
        let lines: Option<Vec<(String, u64)>> =
            its.iter().map(|(call_site, time)| Some((names.line(*call_site)?, *time))).collect();
        let line = lines.and_then(|lines| largest(lines.into_iter())).map(|(line, _)| line);
        Some(Self {
            name,
            share,
            call_sites: its.into_iter().map(|(call_site, _)| call_site).collect(),
            line,
        })
    }
}

/// ` in `log_line``: the function of the program that called glibc, of one of its locks.
fn in_function(profile: &Profile, top: &Lock) -> String {
    let names = Names::of_profile(profile);
    let pairs = profile.pairs.iter().filter(|pair| pair.lock == top.id);
    let sites: Vec<_> = pairs.map(|pair| (pair.waiter, pair.wait_total)).collect();
    let most = Most::of(profile, &names, &sites, top.lock_wait());
    most.map_or_else(String::new, |most| match most.share {
        share if share < 0.75 => format!(" in `{}` ({})", most.name, short_percent(share)),
        _ => format!(" in `{}`", most.name),
    })
}

/// What to do about a lock of glibc's own, which no other lock can take the place of.
fn of_glibc(top: &Lock) -> Option<String> {
    let sampled = top.sampled.as_ref()?;
    let advice = glibc_locks::advice(&sampled.of, &sampled.function).unwrap_or("Call it less often.");
    Some(format!("It is inside of glibc: no library can replace it. {advice}"))
}

/// What the holders were for most of the waiting whose holder is out of sight, and its share of `all`.
fn out_of_sight(pairs: &[&Pair], all: u64) -> Option<(OutOfSight, f64)> {
    let mut sums: BTreeMap<OutOfSight, u64> = BTreeMap::new();
    for pair in pairs {
        if let Some(what) = pair.out_of_sight {
            *sums.entry(what).or_default() += pair.held();
        }
    }
    let (what, most) = sums.into_iter().max_by_key(|(_, sum)| *sum)?;
    Some((what, most as f64 / all.max(1) as f64)).filter(|(_, share)| *share >= NAMED)
}

/// `, held by `store_update` while `flush` waits`.
fn holder_and_waiter(profile: &Profile, top: &Lock) -> String {
    let names = Names::of_profile(profile);
    let pairs: Vec<&Pair> =
        profile.pairs.iter().filter(|pair| pair.lock == top.id && pair.role.is_lock()).collect();
    let holders: Vec<_> = pairs.iter().filter_map(|pair| Some((pair.holder?, pair.held()))).collect();
    let waiters: Vec<_> = pairs.iter().map(|pair| (pair.waiter, pair.wait_total)).collect();
    let [holder, waiter] = [holders, waiters].map(|sites| Most::of(profile, &names, &sites, top.lock_wait()));
    // Where it was released stands in for where it was taken, if that is not known.
    let has_it = |pair: &&&Pair| {
        let is_it = |most: &Most| pair.holder.is_some_and(|site| most.call_sites.contains(&site));
        holder.as_ref().is_some_and(is_it)
    };
    let held = |is_wanted: fn(&Pair) -> bool| {
        pairs.iter().filter(has_it).filter(|pair| is_wanted(pair)).map(|pair| pair.held()).sum::<u64>()
    };
    let held_by = if 2 * held(|pair| pair.is_release) > held(|_| true) { "released in" } else { "held by" };
    let part = |share: f64| if share < 0.75 { format!(" ({})", short_percent(share)) } else { String::new() };
    if let Some((what, share)) = out_of_sight(&pairs, top.lock_wait())
        && holder.as_ref().is_none_or(|holder| holder.share < share)
    {
        let waits = match waiter {
            Some(waiter) => format!("`{}` waits for it{}", waiter.name, part(waiter.share)),
            None => String::from("threads wait for it"),
        };
        return format!("; {waits}, held by {}{}", what.name(), part(share));
    }
    match (holder, waiter) {
        (Some(holder), Some(waiter)) if holder.name == waiter.name => {
            // Two places may be in two functions of one name, or two parts of one.
            let name = &holder.name;
            match (holder.line, waiter.line) {
                (Some(at), Some(waits_at)) if at != waits_at => format!(
                    ", {held_by} `{name}` ({at}){} while `{name}` ({waits_at}) waits{}",
                    part(holder.share),
                    part(waiter.share)
                ),
                _ => format!(", {held_by} `{name}`{} while other threads wait in it", part(holder.share)),
            }
        }
        (Some(holder), Some(waiter)) => format!(
            ", {held_by} `{}`{} while `{}` waits{}",
            holder.name,
            part(holder.share),
            waiter.name,
            part(waiter.share)
        ),
        (Some(holder), None) => {
            format!(", {held_by} `{}`{} while other threads wait", holder.name, part(holder.share))
        }
        (None, Some(waiter)) => format!("; `{}` waits for it{}", waiter.name, part(waiter.share)),
        (None, None) => String::new(),
    }
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
