//! Waits that are for no lock, or of which it is not known whether they are: how reports show them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use spinpark_measure::text::units::{count, short_percent, time};

use crate::classes::grouped;
use crate::model::{Kind, Lock, Profile, Role, RoleStats};
use crate::names::{Names, several, with_noun};

/// This number of objects that one place uses, or more, are shown as one.
pub(crate) const MANY: usize = 8;

/// What threads waited for.
pub(crate) struct Row<'a> {
    pub(crate) lock: &'a Lock,
    pub(crate) stats: &'a RoleStats,
    /// The function that ended most of these waits, of those that are known.
    pub(crate) woken_in: Option<String>,
}

/// All of them but condition variables, the longest total first.
pub(crate) fn rows(profile: &Profile) -> Vec<Row<'_>> {
    let names = Names::of_profile(profile);
    let others = profile.locks.iter().filter(|lock| !lock.kind.is_lock() && lock.kind != Kind::Condvar);
    let mut rows: Vec<Row<'_>> = others
        .flat_map(|lock| lock.roles.iter().map(move |stats| (lock, stats)))
        .filter(|(_, stats)| stats.contended > 0)
        .map(|(lock, stats)| Row { lock, stats, woken_in: woken_in(profile, &names, lock) })
        .collect();
    rows.sort_by_key(|row| (Reverse(row.stats.wait.total), row.lock.id));
    rows
}

/// The function that ended most of the waits, if it is known of most.
fn woken_in(profile: &Profile, names: &Names<'_>, lock: &Lock) -> Option<String> {
    let mut sums: BTreeMap<Option<String>, u64> = BTreeMap::new();
    for pair in profile.pairs.iter().filter(|pair| pair.lock == lock.id) {
        *sums.entry(pair.holder.map(|holder| names.in_sentence(holder))).or_default() += pair.count;
    }
    sums.into_iter().max_by_key(|(_, count)| *count)?.0
}

/// `for signals of condition variables`, or `for signals (condition variables 1.2 s, channels 300 ms)`.
pub(crate) fn signals(profile: &Profile) -> Option<String> {
    let all = |kind: Kind| {
        let of = profile.locks.iter().filter(|lock| lock.kind == kind);
        of.filter_map(|lock| lock.role(Role::Signal)).map(|stats| stats.wait.total).sum::<u64>()
    };
    let mut parts = [
        (Kind::Condvar, "condition variables"),
        (Kind::Channel, "channels"),
        (Kind::Idle, "workers without work"),
        (Kind::Barrier, "barriers"),
        (Kind::Job, "jobs"),
    ]
    .map(|(kind, name)| (all(kind), name));
    parts.sort_by_key(|(total, _)| Reverse(*total));
    let used: Vec<_> = parts.into_iter().filter(|(total, _)| *total > 0).collect();
    match used[..] {
        [] => None,
        [(_, "condition variables")] => Some(String::from("for signals of condition variables")),
        _ => {
            let listed: Vec<String> =
                used.iter().map(|(total, name)| format!("{name} {}", time(*total as f64))).collect();
            Some(format!("for signals ({})", listed.join(", ")))
        }
    }
}

/// What may be a lock or a signal, as a sentence: the object with the most of it.
pub(crate) fn unclear(profile: &Profile) -> Option<String> {
    let all = profile.unclear_wait();
    let profile = &grouped(profile, MANY);
    let rows = rows(profile);
    let busy = |row: &Row<'_>| profile.busy_unclear(row.lock, row.stats);
    let top = rows.iter().rev().filter(|row| busy(row) > 0).max_by_key(|row| busy(row))?;
    let (threads, _) = profile.threads_and_time();
    let share = (all as f64 / profile.thread_time().max(1) as f64).min(1.0);
    let most = busy(top) as f64 / all.max(1) as f64;
    let most =
        if most > 0.995 { String::from("all of it") } else { format!("{} of it", short_percent(most)) };
    let woken = top.woken_in.as_ref().map_or(String::new(), |function| format!(", woken in `{function}`"));
    let names = Names::of_profile(profile);
    let waits_in = top.stats.sites.first().map(|site| names.in_sentence(site.call_site));
    if top.lock.kind == Kind::Call {
        let site = waits_in.map_or(String::new(), |function| format!(", most in `{function}`"));
        return Some(format!(
            "Threads spent {}, {} of the time of {}, in loops of `{}`{site}: so they wait for a lock or for work, and use \
             CPUs meanwhile.",
            time(all as f64),
            short_percent(share),
            of_threads(threads),
            top.lock.label,
        ));
    }
    let hint = match top.woken_in.is_some() && top.woken_in == waits_in {
        true => ", which waits itself, as with a lock",
        false => "",
    };
    let advice = match top.lock.type_name {
        Some(_) => "",
        None => " A table names such waits (`--waits FILE`).",
    };
    let object = several(top.lock, &format!("objects ({})", top.lock.noun()))
        .unwrap_or_else(|| format!("the {}", with_noun(top.lock)));
    Some(format!(
        "Threads waited {}, {} of the time of {}, for locks or for work, the stacks do not tell which: {most} at \
         {object}{woken}{hint}.{advice}",
        time(all as f64),
        short_percent(share),
        of_threads(threads),
    ))
}

/// `one thread`, `8 threads`.
pub(crate) fn of_threads(threads: u64) -> String {
    if threads == 1 { String::from("one thread") } else { format!("{} threads", count(threads)) }
}
