//! Waits that had not ended, in sentences: deadlocks, and threads that were stuck.

use std::collections::BTreeMap;

use spinpark_measure::text::one_line;
use spinpark_measure::text::units::{count, time};

use crate::model::{CallSiteId, Detail, Holder, Kind, OutOfSight, Profile, RecordingEnd, Role, Waiting};
use crate::names::Names;

/// Threads of a cycle, or groups of threads that are stuck, that a sentence names.
const NAMED: usize = 4;
/// The summary begins with waits that had not ended if they have more than this share of all waiting for
/// locks,
const MOST: f64 = 0.5;
/// and if the longest is at least this share of the recording, or this long (ns): some wait is always in
/// progress.
const LONG_PART: f64 = 0.1;
const LONG: u64 = 1_000_000_000;

/// What a cycle of threads that wait for each other is called, here and of a process that is looked at once. A lock that
/// does not tell who has it may be on a stack for another reason: then it is not certain.
pub(crate) fn verdict(is_certain: bool) -> &'static str {
    if is_certain { "Deadlock" } else { "Probably a deadlock" }
}

/// `, which thread 7 has`: of what is read from a process, where it took the lock is not known.
pub(crate) fn owned(by: u32, is_certain: bool) -> String {
    format!(", which thread {by} {}", if is_certain { "has" } else { "seems to have" })
}

/// The first cycle of threads that wait for each other: one sentence.
#[must_use]
pub fn deadlock(profile: &Profile) -> Option<String> {
    let cycle = profile.deadlocks.first()?;
    let waits: Vec<&Waiting> = cycle.iter().filter_map(|index| profile.waiting.get(*index)).collect();
    if waits.len() != cycle.len() || waits.is_empty() {
        return None;
    }
    let names = Names::of_profile(profile);
    let one = |wait: &&Waiting| {
        let site = site(&names, wait).map_or(String::new(), |site| format!(" {site}"));
        let is_join = profile.lock(wait.lock).is_some_and(|lock| lock.kind == Kind::Join);
        if is_join && let Some(id) = wait.holder.as_ref().and_then(|holder| holder.thread) {
            return format!("{} waits{site} for the end of thread {id}", thread(profile, wait.thread));
        }
        let start = format!("{} waits{site} for {}", thread(profile, wait.thread), what(profile, wait));
        let Some(holder) = &wait.holder else { return start };
        let call_site =
            call_site(&names, holder.call_site).map_or(String::new(), |call_site| format!(" in {call_site}"));
        match holder.thread {
            Some(id) if id == wait.thread && profile.sampling.is_some() => {
                format!("{start}, which it has taken itself")
            }
            Some(id) if id == wait.thread => {
                let comma = if call_site.is_empty() { "" } else { "," };
                format!("{start}, which it has taken itself{comma}{call_site}")
            }
            Some(id) if profile.sampling.is_some() => format!("{start}{}", owned(id, holder.is_sure)),
            Some(id) => format!("{start}, which thread {id} has taken{call_site}"),
            None => start,
        }
    };
    let mut parts: Vec<String> = waits.iter().take(NAMED).map(one).collect();
    if waits.len() > NAMED {
        parts.push(format!("and so on: {} threads in a cycle", waits.len()));
    }
    let is_certain = waits.iter().all(|wait| wait.holder.as_ref().is_none_or(|holder| holder.is_sure));
    Some(format!("{}: {}.", verdict(is_certain), parts.join("; ")))
}

