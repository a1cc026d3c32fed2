//! Tables of waits: waiters and holders; call sites, also in FreeBSD's columns; waits while holding a lock;
//! the longest ones; those that had not ended; a part of the run; condition variables; and waits for no lock.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use spinpark_measure::text::one_line;
use spinpark_measure::text::units::{short_count, short_percent, time, time_or_dash};

use super::{Style, dash, locks, render, wrap};
use crate::classes::{add_site, grouped};
use crate::fit::{fit, fit_all};
use crate::model::{
    Kind, Lock, Pair, Profile, RecordingEnd, Role, RoleStats, SiteStats, SlowWait, Times, Waiting,
};
use crate::names::{FREE, Names, label_of_object};
use crate::phases::window;
use crate::{chain, other_waits as others};

/// The pairs of waiter and holder, those with the longest waiting first, returns from condition variables
/// last. Waiting for signals has no holder and is left out.
#[must_use]
pub fn blocking(profile: &Profile, style: Style) -> String {
    let names = Names::of(&profile.call_sites);
    let holder = |pair: &Pair| match pair.holder {
        Some(_) if pair.is_release => names.label_or_unknown(pair.holder) + " (release)",
        holder => names.label_or_unknown(holder),
    };
    // The time in which no thread had the lock has a row of its own.
    let parts = profile.pairs.iter().filter(|pair| pair.role.has_holder()).flat_map(|pair| {
        let is_free = pair.role.is_lock() && pair.free > 0;
        let free = is_free.then(|| Pair { wait_total: pair.free, count: 0, wait_longest: 0, ..pair.clone() });
        let held = if is_free { pair.held() } else { pair.wait_total };
        let held = (pair.count > 0 || held > 0).then(|| Pair { wait_total: held, ..pair.clone() });
        held.map(|held| (holder(pair), held)).into_iter().chain(free.map(|free| (FREE.to_owned(), free)))
    });
    let parts = parts.map(|(holder, pair)| ((pair.lock, names.label(pair.waiter), holder), pair));
    let mut rows = by_key(parts, |sum, pair| {
        sum.count += pair.count;
        sum.wait_total += pair.wait_total;
        sum.wait_longest = sum.wait_longest.max(pair.wait_longest);
    });
    rows.sort_by_key(|(_, pair)| (pair.role.rank(), Reverse(pair.wait_total), Reverse(pair.count)));
    let all = profile.lock_wait().max(1);
    let header = ["waiter", "holder", "lock", "waits", "time", "max", "share"];
    let row = |((_, waiter, holder), pair): ((u32, String, String), Pair)| {
        vec![
            waiter,
            holder,
            profile.lock_label(pair.lock),
            if pair.count > 0 { short_count(pair.count) } else { String::from("·") },
            time(pair.wait_total as f64),
            time_or_dash(pair.wait_longest),
            // Shares are of waits for locks only.
            if pair.role.is_lock() { short_percent(pair.wait_total as f64 / all as f64) } else { dash() },
        ]
    };
    render(style, "Waiters and holders", &header, 3, (rows.into_iter(), row))
}

/// Stacks that differ only in outer frames have one name, and share a row.
fn by_key<K: Hash + Eq + Clone, T>(
    items: impl Iterator<Item = (K, T)>,
    add: impl Fn(&mut T, &T),
) -> Vec<(K, T)> {
    let mut rows: Vec<(K, T)> = Vec::new();
    let mut known: HashMap<K, usize> = HashMap::new();
    for (key, item) in items {
        match known.entry(key) {
            Entry::Occupied(at) => add(&mut rows[*at.get()].1, &item),
            Entry::Vacant(free) => {
                rows.push((free.key().clone(), item));
                free.insert(rows.len() - 1);
            }
        }
    }
    rows
}

/// All sites, with their locks; those first that waited longest or blocked others longest. Without those
/// where threads wait for signals.
fn all_sites(profile: &Profile) -> Vec<(&Lock, Role, &SiteStats)> {
    let used = profile.uses().filter(|(_, stats)| stats.role.has_holder());
    let mut sites: Vec<(&Lock, Role, &SiteStats)> =
        used.flat_map(|(lock, stats)| stats.sites.iter().map(move |site| (lock, stats.role, site))).collect();
    sites.sort_by_key(|(lock, role, site)| order(lock, *role, site));
    sites
}

