//! What to do first: the locks whose waiting can matter, the most costly first; for each what it costs at most, and one
//! piece of advice with the figures that led to it. Where the figures do not decide, that is what is said.
//!
//! Two bounds need no experiment:
//!
//! - All waits for a lock together, W, in a run of the time D: without them the run is shorter by at most W. (Waits of
//!   several threads at a time overlap, so that W may exceed D: then it bounds nothing.)
//! - A lock that is held for a share h of the run can be used at most 1/h times as much, by however many threads
//!   (Amdahl). The recorded h may be too small, so the real bound may be lower still.
//!
//! What mending one lock really brings, only an experiment tells: `spinpark compare` of a changed program. What `spinpark
//! whatif` has measured ([`measured`](mod@crate::measured)) stands in the place of the first bound, and in the order:
//!
//! 1. locks whose sections were measured to cost time, the most costly first;
//! 2. those that were not measured, or for which that decided nothing, by the time waited;
//! 3. those whose shorter sections bring next to nothing.
//!
//! Advice by what the waits for a lock were, the first that applies:
//!
//! | the time waited for it | advice |
//! |---|---|
//! | is for one of glibc's locks | call glibc's function less often, or as its page says |
//! | is not known to be held or free, for most of it | none |
//! | was free for most of it, or the holder had no CPU | fewer threads, other locks, or an idle machine |
//! | is mostly while its holder was blocked in a call, or on another lock | move the call out; fix that lock first |
//! | was held by one function for most of it | shorten that section |
//! | was held by many short sections | take it less often, or split it |
//! | was held by many functions | split it |

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use spinpark_measure::rounds::whatif::Verdict;
use spinpark_measure::text::units::{count, percent_in_words as percent, short_percent, time};

use crate::classes::grouped;
use crate::measured::{is_of, sentence};
use crate::model::{Bound, Detail, Doing, Kind, Lock, LocksOf, Measured, Pair, Profile, Role};
use crate::names::{Names, class, with_noun};
use crate::summary::is_little;
use crate::{chain, glibc_locks, holders, split};

/// Locks with less waiting than this share of the run are left out: without it the run would be shorter by no more
/// than this. (A guess at what programs differ by from run to run.)
const LEAST_OF_RUN: f64 = 0.01;
/// So are those with less than this share of all waiting for locks: others come first by far.
const LEAST_OF_WAITING: f64 = 0.05;
/// What has more than half of a lock's waiting decides.
const MOST: f64 = 0.5;
/// Shorter sections, ns, can hardly be shortened so that it shows: a turn costs time as well, to move the lock's cache
/// line, or to wake a thread. (A guess at where that is as long as the section; it is advice, and no verdict.)
const SHORT: f64 = 2_000.0;
/// From this share of the run on it is said how much more threads can use it: below, more than twice as much.
const NEARLY_ALWAYS: f64 = 0.5;

/// What to do about one lock.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Advice {
    /// [`Lock::id`]; of a class of locks, that of its first one.
    pub lock: u32,
    /// What it is, and what waiting for it costs: a sentence.
    pub cost: String,
    /// What to do, and why: a sentence or two. It says so if the figures do not decide.
    pub advice: String,
}

