//! Tables of locks: acquisitions, waits and holds; what the time waited was; outcomes of waits; all processes
//! of a run; rates between two updates of a running program.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use spinpark_measure::text::units::{count, short_count, short_percent, time, time_or_dash};

use super::{Style, dash, render};
use crate::model::{Bound, HeldTime, Kind, Lock, LocksOf, Profile, Role, RoleStats, Times};

/// Each lock in each of its roles.
fn lock_uses(profile: &Profile) -> impl Iterator<Item = (&Lock, &RoleStats)> {
    profile.uses().filter(|(lock, _)| lock.kind.is_lock())
}

/// The table of locks; condition variables have their own.
///
/// From 100 columns on it has means and histograms of waits, from 120 on the longest queue and the total time
/// held.
#[must_use]
pub fn locks(profile: &Profile, style: Style) -> String {
    let used: Vec<(&Lock, &RoleStats)> = lock_uses(profile).collect();
    let (is_wide, is_widest) = (style.width >= 100, style.width >= 120);
    let waits = used.iter().take(style.rows).map(|(_, stats)| &stats.wait);
    let spark = is_wide.then(|| Spark::new(waits, if is_widest { 16 } else { 12 })).flatten();
    let title = spark.map(|spark| spark.title("waits"));

    let mut header = vec!["lock", "taken", "contended", "wait\ntotal"];
    header.extend(is_wide.then_some("wait\nmean"));
    header.push("wait\nmax");
    header.extend(is_widest.then_some("held\ntotal"));
    header.extend(["held\nmean", "held\nmax"]);
    header.extend(is_widest.then_some("longest\nqueue"));
    header.extend(title.as_deref());
    let is_sampled = profile.sampling.is_some();
    let row_of = |(lock, stats): (&Lock, &RoleStats)| {
        let waits = stats.wait.count > 0;
        let was_measured = stats.hold.measured.count > 0;
        let held = stats.held();
        // Holds of threads that got the lock at once were not measured: the mean of all holds is not known.
        let is_part = held.is_some_and(|held| held.bound == Bound::AtLeast);
        let mark = held.map_or("", |held| held.bound.mark());
        let mut row = vec![
            name(lock, stats.role),
            if lock.is_slept_for() || is_sampled { dash() } else { short_count(stats.acquisitions) },
            match lock.is_slept_for() {
                // How often threads slept is not known of samples.
                _ if lock.sampled.is_some() || is_sampled => dash(),
                true if stats.contended == 1 => String::from("1 wait"),
                true => format!("{} waits", short_count(stats.contended)),
                false => stats.contended_share().map_or_else(dash, short_percent),
            },
            time_or_dash(stats.wait.total),
        ];
        row.extend(is_wide.then(|| if waits { time(stats.wait.mean()) } else { dash() }));
        row.push(time_or_dash(stats.wait.longest));
        row.extend(is_widest.then(|| held.map_or_else(dash, shown)));
        row.push(if was_measured && !is_part {
            mark.trim_end().to_owned() + &time(stats.hold.mean(stats.acquisitions))
        } else {
            dash()
        });
        row.push(if was_measured {
            let mark = if is_part { mark } else { "" };
            mark.to_owned() + &time(stats.hold.measured.longest as f64)
        } else {
            dash()
        });
        row.extend(
            is_widest
                .then(|| if stats.longest_queue > 0 { short_count(stats.longest_queue) } else { dash() }),
        );
        // Of waits that their stacks tell apart, the lengths are not known one by one.
        let has_lengths = waits && !stats.wait.histogram.is_empty();
        row.extend(spark.map(|spark| if has_lengths { spark.row(&stats.wait) } else { String::new() }));
        row
    };
    render(style, "Locks", &header, 1, (used.into_iter(), row_of))
}

/// A time held, with its mark.
fn shown(held: HeldTime) -> String {
    held.bound.mark().to_owned() + &time(held.time as f64)
}

/// The label; with the role, if the lock has two.
pub(super) fn name(lock: &Lock, role: Role) -> String {
    match lock.kind {
        Kind::RwLock => format!("{}, {}", lock.label, role.word()),
        _ => lock.label.clone(),
    }
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The bins that a column of histograms shows.
#[derive(Clone, Copy, Debug)]
struct Spark {
    /// The first bin.
    first: usize,
    /// Bins per character.
    group: usize,
    /// Number of characters.
    width: usize,
}

impl Spark {
    /// For these histograms, in at most `most` characters. None if they are empty.
    fn new<'a>(all: impl Iterator<Item = &'a Times> + Clone, most: usize) -> Option<Self> {
        let used = |times: &'a Times| times.histogram.iter().enumerate().filter(|(_, count)| **count > 0);
        let first = all.clone().flat_map(used).map(|(bin, _)| bin).min()?;
        let last = all.flat_map(used).map(|(bin, _)| bin).max()?;
        let group = (last + 1 - first).div_ceil(most.max(1));
        Some(Self { first, group, width: (last + 1 - first).div_ceil(group) })
    }

    /// `waits from 64 ns to 4.3 s`.
    fn title(&self, what: &str) -> String {
        let bound = |bin: usize| time((1_u64 << bin.min(62)) as f64);
        let end = self.first + self.width * self.group;
        // Bin 0 has what is less than 1 ns, too.
        format!("{what}\n{}–{}", bound(self.first), bound(end))
    }

    /// A row: heights are relative to the highest bar; a bin that is not empty has the lowest bar at least.
    fn row(&self, times: &Times) -> String {
        let group = |index: usize| -> u64 {
            let start = self.first + index * self.group;
            (start..start + self.group).filter_map(|bin| times.histogram.get(bin)).sum()
        };
        let counts: Vec<u64> = (0..self.width).map(group).collect();
        let highest = counts.iter().copied().max().unwrap_or(0);
        let bar = |count: u64| match count {
            0 => '·',
            count => BARS[((count as f64 / highest as f64 * 8.0).ceil() as usize).clamp(1, 8) - 1],
        };
        counts.into_iter().map(bar).collect()
    }
}