fn order(lock: &Lock, role: Role, site: &SiteStats) -> impl Ord + use<> {
    (Reverse(site.wait_total.max(site.blocked_total)), Reverse(site.acquisitions), lock.id, role)
}

/// The call sites that waited, or that blocked other threads.
#[must_use]
pub fn sites(profile: &Profile, style: Style) -> String {
    let header = [
        "call site",
        "lock",
        "waits",
        "wait\ntotal",
        "wait\nmax",
        "held\nmax",
        "blocked\nothers",
        "time\nblocked",
    ];
    let names = Names::of(&profile.call_sites);
    let sites = all_sites(profile).into_iter().map(|(lock, role, site)| {
        let at = if site.is_release { " (release)" } else { "" };
        ((lock.id, role, names.label(site.call_site) + at), (lock, site.clone()))
    });
    let mut rows = by_key(sites, |(_, sum), (_, site)| add_site(sum, site));
    rows.sort_by_key(|((_, role, _), (lock, site))| order(lock, *role, site));
    let row = |((_, role, label), (lock, site)): ((u32, Role, String), (&Lock, SiteStats))| {
        vec![
            label,
            locks::name(lock, role),
            short_count(site.contended),
            time_or_dash(site.wait_total),
            time_or_dash(site.wait_longest),
            time_or_dash(site.hold.measured.longest),
            short_count(site.blocked),
            time_or_dash(site.blocked_total),
        ]
    };
    render(style, "Call sites", &header, 2, (rows.into_iter(), row))
}

/// The table of waits while holding a contended lock; those first that blocked others longest.
#[must_use]
pub fn held_waits(profile: &Profile, style: Style) -> String {
    let row = |row: chain::Row| {
        vec![
            row.outer,
            row.wanted,
            short_count(row.waits.count),
            time(row.waits.wait_total as f64),
            time(row.waits.wait_total as f64 / row.waits.count.max(1) as f64),
            time(row.waits.wait_longest as f64),
            time_or_dash(row.waits.time_blocked),
        ]
    };
    let header = ["lock held", "waited for", "waits", "time", "mean", "max", "time\nblocked"];
    render(style, "Waits while holding another lock", &header, 2, (chain::rows(profile).into_iter(), row))
}

/// The table of the longest waits that ended: for locks, and for what may be one.
#[must_use]
pub fn slow(profile: &Profile, style: Style) -> String {
    let names = Names::of_profile(profile);
    let waits = profile.slow_waits.iter().filter(|wait| wait.role.is_lock() || wait.role == Role::Wake);
    let has_calls = waits.clone().take(style.rows).any(|wait| wait.holder_call.is_some());
    let mut header = vec!["thread", "waiter", "lock", "holder", "at", "waited", "queue"];
    header.extend(has_calls.then_some("holder\nin"));
    let row =
        |wait: &SlowWait| {
            let release = if wait.is_release && wait.holder.is_some() { " (release)" } else { "" };
            let call = wait.holder_call.as_ref();
            let mut cells = vec![
                format!("{} {}", one_line(&wait.name), wait.thread),
                names.label_or_unknown(wait.call_site),
                profile.lock_label(wait.lock),
                names.label_or_unknown(wait.holder) + release,
                seconds(wait.start),
                time(wait.time as f64) + if wait.is_timed_out { " (timed out)" } else { "" },
                if wait.queue > 0 { wait.queue.to_string() } else { dash() },
            ];
            cells.extend(has_calls.then(|| {
                call.map_or_else(dash, |call| format!("{} {}", call.function, time(call.time as f64)))
            }));
            cells
        };
    render(style, "The longest waits", &header, 4, (waits, row))
}

/// `12.345 s` after the start.
fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// The table of waits that had not ended, the longest first. After a regular exit it leaves out waits for
/// signals: threads without work always wait for one.
#[must_use]
pub fn waiting(profile: &Profile, style: Style) -> String {
    let header = ["waiter", "lock", "holder", "holding\nthread", "waiting\nthread", "time"];
    let names = Names::of(&profile.call_sites);
    let row = |wait: &Waiting| {
        let lock = profile.lock(wait.lock);
        let holder = wait.holder.as_ref();
        let held = match wait.role {
            Role::Signal => dash(),
            _ => match holder.and_then(|holder| holder.doing.as_deref()) {
                Some(doing) => doing.replace('`', ""),
                None => names.label_or_unknown(holder.and_then(|holder| holder.call_site)),
            },
        };
        vec![
            names.label_or_unknown(wait.call_site),
            lock.map_or_else(String::new, |lock| locks::name(lock, wait.role)),
            held,
            holder.and_then(|holder| holder.thread).map_or_else(dash, |id| id.to_string()),
            wait.thread.to_string(),
            time_or_dash(wait.time),
        ]
    };
    let waits =
        profile.waiting.iter().filter(|wait| wait.role.is_lock() || profile.ended != RecordingEnd::Exited);
    let title = match profile.ended {
        RecordingEnd::Running => "Waiting now",
        _ => "Still waiting at the end",
    };
    render(style, title, &header, 3, (waits, row))
}

