//! Waiting over time: when the lock changes that threads wait for most, and what they waited for in a part of
//! the run.
//!
//! A recording has the time waited for each lock by parts of the run, at most 64; everything else is a sum
//! over all of it.

use spinpark_measure::text::units::time;

use crate::fit::fit;
use crate::model::{Lock, Profile, Role, RoleStats, Strip};
use crate::names::{LONGEST, named};

/// A part of the run counts if threads waited for so much of it, on average.
const WAITED: f64 = 0.05;
/// A phase is so much of the run, at least.
const LONG: f64 = 0.1;
/// And its lock has so much of the waiting in it.
const MOST: f64 = 0.5;
/// More phases than these are not listed one by one.
const TOLD: usize = 4;

/// Time waited for each lock by parts of one length.
struct Parts<'a> {
    /// ns.
    length: u64,
    locks: Vec<(&'a Lock, Vec<u64>)>,
}

impl<'a> Parts<'a> {
    /// Of the roles that are wanted.
    fn of(profile: &'a Profile, is_wanted: fn(Role) -> bool) -> Self {
        let wanted = |lock: &'a Lock| {
            let used = move |stats: &&RoleStats| is_wanted(stats.role) && !stats.strip.waited.is_empty();
            lock.roles.iter().filter(used)
        };
        let strips = || profile.locks.iter().flat_map(wanted).map(|stats| &stats.strip);
        let length = strips().map(|strip| strip.part).max().unwrap_or(1).max(1);
        let sum = |lock: &'a Lock| {
            let strip = Strip::sum(wanted(lock).map(|stats| &stats.strip));
            (lock, strip.in_parts(length))
        };
        let locks = profile.locks.iter().map(sum).filter(|(_, parts)| !parts.is_empty()).collect();
        Self { length, locks }
    }

    fn count(&self) -> usize {
        self.locks.iter().map(|(_, parts)| parts.len()).max().unwrap_or(0)
    }

    fn waited(&self, at: usize) -> u64 {
        self.locks.iter().filter_map(|(_, parts)| parts.get(at)).sum()
    }

    /// The lock with the most waiting in a part.
    fn top(&self, at: usize) -> Option<&'a Lock> {
        let of = |(lock, parts): &(&'a Lock, Vec<u64>)| (parts.get(at).copied().unwrap_or(0), *lock);
        self.locks
            .iter()
            .map(of)
            .max_by_key(|(waited, _)| *waited)
            .filter(|(waited, _)| *waited > 0)
            .map(|top| top.1)
    }
}

/// Parts in a row with one lock in front.
struct Phase<'a> {
    lock: &'a Lock,
    from: usize,
    to: usize,
}

/// `The lock that is waited for most changes: until 2.10 s `a`, then `b`.`; none if it does not.
pub(crate) fn changes(profile: &Profile) -> Option<String> {
    let parts = Parts::of(profile, Role::is_lock);
    let mut phases: Vec<Phase<'_>> = Vec::new();
    let is_busy = |at: &usize| parts.waited(*at) as f64 >= WAITED * parts.length as f64;
    for at in (0..parts.count()).filter(is_busy) {
        let Some(lock) = parts.top(at) else { continue };
        match phases.last_mut().filter(|phase| phase.lock.id == lock.id) {
            Some(phase) => phase.to = at + 1,
            None => phases.push(Phase { lock, from: at, to: at + 1 }),
        }
    }
    let whole = profile.duration as f64 / parts.length as f64;
    phases.retain(|phase| (phase.to - phase.from) as f64 >= LONG * whole);
    // What lay between two of one lock was too short.
    phases.dedup_by(|later, earlier| {
        let is_same = later.lock.id == earlier.lock.id;
        if is_same {
            earlier.to = later.to;
        }
        is_same
    });
    let leads = |phase: &Phase<'_>| {
        let all: u64 = (phase.from..phase.to).map(|at| parts.waited(at)).sum();
        let its = parts.locks.iter().find(|(lock, _)| lock.id == phase.lock.id);
        let its: u64 =
            its.map_or(0, |(_, waited)| waited[phase.from..phase.to.min(waited.len())].iter().sum());
        its as f64 >= MOST * all as f64
    };
    if phases.len() < 2 || !phases.iter().all(leads) {
        return None;
    }
    if phases.len() > TOLD {
        return Some(format!(
            "The lock that is waited for most changes {} times in the run: `spinpark report --from TIME --to TIME` shows a part \
             of it.",
            phases.len() - 1
        ));
    }
    let shown: Vec<String> = phases
        .iter()
        .enumerate()
        .map(|(at, phase)| {
            let label = match named(phase.lock) {
                label if label.starts_with('`') => label,
                _ => format!("`{}`", fit(&phase.lock.label, LONGEST)),
            };
            match at + 1 == phases.len() {
                true => format!("then {label}"),
                false => format!("until {} {label}", time((phase.to as u64 * parts.length) as f64)),
            }
        })
        .collect();
    Some(format!("The lock that is waited for most changes: {}.", shown.join(", ")))
}