/// The details of [`deadlock`]: for how long, whether there are more, and how to record more of them.
#[must_use]
pub fn of_deadlocks(profile: &Profile) -> Option<String> {
    let cycle = profile.deadlocks.first()?;
    let waited = cycle.iter().filter_map(|index| profile.waiting.get(*index)).map(|wait| wait.time).min()?;
    let verb = if profile.ended == RecordingEnd::Running { "They have waited" } else { "They had waited" };
    let when = if profile.ended == RecordingEnd::Running { "so far" } else { "when the recording ended" };
    let more = match profile.deadlocks.len() - 1 {
        0 => String::new(),
        1 => String::from(" There is another such cycle."),
        more => format!(" There are {} more such cycles.", count(more as u64)),
    };
    let cycles = || profile.deadlocks.iter().flatten().filter_map(|index| profile.waiting.get(*index));
    // Where a semaphore was taken is never recorded.
    let is_call_site_known = |wait: &Waiting| {
        !wait.role.is_lock() || wait.holder.as_ref().is_some_and(|holder| holder.call_site.is_some())
    };
    let how_to =
        if profile.sampling.is_some() || profile.detail == Detail::Full || cycles().all(is_call_site_known) {
            ""
        } else {
            " `--detail full` records where each lock was taken."
        };
    let how_long = time(waited as f64);
    Some(match cycle.len() {
        1 if profile.ended == RecordingEnd::Running => {
            format!("It has waited for {how_long} {when}.{more}{how_to}")
        }
        1 => format!("It had waited for {how_long} {when}.{more}{how_to}"),
        _ => format!("{verb} for each other for {how_long} {when}.{more}{how_to}"),
    })
}

/// Threads that waited for locks at the end, and are in no cycle: one sentence.
#[must_use]
pub fn stuck(profile: &Profile) -> Option<String> {
    let said = listed(profile, outside(profile).filter(|wait| wait.role.is_lock()).collect())?;
    Some(match none_is_left(profile) {
        true => format!("{said} All threads of the process wait: none is left to wake another."),
        false => said,
    })
}

/// Whether each thread of the process is in a wait without a deadline, joins among them.
pub(crate) fn none_is_left(profile: &Profile) -> bool {
    // Those that have ended were seen as well: then it is not known.
    let threads = profile.observed.as_ref().map_or(0, |observed| observed.threads.number as usize);
    let waits = &profile.waiting;
    profile.ended != RecordingEnd::Exited
        && threads > 0
        && waits.len() >= threads
        && waits.iter().all(|wait| !wait.is_timed)
}

/// Threads that waited at the end, for whatever it is, in a program in which all threads slept: one sentence.
/// None if the program exited, and so was not stuck.
pub(crate) fn slept(profile: &Profile) -> Option<String> {
    let is_join = |wait: &&Waiting| profile.lock(wait.lock).is_some_and(|lock| lock.kind == Kind::Join);
    let waits = profile.waiting.iter().filter(|wait| !is_join(wait)).collect();
    let said = listed(profile, waits).filter(|_| profile.ended != RecordingEnd::Exited)?;
    let early = profile.waiting.iter().filter_map(|wait| profile.lock(wait.lock)).find(|lock| {
        lock.kind == Kind::Condvar
            && lock.role(Role::Signal).is_some_and(|stats| stats.acquisitions == 0 && stats.wake_ups > 0)
    });
    Some(match early {
        Some(lock) => {
            format!(
                "{said} The {} was signalled, when no thread waited for it.",
                crate::names::with_noun(lock)
            )
        }
        None => said,
    })
}