/// How the time waited for each lock is split: held, free, not known, which add up to it; for how much of the
/// watched time the holder had no CPU; and the time held in all. Empty for the library's locks, whose
/// recorder does not see that a lock is free.
#[must_use]
pub fn split(profile: &Profile, style: Style) -> String {
    let header =
        ["lock", "wait\ntotal", "held", "free", "not\nknown", "without\nCPU", "held\ntotal", "of\nrun"];
    let is_shown =
        |(_, stats): &(&Lock, &RoleStats)| stats.wait.total > 0 && profile.locks_of != LocksOf::Library;
    let row = |(lock, stats): (&Lock, &RoleStats)| {
        let split = &stats.split;
        let of = |part: u64, whole: u64| match (part, whole) {
            (_, 0) => dash(),
            (0, _) => String::from("0"),
            (part, whole) => short_percent(part as f64 / whole as f64),
        };
        let all = split.held + split.free + split.unknown;
        let held = stats.held();
        let mark = held.map_or("", |held| held.bound.mark());
        vec![
            name(lock, stats.role),
            time(stats.wait.total as f64),
            of(split.held, all),
            of(split.free, all),
            of(split.unknown, all),
            of(split.no_cpu, split.watched),
            held.map_or_else(dash, shown),
            match stats.utilisation {
                // Not `≥ < 0.01 %`.
                Some(share) if mark == "≥ " && share < 0.0001 => String::from("≥ 0 %"),
                Some(share) => mark.to_owned() + &short_percent(share),
                None => dash(),
            },
        ]
    };
    render(
        style,
        "Held and free while threads waited",
        &header,
        1,
        (lock_uses(profile).filter(is_shown), row),
    )
}

/// The table of outcomes; from 100 columns on also why spinning ended. Empty if none is known: glibc's locks
/// do not report them.
#[must_use]
pub fn outcomes(profile: &Profile, style: Style) -> String {
    let used = lock_uses(profile).filter(|(lock, stats)| !lock.is_slept_for() && is_known(stats));
    let is_wide = style.width >= 100;
    let mut header = vec!["lock", "waits", "spun", "parked", "handed\nover", "timed\nout", "not\nknown"];
    header.extend(is_wide.then_some(["new\nowner", "off\nCPU", "spin\nlimit"]).into_iter().flatten());
    let has_waiting = profile.uses().any(|(_, stats)| stats.outcomes.still_waiting > 0);
    header.extend(has_waiting.then_some("still\nwaiting"));
    header.push("wake-\nups");
    let row = |(lock, stats): (&Lock, &RoleStats)| {
        let outcomes = &stats.outcomes;
        let mut numbers = vec![
            stats.contended,
            outcomes.spun,
            outcomes.parked,
            outcomes.handed_over,
            outcomes.timed_out,
            outcomes.unknown,
        ];
        if is_wide {
            numbers.extend([outcomes.owner_changed, outcomes.off_cpu, outcomes.budget]);
        }
        numbers.extend(has_waiting.then_some(outcomes.still_waiting));
        numbers.push(stats.wake_ups);
        let shown = numbers
            .into_iter()
            .map(|number| if number == 0 { String::from("·") } else { short_count(number) });
        iter::once(name(lock, stats.role)).chain(shown).collect()
    };
    let title = if is_wide { "Outcomes of waits, and why spinning ended" } else { "Outcomes of waits" };
    render(style, title, &header, 1, (used, row))
}

fn is_known(stats: &RoleStats) -> bool {
    let outcomes = &stats.outcomes;
    let known = [
        outcomes.spun,
        outcomes.parked,
        outcomes.handed_over,
        outcomes.timed_out,
        outcomes.owner_changed,
        outcomes.off_cpu,
        outcomes.budget,
        stats.wake_ups,
    ];
    stats.contended > 0 && known.iter().any(|number| *number > 0)
}

/// What the processes had of locks with one name.
#[derive(Default)]
struct Sum {
    processes: u64,
    waits: u64,
    /// ns.
    waited: u64,
    longest: u64,
    /// Time waited by holder, ns.
    holders: BTreeMap<String, u64>,
}