/// The time waited for each lock between `from` and `to` (ns after the start), and the longest waits then.
#[must_use]
pub fn part(profile: &Profile, (from, to): (u64, u64), style: Style) -> String {
    let shown = window(profile, from, to);
    let title = format!("Waiting from {} to {}", seconds(shown.from), seconds(shown.to));
    let all: u64 = shown.locks.iter().map(|(_, waited)| waited).sum();
    let length = shown.to.saturating_sub(shown.from).max(1);
    let rows = shown.locks.iter().map(|(lock, waited)| {
        let may_be = if lock.role(Role::Wake).is_some() { "yes" } else { "it is" };
        vec![
            lock.label.clone(),
            time(*waited as f64),
            short_percent(*waited as f64 / all.max(1) as f64),
            format!("{:.2}", *waited as f64 / length as f64),
            String::from(may_be),
        ]
    });
    let header = ["lock", "waited", "share", "waiting\non average", "may be\na lock"];
    let table = render(style, &title, &header, 1, (rows, |row| row));
    if from >= profile.duration {
        let text = format!("The run had ended by then: it took {}.", seconds(profile.duration));
        return wrap(&text, style.width, 0) + "\n";
    }
    if table.is_empty() {
        let text =
            format!("No thread waited for a lock from {} to {}.", seconds(shown.from), seconds(shown.to));
        return wrap(&text, style.width, 0) + "\n";
    }
    let is_in = |wait: &SlowWait| wait.start < to && wait.start + wait.time > from;
    let mut waits = profile.clone();
    waits.slow_waits.retain(is_in);
    let longest = slow(&waits, style);
    let note =
        "Waits are counted in the part of the run in which they ended; the parts are those of the recording.";
    [table, longest, wrap(note, style.width, 2) + "\n"]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// The table of condition variables. From 100 columns on it has means.
#[must_use]
pub fn condvars(profile: &Profile, style: Style) -> String {
    // Of one whose waits were for something else nothing may be left.
    let is_used = |lock: &&Lock| lock.roles.iter().any(|stats| stats.contended + stats.wake_ups > 0);
    let profile = &grouped(profile, others::MANY);
    let condvars = profile.locks.iter().filter(|lock| lock.kind == Kind::Condvar).filter(is_used);
    let is_wide = style.width >= 100;
    let mut header = vec!["condvar", "waits", "timed\nout", "for\nsignal"];
    header.extend(is_wide.then_some("\nmean"));
    header.extend(["\nmax", "for\nmutex"]);
    header.extend(is_wide.then_some("\nmean"));
    header.push("\nmax");
    // The table is wide: this column only if there are such waits.
    let late = |lock: &Lock| lock.role(Role::Late).map_or(0, |stats| stats.wait.total);
    let has_late = profile.locks.iter().any(|lock| late(lock) > 0);
    header.extend(has_late.then_some("after\ntime-out"));
    header.push("signals");
    let of_none = Times::default();
    let row_of = |lock: &Lock| {
        let (signal, back) = (lock.role(Role::Signal), lock.role(Role::Back));
        let number = |of: fn(&RoleStats) -> u64| short_count(signal.map_or(0, of));
        let mut row = vec![
            label_of_object(lock),
            number(|stats| stats.contended),
            number(|stats| stats.outcomes.timed_out),
        ];
        for stats in [signal, back] {
            let times = stats.map_or(&of_none, |stats| &stats.wait);
            row.push(time_or_dash(times.total));
            row.extend(is_wide.then(|| if times.count == 0 { dash() } else { time(times.mean()) }));
            row.push(time_or_dash(times.longest));
        }
        row.extend(has_late.then(|| time_or_dash(late(lock))));
        row.push(number(|stats| stats.wake_ups));
        row
    };
    render(
        style,
        "Condition variables: waits for signals, and for the mutex afterwards",
        &header,
        1,
        (condvars, row_of),
    )
}

/// The table of waits that are for no lock, as far as that is known; condition variables have their own.
#[must_use]
pub fn other_waits(profile: &Profile, style: Style) -> String {
    let is_wide = style.width >= 100;
    let mut header = vec!["object", "woken in", "waits", "timed\nout", "wait\ntotal"];
    header.extend(is_wide.then_some("wait\nmean"));
    header.extend(["wait\nmax", "may be\na lock"]);
    let profile = &grouped(profile, others::MANY);
    let rows = others::rows(profile).into_iter().map(|row| {
        let waits = &row.stats.wait;
        let mut cells = vec![
            label_of_object(row.lock),
            // What a sentence puts in back quotes has them within.
            row.woken_in.as_ref().map_or_else(dash, |name| name.replace('`', "")),
            short_count(row.stats.contended),
            short_count(row.stats.outcomes.timed_out),
            time_or_dash(waits.total),
        ];
        cells.extend(is_wide.then(|| time(waits.mean())));
        cells.push(time_or_dash(waits.longest));
        cells.push(String::from(if row.stats.role == Role::Wake { "yes" } else { "no" }));
        cells
    });
    render(style, "Waits for work, events and other threads", &header, 2, (rows, |row| row))
}

const HEADER: [&str; 10] =
    ["max", "wait_max", "total", "wait_total", "count", "avg", "wait_avg", "cnt_hold", "cnt_lock", "name"];

/// All rows, the longest total wait first: for `sort -n -k 4 -r` and the like.
#[must_use]
pub fn freebsd(profile: &Profile, style: Style) -> String {
    let names = Names::of(&profile.call_sites);
    let mut sites = all_sites(profile);
    sites.sort_by_key(|(_, _, site)| Reverse(site.wait_total));
    let rows: Vec<([String; 9], String, String)> = sites
        .into_iter()
        .map(|(lock, role, site)| {
            let us = |ns: u64| (ns as f64 / 1e3).round() as u64;
            // Waits that timed out are no acquisitions, but count here.
            let count = site.acquisitions.max(site.contended);
            let mean = |ns: u64, count: u64| us(ns.checked_div(count).unwrap_or(0));
            let call_site = names.position(site.call_site);
            let kind = match role {
                Role::Read => "read",
                Role::Back => "back",
                _ => lock.kind.noun(),
            };
            // The row has the kind already.
            let label = ["of ", "in "].iter().find_map(|word| {
                lock.label.strip_prefix(lock.kind.noun())?.strip_prefix(' ')?.strip_prefix(word)
            });
            let numbers = [
                us(site.hold.measured.longest).to_string(),
                us(site.wait_longest).to_string(),
                us(site.hold.total).to_string(),
                us(site.wait_total).to_string(),
                count.to_string(),
                mean(site.hold.measured.total, site.hold.measured.count).to_string(),
                mean(site.wait_total, count).to_string(),
                site.blocked.to_string(),
                site.contended.to_string(),
            ];
            (numbers, format!("{call_site} ({kind}:"), label.unwrap_or(&lock.label).to_owned())
        })
        .collect();
    let widths: Vec<usize> = (0..9)
        .map(|column| {
            let widest = rows.iter().map(|(numbers, ..)| numbers[column].len()).max().unwrap_or(0);
            widest.max(HEADER[column].len())
        })
        .collect();
    let numbers = |cells: &[String]| -> String {
        cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$} ")).collect()
    };
    let header = HEADER.map(String::from);
    let header = numbers(&header[..9]) + &header[9] + "\n";
    let space = style.width.saturating_sub(widths.iter().sum::<usize>() + 9).max(24);
    let left = |call_site: &str| space.saturating_sub(call_site.chars().count() + 1);
    let labels = fit_all(rows.iter().map(|(_, call_site, label)| (label.as_str(), left(call_site))));
    rows.iter().zip(labels).fold(header, |text, ((cells, call_site, label), fitted)| {
        let name = match left(call_site) {
            8.. => format!("{call_site}{fitted})"),
            _ => fit(&format!("{call_site}{label})"), space),
        };
        text + &numbers(cells) + &name + "\n"
    })
}