/// Waiting between two points in time.
pub(crate) struct Window<'a> {
    /// From where on and until where it is known, ns after the start: parts are whole.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The longest first.
    pub(crate) locks: Vec<(&'a Lock, u64)>,
}

/// What threads waited for between `from` and `to`, ns after the start.
pub(crate) fn window(profile: &Profile, from: u64, to: u64) -> Window<'_> {
    let parts = Parts::of(profile, |role| role.is_lock() || role == Role::Wake);
    let first = from / parts.length;
    let last = to.min(profile.duration).div_ceil(parts.length);
    let sum = |(lock, waited): &(&'_ Lock, Vec<u64>)| -> u64 {
        let _ = lock;
        let until = (last as usize).min(waited.len());
        waited.get(first as usize..until).unwrap_or_default().iter().sum()
    };
    let mut locks: Vec<(&Lock, u64)> =
        parts.locks.iter().map(|of| (of.0, sum(of))).filter(|(_, waited)| *waited > 0).collect();
    locks.sort_by_key(|(lock, waited)| (std::cmp::Reverse(*waited), lock.id));
    Window { from: first * parts.length, to: (last * parts.length).min(profile.duration), locks }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile of 1 s with these locks, by what was waited for them in each tenth of it.
    fn profile(locks: &[(&str, [u64; 10])]) -> Profile {
        let lock = |(id, (name, tenths)): (u32, &(&str, [u64; 10]))| {
            let waited: Vec<u64> = tenths.iter().map(|percent| percent * 1_000_000).collect();
            let strip = Strip { part: 100_000_000, waited };
            Lock {
                id,
                label: (*name).to_owned(),
                roles: vec![RoleStats { strip, ..RoleStats::default() }],
                ..Lock::default()
            }
        };
        let locks = (0..).zip(locks).map(lock).collect();
        Profile { duration: 1_000_000_000, locks, ..Profile::default() }
    }

    #[test]
    fn the_lock_changes() {
        let busy = [80, 80, 80, 80, 5, 5, 0, 0, 2, 2];
        let late = [0, 10, 0, 0, 60, 60, 60, 60, 60, 0];
        let profile = profile(&[("load", busy), ("serve", late)]);
        let said = changes(&profile).expect("a change");
        assert_eq!(said, "The lock that is waited for most changes: until 400 ms `load`, then `serve`.");
        let window = window(&profile, 450_000_000, 620_000_000);
        let waited: Vec<(&str, u64)> =
            window.locks.iter().map(|(lock, waited)| (lock.label.as_str(), waited / 1_000_000)).collect();
        assert_eq!(waited, [("serve", 180), ("load", 10)]);
        assert_eq!((window.from, window.to), (400_000_000, 700_000_000));
    }

    #[test]
    fn what_is_no_change() {
        assert_eq!(changes(&profile(&[("one", [50; 10])])), None);
        // Little waiting, and a short one.
        assert_eq!(changes(&profile(&[("one", [50; 10]), ("other", [4; 10])])), None);
        let short = [0, 0, 0, 90, 0, 0, 0, 0, 0, 0];
        let said = changes(&profile(&[("one", [50, 50, 50, 0, 50, 50, 50, 50, 50, 50]), ("other", short)]));
        assert!(said.is_none_or(|said| said.contains("2 times") || said.contains("until 300 ms `one`")));
        // No lock leads.
        let third = [40; 10];
        assert_eq!(changes(&profile(&[("one", third), ("two", third), ("three", third)])), None);
    }
}
