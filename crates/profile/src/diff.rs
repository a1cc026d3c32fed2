//! What changed between two profiles: before and after, lock by lock.
//!
//! Locks are the same if they are of one kind and are called the same; locks of one creation site are one (addresses and
//! numbers differ from run to run).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::classes::by_class;
use crate::model::{Detail, Kind, Lock, LocksOf, Profile, Role};
use crate::text::Style;
use crate::text::{fit, render, wrap};
use crate::units::{percent, ratio, short_count, time, time_or_dash};

/// The comparison of two profiles.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Diff {
    /// Of all locks.
    pub all: Change,
    /// For how long each was recorded, ns.
    pub durations: (u64, u64),
    /// By lock, the largest change of waiting first.
    pub locks: Vec<LockChange>,
    /// Why numbers may not be comparable: whole sentences.
    pub warnings: Vec<String>,
}

/// A lock in two profiles.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LockChange {
    /// What it is called, without a number.
    pub label: String,
    /// What it is.
    pub kind: Kind,
    /// What was wanted of it.
    pub role: Role,
    /// How many locks are called so, before and after.
    pub count: (usize, usize),
    /// The numbers.
    pub change: Change,
}

/// Numbers before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// So often taken.
    pub acquisitions: (u64, u64),
    /// So often waited for.
    pub contended: (u64, u64),
    /// Time waited, ns.
    pub wait: (u64, u64),
    /// The longest wait, ns.
    pub wait_longest: (u64, u64),
    /// Time held, ns.
    pub hold: (u64, u64),
}

/// Compares two profiles.
#[must_use]
pub fn diff(before: &Profile, after: &Profile) -> Diff {
    let mut locks: BTreeMap<(String, Kind, Role), LockChange> = BTreeMap::new();
    let mut all = Change::default();
    for (profile, is_after) in [(before, false), (after, true)] {
        let mut counts: BTreeMap<(&str, Kind), usize> = BTreeMap::new();
        for lock in &profile.locks {
            *counts.entry((lock.class(), lock.kind)).or_default() += 1;
        }
        for lock in &by_class(profile).locks {
            let class = class(lock);
            let count = counts.get(&(class, lock.kind)).copied().unwrap_or(1);
            for stats in &lock.roles {
                let entry = locks.entry((class.to_owned(), lock.kind, stats.role));
                let known = entry.or_insert_with(|| LockChange {
                    label: class.to_owned(),
                    kind: lock.kind,
                    role: stats.role,
                    count: (0, 0),
                    change: Change::default(),
                });
                let mut one = Change::default();
                let fields: [(&mut (u64, u64), u64); 5] = [
                    (&mut one.acquisitions, stats.acquisitions),
                    (&mut one.contended, stats.contended),
                    (&mut one.wait, stats.wait.total),
                    (&mut one.wait_longest, stats.wait.longest),
                    (&mut one.hold, stats.hold.total),
                ];
                for (field, number) in fields {
                    *(if is_after { &mut field.1 } else { &mut field.0 }) = number;
                }
                *(if is_after { &mut known.count.1 } else { &mut known.count.0 }) = count;
                known.change.add(&one);
                if stats.role.is_lock() {
                    all.add(&one);
                }
            }
        }
    }
    let mut locks: Vec<LockChange> = locks.into_values().collect();
    locks.sort_by_key(|lock| {
        let (before, after) = lock.change.wait;
        (lock.role.rank(), Reverse(before.abs_diff(after)), lock.label.clone())
    });
    Diff { all, durations: (before.duration, after.duration), locks, warnings: warnings(before, after) }
}

/// Of a lock that is one class: without how many there are.
fn class(lock: &Lock) -> &str {
    match lock.label.rsplit_once(" (") {
        Some((class, rest)) if rest.ends_with(" locks)") => class,
        _ => lock.class(),
    }
}

impl Change {
    fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.acquisitions, other.acquisitions),
            (&mut self.contended, other.contended),
            (&mut self.wait, other.wait),
            (&mut self.hold, other.hold),
        ];
        for (sum, more) in sums {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
        let (longest, other) = (&mut self.wait_longest, other.wait_longest);
        *longest = (longest.0.max(other.0), longest.1.max(other.1));
    }
}

fn warnings(before: &Profile, after: &Profile) -> Vec<String> {
    let mut warnings = Vec::new();
    let details = [before.detail, after.detail];
    if details[0] != details[1] {
        let note = if details.contains(&Detail::Contended) {
            " (`contended` counts only from the first wait on)"
        } else {
            ""
        };
        warnings.push(format!(
            "They were recorded with different details: acquisitions and holds do not compare{note}."
        ));
    } else if details[0] == Detail::Contended {
        warnings.push(String::from(
            "With the detail `contended`, acquisitions count only from the first wait on, and holds only after waits: record \
             with `--detail sampled` to compare them.",
        ));
    }
    let shares = (share(before), share(after));
    let sums = (before.lock_wait(), after.lock_wait());
    if sums.0 > 0 && sums.1 > 0 && (sums.1 > sums.0) != (shares.1 > shares.0) && !is_small(sums.0, sums.1) {
        warnings.push(format!(
            "One run had more time: as a part of the threads' time, waiting went from {} to {}.",
            percent(shares.0),
            percent(shares.1)
        ));
    }
    if before.is_partial() || after.is_partial() {
        warnings.push(String::from("Not everything could be recorded: some numbers are too low."));
    }
    warnings
}