/// The locks to look at, the most costly first. None if threads waited little, if they wait for each other for ever,
/// or if records are missing.
#[must_use]
pub fn advice(profile: &Profile) -> Vec<Advice> {
    let waited = profile.lock_wait();
    let is_silent = profile.is_partial() || !profile.deadlocks.is_empty() || profile.slowed().is_some();
    if is_silent || is_little(profile, waited) {
        return Vec::new();
    }
    // Locks of one kind are mended together.
    let grouped = grouped(profile, 2);
    let matters = |lock: &&Lock| {
        let wait = lock.lock_wait() as f64;
        wait >= LEAST_OF_RUN * profile.duration as f64 && wait >= LEAST_OF_WAITING * waited as f64
    };
    let names = Names::of_profile(&grouped);
    let mut locks: Vec<(&Lock, Vec<&Measured>)> =
        grouped.locks.iter().filter(matters).map(|lock| (lock, measured_of(profile, lock.id))).collect();
    // By the time waited, where nothing else decides.
    locks.sort_by(|(_, one), (_, other)| {
        let (one, other) = (of_sections_measured(one), of_sections_measured(other));
        let cost = |measured: Option<&Measured>| measured.and_then(|one| one.cost).unwrap_or_default();
        let by_cost = match place(one) {
            Place::Costs => cost(other).total_cmp(&cost(one)),
            _ => Ordering::Equal,
        };
        place(one).cmp(&place(other)).then(by_cost)
    });
    let one = |(lock, measured): (&Lock, Vec<&Measured>)| Advice {
        lock: lock.id,
        cost: cost(&grouped, lock, &measured),
        advice: match place(of_sections_measured(&measured)) {
            Place::BringsNothing => String::from("Look elsewhere first."),
            Place::Costs | Place::Unknown => what_to_do(&grouped, &names, lock),
        },
    };
    locks.into_iter().map(one).collect()
}

/// What was measured of the class of the lock with this id.
fn measured_of(profile: &Profile, id: u32) -> Vec<&Measured> {
    let lock = profile.locks.iter().find(|lock| lock.id == id);
    lock.map_or_else(Vec::new, |lock| profile.measured.iter().filter(|one| is_of(one, lock)).collect())
}

/// What was measured of its sections: the last, if that was done several times.
fn of_sections_measured<'a>(measured: &[&'a Measured]) -> Option<&'a Measured> {
    measured.iter().rfind(|one| one.is_of_sections).copied()
}

/// The order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Costs,
    Unknown,
    BringsNothing,
}

fn place(measured: Option<&Measured>) -> Place {
    match measured.map(|one| one.verdict) {
        Some(Verdict::Costs) => Place::Costs,
        Some(Verdict::Little | Verdict::Saves) => Place::BringsNothing,
        Some(Verdict::Undecided) | None => Place::Unknown,
    }
}

/// `The mutex `log`: threads waited 21.0 ms for it, 2.1 % of their time; without that, the run is shorter by at most
/// 8.4 %.` Or, of a lock that was measured: `The mutex `log`: threads waited 21.0 ms for it, 2.1 % of their time.
/// Measured: sections of `log` longer by 10 % cost 3.9 % [3.8 %, 3.9 %] of wall time: …`
fn cost(profile: &Profile, lock: &Lock, measured: &[&Measured]) -> String {
    let wait = lock.lock_wait();
    let share = match profile.thread_time() {
        0 => String::new(),
        all => format!(", {} of their time", short_percent((wait as f64 / all as f64).min(1.0))),
    };
    let of_run = wait as f64 / profile.duration.max(1) as f64;
    let is_decided = place(of_sections_measured(measured)) != Place::Unknown;
    let at_most = match of_run {
        // Several processes have no run in common.
        of_run if of_run < 1.0 && profile.merged.is_none() && !is_decided => {
            format!("; without that, the run is shorter by at most {}", short_percent(of_run))
        }
        _ => String::new(),
    };
    let (what, it) =
        class(lock).map_or_else(|| (format!("the {}", with_noun(lock)), "it"), |class| (class, "them"));
    let what = match &lock.sampled {
        Some(sampled) => sampled.phrase(),
        None => spinpark_measure::text::capital(&what),
    };
    let answers: String = measured.iter().map(|one| format!(" {}", sentence(one, profile))).collect();
    format!("{what}: threads waited {} for {it}{share}{at_most}.{answers}", time(wait as f64))
}