/// The table of the locks of all these processes, locks with one name of one program together, those that
/// were waited for most first. Empty if fewer than two processes waited.
#[must_use]
pub fn processes(profiles: &[Profile], style: Style) -> String {
    // A process that called exec has several recordings.
    let waited = profiles.iter().filter(|profile| profile.lock_wait() > 0).map(|profile| profile.pid);
    let waited = waited.collect::<BTreeSet<_>>().len();
    if waited < 2 {
        return String::new();
    }
    let mut sums: BTreeMap<(&str, String), Sum> = BTreeMap::new();
    for profile in profiles {
        let program = profile.program.rsplit('/').next().unwrap_or_default();
        let mut seen = BTreeSet::new();
        for (lock, stats) in lock_uses(profile) {
            if stats.wait.total == 0 {
                continue;
            }
            let name = name(lock, stats.role);
            let sum = sums.entry((program, name.clone())).or_default();
            sum.processes += u64::from(seen.insert(name));
            sum.waits += stats.contended;
            sum.waited += stats.wait.total;
            sum.longest = sum.longest.max(stats.wait.longest);
            for pair in profile.pairs.iter().filter(|pair| pair.lock == lock.id && pair.role == stats.role) {
                let holder = pair.holder.map(|holder| profile.call_sites[holder].function());
                *sum.holders.entry(holder.unwrap_or_else(|| "not known".into())).or_default() += pair.held();
            }
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| Reverse(sum.waited));
    let programs = sums.iter().map(|((program, _), _)| program).collect::<BTreeSet<_>>().len();
    let row = |((program, lock), sum): ((&str, String), Sum)| {
        let holder =
            sum.holders.iter().max_by_key(|(_, waited)| **waited).map_or("–", |(name, _)| name.as_str());
        vec![
            if programs > 1 { format!("{program}: {lock}") } else { lock },
            holder.to_owned(),
            count(sum.processes),
            short_count(sum.waits),
            time(sum.waited as f64),
            time(sum.longest as f64),
        ]
    };
    let title = format!("Locks of all {} processes that waited", count(waited as u64));
    let header = ["lock", "most held by", "processes", "waits", "wait\ntotal", "wait\nmax"];
    render(style, &title, &header, 2, (sums.into_iter(), row))
}

/// What a lock did in between.
struct Change<'a> {
    lock: &'a Lock,
    role: Role,
    acquisitions: u64,
    waits: u64,
    /// ns.
    waited: u64,
}

/// The table of the locks that were used between two updates of one process, those that were waited for most
/// first. Empty if there are none.
#[must_use]
pub fn rates(before: &Profile, now: &Profile, style: Style) -> String {
    let seconds = now.duration.saturating_sub(before.duration) as f64 / 1e9;
    if seconds <= 0.0 {
        return String::new();
    }
    let mut changes: Vec<Change<'_>> = lock_uses(now)
        .map(|(lock, stats)| change(before, lock, stats))
        .filter(|change| change.acquisitions + change.waits > 0)
        .collect();
    changes.sort_by_key(|change| Reverse((change.waited, change.waits, change.acquisitions)));
    let per_second = |number: u64| short_count((number as f64 / seconds).round() as u64);
    let row = |change: Change<'_>| {
        vec![
            name(change.lock, change.role),
            per_second(change.acquisitions),
            per_second(change.waits),
            format!("{:.2}", change.waited as f64 / 1e9 / seconds),
            match change.waits {
                0 => dash(),
                waits => time(change.waited as f64 / waits as f64),
            },
        ]
    };
    let header = ["lock", "taken\na second", "waits\na second", "threads\nwaiting", "wait\nmean"];
    let title = format!("Locks in the last {seconds:.1} s");
    render(style, &title, &header, 1, (changes.into_iter(), row))
}

fn change<'a>(before: &Profile, lock: &'a Lock, stats: &RoleStats) -> Change<'a> {
    let earlier = before.locks.iter().find(|earlier| earlier.id == lock.id);
    let earlier = earlier.and_then(|earlier| earlier.role(stats.role));
    let less = |now: u64, of: fn(&RoleStats) -> u64| now.saturating_sub(earlier.map_or(0, of));
    Change {
        lock,
        role: stats.role,
        acquisitions: less(stats.acquisitions, |stats| stats.acquisitions),
        waits: less(stats.contended, |stats| stats.contended),
        waited: less(stats.wait.total, |stats| stats.wait.total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows() {
        let one = Times { histogram: vec![0, 0, 8, 4, 0, 1], ..Times::default() };
        let two = Times { histogram: vec![0, 0, 0, 0, 0, 0, 5], ..Times::default() };
        let both = [&one, &two];
        let spark = Spark::new(both.into_iter(), 10).expect("there is something");
        assert_eq!([spark.row(&one), spark.row(&two)], ["█▄·▁·", "····█"]);
        assert_eq!(spark.title("waits"), "waits\n4 ns–128 ns");
        let narrow = Spark::new(both.into_iter(), 3).expect("there is something");
        assert_eq!([narrow.row(&one), narrow.row(&two)], ["█▁·", "··█"]);
        assert!(Spark::new([&Times::default()].into_iter(), 10).is_none());
    }
}