/// The comparison for people: a sentence, and a table.
#[must_use]
pub fn text(diff: &Diff, before: &Profile, after: &Profile, style: Style) -> String {
    let words = |profile: &Profile| match profile.locks_of {
        LocksOf::Glibc => "glibc's locks",
        LocksOf::Spinpark => "spinpark's locks",
        LocksOf::Library => "locks of the library",
    };
    let wait = diff.all.wait;
    let sentence = match wait {
        (0, 0) => String::from("No thread waited for a lock in either."),
        (before, after) if before == after => String::from("Threads waited for locks just as long."),
        (before, after) if is_small(before, after) => format!(
            "Threads waited about as long for locks: {} instead of {} ({}). One run each cannot tell changes of less than \
             {}.",
            time(after as f64),
            time(before as f64),
            ratio(before, after),
            percent(SMALL)
        ),
        (before, after) => {
            let word = if after < before { "less" } else { "more" };
            let how_much = match ratio(before, after).as_str() {
                "new" => format!("{}, and not at all before", time(after as f64)),
                "gone" => format!("not at all, and {} before", time(before as f64)),
                ratio => format!("{} instead of {} ({ratio})", time(after as f64), time(before as f64)),
            };
            format!("Threads waited {word} for locks: {how_much}.")
        }
    };
    let is_one = before.program == after.program;
    let name = |profile: &Profile| match is_one {
        true => String::new(),
        false => format!("{}, ", fit(profile.program.rsplit('/').next().unwrap_or_default(), 40)),
    };
    let ran = format!(
        "Before: {}{}, {}, {} of its threads' time waited; after: {}{}, {}, {}.",
        name(before),
        time(diff.durations.0 as f64),
        words(before),
        percent(share(before)),
        name(after),
        time(diff.durations.1 as f64),
        words(after),
        percent(share(after)),
    );
    let is_wide = style.width >= 100;
    let mut header = vec!["lock", "wait\nbefore", "\nafter", "\nratio"];
    // Runs may differ in length and threads.
    header.extend(is_wide.then_some(["of time\nbefore", "\nafter"]).into_iter().flatten());
    header.extend(["waits\nbefore", "\nafter", "held\nbefore", "\nafter"]);
    let times = (before.thread_time(), after.thread_time());
    let changed = diff.locks.iter().filter(|lock| lock.role.has_holder());
    let row = |lock: &LockChange| {
        let (change, role) = (&lock.change, lock.role);
        let name = if lock.kind == Kind::RwLock {
            format!("{}, {}", lock.label, role.word())
        } else {
            lock.label.clone()
        };
        let mut row = vec![
            name,
            time_or_dash(change.wait.0),
            time_or_dash(change.wait.1),
            match change.wait {
                (0, 1..) => String::from("from 0"),
                (1.., 0) => String::from("to 0"),
                (before, after) => ratio(before, after),
            },
        ];
        row.extend(is_wide.then(|| part(change.wait.0, times.0)));
        row.extend(is_wide.then(|| part(change.wait.1, times.1)));
        row.extend([short_count(change.contended.0), short_count(change.contended.1)]);
        row.extend([time_or_dash(change.hold.0), time_or_dash(change.hold.1)]);
        row
    };
    let mut parts = vec![format!("{}\n{}\n", wrap(&sentence, style.width, 0), wrap(&ran, style.width, 0))];
    parts.push(render(style, "Locks, by the change of waiting", &header, 1, (changed, row)));
    if !diff.locks.is_empty() {
        parts.push(wrap(&notes(before, after), style.width, 2) + "\n");
    }
    parts.push(
        diff.warnings.iter().map(|text| wrap(&format!("Warning: {text}"), style.width, 2) + "\n").collect(),
    );
    parts.retain(|part: &String| !part.is_empty());
    parts.join("\n")
}

/// What the columns are.
fn notes(before: &Profile, after: &Profile) -> String {
    let of = |profile: &Profile| match profile.detail {
        Detail::Off => "nothing was recorded",
        Detail::Contended => "only after waits",
        Detail::Sampled => "estimated from samples",
        Detail::Full => "all of it",
    };
    let held = match (of(before), of(after)) {
        (before, after) if before == after => before.to_owned(),
        (before, after) => format!("before: {before}; after: {after}"),
    };
    let absent = match [before, after].iter().any(|profile| profile.detail == Detail::Contended) {
        true => {
            " A lock that was waited for in one run only is there in the other, too, as a rule: with the detail \
                 `contended` it is seen only when somebody waits."
        }
        false => "",
    };
    format!("Held: time held in all, by all threads ({held}).{absent}")
}

/// Changes that are smaller than this mean nothing with one run each.
const SMALL: f64 = 0.2;

fn is_small(before: u64, after: u64) -> bool {
    before > 0 && (after as f64 / before as f64 - 1.0).abs() < SMALL
}

/// As a part of the time of all threads.
fn part(time: u64, threads: u64) -> String {
    match time {
        0 => String::from("–"),
        _ if threads == 0 => String::from("?"),
        time => percent((time as f64 / threads as f64).min(1.0)),
    }
}

fn share(profile: &Profile) -> f64 {
    let time = profile.thread_time();
    if time == 0 { 0.0 } else { (profile.lock_wait() as f64 / time as f64).min(1.0) }
}