fn listed(profile: &Profile, waits: Vec<&Waiting>) -> Option<String> {
    let longest = waits.iter().map(|wait| wait.time).max()?;
    let names = Names::of_profile(profile);
    let mut groups: BTreeMap<(Option<String>, String, String), usize> = BTreeMap::new();
    for wait in &waits {
        let held = wait.holder.as_ref().map_or(String::new(), |holder| held(profile, &names, holder));
        *groups.entry((site(&names, wait), what(profile, wait), held)).or_default() += 1;
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let one = |((site, what, held), number): &((Option<String>, String, String), usize)| {
        let number = (waits.len() > 1).then(|| number.to_string());
        let parts = [number, site.clone(), Some(format!("for {what}{held}"))];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let mut parts: Vec<String> = groups.iter().take(NAMED).map(one).collect();
    if groups.len() > NAMED {
        parts.push(String::from("others at other call sites"));
    }
    let which = if waits.len() == 1 { "" } else { "the longest " };
    Some(format!(
        "{}, {which}for {}: {}.",
        still(profile, waits.len()),
        time(longest as f64),
        parts.join("; ")
    ))
}

/// Whether the summary begins with the threads that are stuck.
#[must_use]
pub fn leads(profile: &Profile) -> bool {
    let waits = || outside(profile).filter(|wait| wait.role.is_lock()).map(|wait| wait.time);
    let (all, longest) = (waits().sum::<u64>(), waits().max().unwrap_or(0));
    all as f64 > MOST * profile.lock_wait() as f64 && longest >= long(profile.duration)
}

/// From this length on a wait is long in a recording of `duration`, ns.
pub(crate) fn long(duration: u64) -> u64 {
    LONG.min((LONG_PART * duration as f64) as u64)
}

/// Threads that waited for signals at the end: one sentence. None if the program exited: threads without work
/// always wait.
#[must_use]
pub fn unsignalled(profile: &Profile) -> Option<String> {
    let is_condvar = |wait: &&Waiting| profile.lock(wait.lock).is_none_or(|lock| lock.kind == Kind::Condvar);
    let signals = profile.waiting.iter().filter(|wait| !wait.role.is_lock());
    // The ends of threads, and work that does not come, are no news.
    let waits: Vec<&Waiting> = signals.filter(is_condvar).collect();
    let longest = waits.first().filter(|_| profile.ended != RecordingEnd::Exited)?;
    let which = if waits.len() == 1 { "" } else { " the longest" };
    let site = site(&Names::of_profile(profile), longest).map_or(String::new(), |site| format!(" {site}"));
    Some(format!(
        "{} for a signal of a condvar,{which} for {}: {}{site}.",
        still(profile, waits.len()),
        time(longest.time as f64),
        what(profile, longest)
    ))
}

/// The waits that are in no cycle.
fn outside(profile: &Profile) -> impl Iterator<Item = &Waiting> {
    let is_in = |index: usize| profile.deadlocks.iter().any(|cycle| cycle.contains(&index));
    profile.waiting.iter().enumerate().filter(move |(index, _)| !is_in(*index)).map(|(_, wait)| wait)
}

/// `2 threads were still waiting when the recording ended`.
fn still(profile: &Profile, threads: usize) -> String {
    let is_running = profile.ended == RecordingEnd::Running;
    match (threads, is_running) {
        (1, false) => String::from("1 thread was still waiting when the recording ended"),
        (1, true) => String::from("1 thread is waiting now"),
        (threads, false) => {
            format!("{} threads were still waiting when the recording ended", count(threads as u64))
        }
        (threads, true) => format!("{} threads are waiting now", count(threads as u64)),
    }
}

/// `thread 4242 (`worker`)`.
fn thread(profile: &Profile, id: u32) -> String {
    let name = profile.threads.iter().find(|known| known.id == id).map_or("", |known| &known.name);
    let name = one_line(name);
    if name.is_empty() { format!("thread {id}") } else { format!("thread {id} (`{name}`)") }
}

fn call_site(names: &Names<'_>, call_site: Option<CallSiteId>) -> Option<String> {
    let call_site = call_site.filter(|call_site| names.call_site(*call_site).is_some())?;
    Some(format!("`{}`", names.in_sentence(call_site)))
}

/// `in `flush``, if it is known where it waits.
fn site(names: &Names<'_>, wait: &Waiting) -> Option<String> {
    Some(format!("in {}", call_site(names, wait.call_site)?))
}

fn what(profile: &Profile, wait: &Waiting) -> String {
    profile
        .lock(wait.lock)
        .map_or_else(|| String::from("a lock"), |lock| format!("the {}", crate::names::with_noun(lock)))
}

/// `, held by `flush``.
fn held(profile: &Profile, names: &Names<'_>, holder: &Holder) -> String {
    match (holder.out_of_sight, call_site(names, holder.call_site), holder.thread) {
        (Some(OutOfSight::Ended), Some(call_site), _) => {
            format!(", held by a thread that has ended: it took the lock in {call_site}")
        }
        (Some(OutOfSight::Ended), None, Some(id)) => {
            format!(", held by {}, which has ended", thread(profile, id))
        }
        (Some(what), ..) => format!(", held by {}", what.name()),
        (None, Some(call_site), _) => format!(", held by {call_site}"),
        (None, None, Some(id)) => format!(", held by {}", thread(profile, id)),
        (None, None, None) => String::new(),
    }
}
