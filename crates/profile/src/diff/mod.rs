//! The changes between two profiles, before and after, lock by lock.
//!
//! Locks are matched by properties that survive edits: names, variables, the functions that create them
//! (`same`). Locks of one creation site count as one.

pub(crate) mod matching;
mod rendering;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spinpark_measure::text::units::short_percent;

use self::matching::{Class, Matched, matched};
pub use self::rendering::text;
use crate::classes::both;
use crate::fit::without_line;
use crate::model::{Detail, Kind, Profile, Role, RoleStats};

/// The `format` of a comparison in JSON.
pub const FORMAT: &str = "spinpark-diff";
/// The version of its format.
pub const VERSION: u32 = 2;

/// The comparison of two profiles.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Diff {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
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
    /// Its name without a number: after, or before if it is gone.
    pub label: String,
    /// Its name before, if that was another one: its line moved, for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_before: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// The mode in which it was wanted.
    pub role: Role,
    /// How many locks have this name, before and after.
    pub count: (usize, usize),
    /// How many call sites create them, before and after; more than one if they cannot be distinguished.
    pub creation_sites: (usize, usize),
    /// Several are created by the same functions: this one was matched by the order of their lines.
    pub is_by_order: bool,
    /// The numbers.
    pub change: Change,
}

/// Numbers before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Number of acquisitions.
    pub acquisitions: (u64, u64),
    /// Number of waits.
    pub contended: (u64, u64),
    /// Time waited, ns.
    pub wait: (u64, u64),
    /// Half the widths of its 95 % intervals, as far as the recorder sampled waits; 0 if it recorded all.
    #[serde(default)]
    pub wait_error: (u64, u64),
    /// The longest wait, ns.
    pub wait_longest: (u64, u64),
    /// Time held, ns.
    pub hold: (u64, u64),
}

/// Compares two profiles.
#[must_use]
pub fn diff(before: &Profile, after: &Profile) -> Diff {
    let (durations, warnings) = ((before.duration, after.duration), warnings(before, after));
    let (before, after) = (matching::classes(before), matching::classes(after));
    let [before_each, after_each] = [&before, &after].map(|classes| classes.iter().collect::<Vec<_>>());
    let mut locks: Vec<LockChange> =
        matched(&before_each, &after_each).iter().flat_map(|same| changes(same, &before, &after)).collect();
    let mut all = Change::default();
    locks.iter().filter(|lock| lock.role.is_lock()).for_each(|lock| all.add(&lock.change));
    locks.sort_by_key(|lock| {
        let (before, after) = lock.change.wait;
        let (change, longer) = (before.abs_diff(after), before.max(after));
        (lock.role.rank(), Reverse((change, longer)), lock.label.clone(), lock.kind, lock.role)
    });
    Diff { format: FORMAT.to_owned(), version: VERSION, all, durations, locks, warnings }
}

/// The changes of locks that match, by role.
fn changes(same: &Matched, before: &[Class], after: &[Class]) -> Vec<LockChange> {
    let of = |all: &'_ [Class], indices: &[usize]| -> (Option<String>, usize) {
        let label = match indices {
            [] => None,
            [one] => Some(all[*one].label.clone()),
            [one, ..] => Some(without_line(&all[*one].label)),
        };
        (label, indices.iter().map(|index| all[*index].count).sum())
    };
    let (label_before, count_before) = of(before, &same.before);
    let (label_after, count_after) = of(after, &same.after);
    let Some(label) = label_after.or_else(|| label_before.clone()) else { return Vec::new() };
    let classes = [(before, &same.before, false), (after, &same.after, true)];
    let mut changes: BTreeMap<Role, LockChange> = BTreeMap::new();
    for (all, indices, is_after) in classes {
        for (lock, stats) in indices
            .iter()
            .map(|index| &all[*index].lock)
            .flat_map(|lock| lock.roles.iter().map(move |stats| (lock, stats)))
        {
            let change = changes.entry(stats.role).or_insert_with(|| LockChange {
                label: label.clone(),
                label_before: label_before.clone().filter(|before| *before != label),
                kind: lock.kind,
                role: stats.role,
                count: (count_before, count_after),
                creation_sites: (same.before.len(), same.after.len()),
                is_by_order: same.by_order,
                change: Change::default(),
            });
            change.change.add(&Change::of(stats, is_after));
        }
    }
    changes.into_values().collect()
}

impl Change {
    fn of(stats: &RoleStats, is_after: bool) -> Self {
        let hold = stats.held().map_or(0, |held| held.time);
        let numbers = [
            stats.acquisitions,
            stats.contended,
            stats.wait.total,
            stats.error.waited,
            stats.wait.longest,
            hold,
        ];
        let [acquisitions, contended, wait, wait_error, wait_longest, hold] =
            numbers.map(|number| if is_after { (0, number) } else { (number, 0) });
        Self { acquisitions, contended, wait, wait_error, wait_longest, hold }
    }

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
        let (error, more) = (&mut self.wait_error, other.wait_error);
        *error = (both(error.0, more.0), both(error.1, more.1));
        let (longest, other) = (&mut self.wait_longest, other.wait_longest);
        *longest = (longest.0.max(other.0), longest.1.max(other.1));
    }
}

impl Change {
    /// By how much the ratio of the times waited may be wrong, because the recorder sampled waits: half the
    /// width of its 95 % interval, as a fraction. None if it recorded all, or there is no ratio.
    #[must_use]
    pub fn ratio_error(&self) -> Option<f64> {
        let relative = |wait: u64, error: u64| error as f64 / wait as f64;
        let is_sampled = self.wait_error != (0, 0);
        (is_sampled && self.wait.0 > 0 && self.wait.1 > 0)
            .then(|| relative(self.wait.0, self.wait_error.0).hypot(relative(self.wait.1, self.wait_error.1)))
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
            "The recordings have different details: acquisitions and holds cannot be compared{note}."
        ));
    } else if details[0] == Detail::Contended {
        warnings.push(String::from(
            "With the detail `contended`, acquisitions are counted only from the first wait on, and holds only after waits. \
             Record with `--detail sampled` to compare them.",
        ));
    }
    let shares = (share(before), share(after));
    let sums = (before.lock_wait(), after.lock_wait());
    if sums.0 > 0 && sums.1 > 0 && (sums.1 > sums.0) != (shares.1 > shares.0) && !is_small(sums.0, sums.1) {
        warnings.push(format!(
            "The runs differ in thread time: waiting went from {} to {} of it.",
            short_percent(shares.0),
            short_percent(shares.1)
        ));
    }
    if before.is_partial() || after.is_partial() {
        warnings.push(String::from("Records are missing: some numbers are too low."));
    }
    warnings
}

/// With one run each, smaller changes mean nothing.
const SMALL: f64 = 0.2;

fn is_small(before: u64, after: u64) -> bool {
    before > 0 && (after as f64 / before as f64 - 1.0).abs() < SMALL
}

fn share(profile: &Profile) -> f64 {
    let time = profile.thread_time();
    if time == 0 { 0.0 } else { (profile.lock_wait() as f64 / time as f64).min(1.0) }
}