fn what_to_do(profile: &Profile, names: &Names<'_>, lock: &Lock) -> String {
    if let Some(sampled) = &lock.sampled {
        let advice = glibc_locks::advice(&sampled.of, &sampled.function).unwrap_or("Call it less often.");
        return format!("{advice} It is inside of glibc.");
    }
    let unfinished = profile.waiting.iter().filter(|wait| wait.lock == lock.id && wait.role.is_lock());
    if unfinished.map(|wait| wait.time).sum::<u64>() as f64 > MOST * lock.lock_wait() as f64 {
        return String::from("Find out why these waits have not ended: *Still waiting at the end* has them.");
    }
    if profile.sampling.is_some() {
        return of_samples(profile, names, lock);
    }
    // The library records no holders that did not wait.
    if profile.locks_of != LocksOf::Library
        && let Some(advice) = of_late_owners(profile, lock)
    {
        return advice;
    }
    if let Some(advice) = of_blocked_holders(profile, names, lock) {
        return advice;
    }
    of_sections(profile, names, lock)
}

/// Where the lock was not known to be held, was free, or its holder had no CPU.
fn of_late_owners(profile: &Profile, lock: &Lock) -> Option<String> {
    let split = split::of(lock);
    let all = (split.held + split.free + split.unknown) as f64;
    if all == 0.0 || split.unknown as f64 > MOST * all {
        let how_to = match (profile.detail, lock.is_slept_for()) {
            (Detail::Full, _) | (_, true) => "",
            _ => " `--detail full` records more.",
        };
        return Some(format!("The figures do not decide: who held it meanwhile is not known.{how_to}"));
    }
    let free = split.free as f64 / all;
    let no_cpu = split::share_without_cpu(&split);
    let what = match (free > MOST, no_cpu > MOST) {
        (true, _) => {
            format!("it was free for {} of this time, while its next owner woke late", percent(free))
        }
        (_, true) => {
            format!("for about {} of this time its holder was ready to run, without a CPU", percent(no_cpu))
        }
        _ => return None,
    };
    let (crowd, advice) = split::crowd(profile);
    Some(format!("{advice} {}{crowd}.", spinpark_measure::text::capital(&what)))
}

/// ` of `flush``, if most of the time one function had the lock.
fn of_function(profile: &Profile, names: &Names<'_>, lock: &Lock) -> String {
    let first = first_holder(profile, names, lock).filter(|first| first.share > MOST);
    first.map_or_else(String::new, |first| format!(" of `{}`", first.name))
}

/// Where its holder was blocked itself.
fn of_blocked_holders(profile: &Profile, names: &Names<'_>, lock: &Lock) -> Option<String> {
    let (inner, share, is_both_ways) = chain::most(profile, lock)?;
    if share < MOST {
        return None;
    }
    let about = match share {
        share if share > 0.95 => String::from("more than 95 %"),
        share => format!("about {}", percent(share)),
    };
    let when = |did: &str| format!("for {about} of this time its holder {did}");
    Some(match inner.kind {
        Kind::Call => format!(
            "Move `{}` out of the section{}: {}.",
            inner.label,
            of_function(profile, names, lock),
            when("was in it")
        ),
        Kind::Condvar => format!(
            "Hold only the condvar's own mutex in a wait: {}.",
            when(&format!("waited for a signal of the {}", with_noun(inner)))
        ),
        kind if kind.is_lock() && !is_both_ways => {
            format!("Fix the {} first: {}.", with_noun(inner), when("was blocked on that"))
        }
        kind if kind.is_lock() => format!(
            "Take it and the {} in one order: {}.",
            with_noun(inner),
            when("was blocked on that, and the other way round")
        ),
        _ => {
            format!("Do not wait in the section: {}.", when(&format!("waited for the {}", with_noun(inner))))
        }
    })
}

/// The function that had a lock for most of the time that threads waited for it.
struct First {
    name: String,
    /// Of the time waited for it.
    share: f64,
    /// Of one wait.
    longest: u64,
    /// Most holders are known.
    is_known: bool,
}

fn first_holder(profile: &Profile, names: &Names<'_>, lock: &Lock) -> Option<First> {
    let pairs = || profile.pairs.iter().filter(|pair| pair.lock == lock.id && pair.role.is_lock());
    let held = pairs().map(Pair::held).sum::<u64>();
    let mut holders: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (site, pair) in pairs().filter_map(|pair| Some((pair.holder?, pair))) {
        let (sum, longest) = holders.entry(names.in_sentence(site)).or_default();
        *sum += pair.held();
        *longest = (*longest).max(pair.wait_longest);
    }
    let known = holders.values().map(|(sum, _)| sum).sum::<u64>();
    let (name, (sum, longest)) =
        holders.into_iter().max_by_key(|(name, (sum, _))| (*sum, Reverse(name.clone())))?;
    let share = sum as f64 / lock.lock_wait().max(1) as f64;
    Some(First { name, share, longest, is_known: known as f64 > MOST * held as f64 })
}

/// Where it was held by threads that went on.
fn of_sections(profile: &Profile, names: &Names<'_>, lock: &Lock) -> String {
    let (it, more) = (if class(lock).is_some() { "them" } else { "it" }, more_threads(lock));
    let sections = sections(lock).filter(|(_, mean)| *mean < SHORT && class(lock).is_none());
    if let Some((taken, mean)) = sections {
        let rate = taken as f64 / (profile.duration.max(1) as f64 / 1e9);
        return format!(
            "Take it less often, or split it: it is taken {} times a second, for {} on average, which is too short to shorten.{more}",
            count(rate.round() as u64),
            time(mean)
        );
    }
    let first = first_holder(profile, names, lock);
    let Some(First { name, share, longest, .. }) = first.filter(|first| first.is_known) else {
        return String::from("The figures do not decide: which function held it is not known.");
    };
    if share > MOST {
        return format!(
            "Shorten the section of `{name}`, which had {it} for {} of this time, up to {} of one wait.{more}",
            percent(share),
            time(longest as f64)
        );
    }
    format!(
        "Split {it}, or take {it} less often: no function had {it} for more than {} of this time (`{name}`).{more}",
        percent(share)
    )
}

/// Of a sampled process: by what its holder did.
fn of_samples(profile: &Profile, names: &Names<'_>, lock: &Lock) -> String {
    let Some((holder, share)) = holders::most(profile, lock).filter(|(_, share)| *share > MOST) else {
        return String::from(
            "The figures do not decide: what its holder did is not known, or not one thing.",
        );
    };
    let when = format!("its holder {} for {} of this time", holder.doing, percent(share));
    match holder.kind {
        Doing::Calls => {
            return format!("Move the call out of the section{}: {when}.", of_function(profile, names, lock));
        }
        Doing::WaitsForLock => return format!("Fix that lock first: {when}."),
        Doing::Runs | Doing::Other => {}
    }
    match first_holder(profile, names, lock).filter(|first| first.share > MOST) {
        Some(first) if holder.kind == Doing::Runs => {
            format!("Shorten the section of `{}`: {when}.", first.name)
        }
        _ => String::from("The figures do not decide: no function had it for most of this time."),
    }
}

/// How often it was taken to write, and for how long on average, if each acquisition is on record or they are
/// estimated.
fn sections(lock: &Lock) -> Option<(u64, f64)> {
    let stats = lock.role(Role::Write)?;
    let held = stats.held()?;
    (held.bound != Bound::AtLeast && stats.acquisitions > 0)
        .then(|| (stats.acquisitions, stats.hold.mean(stats.acquisitions)))
}

/// ` It is held for at least 80 % of the run: more threads can use it at most 1.2 times as much.`
fn more_threads(lock: &Lock) -> String {
    let of = |stats: &&crate::model::RoleStats| stats.role == Role::Write && stats.utilisation.is_some();
    let Some((stats, share)) = lock.roles.iter().find(of).and_then(|stats| Some((stats, stats.utilisation?)))
    else {
        return String::new();
    };
    let mark = match stats.held().map(|held| held.bound) {
        Some(Bound::AtLeast) => "at least ",
        Some(Bound::About) => "about ",
        _ => "",
    };
    if share < NEARLY_ALWAYS {
        return String::new();
    }
    format!(
        " It is held for {mark}{} of the run: more threads can use it at most {:.1} times as much.",
        percent(share),
        1.0 / share.min(1.0)
    )
}
