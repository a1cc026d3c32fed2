//! The table of locks: a row for each mode of a lock, and the details that open below it.

use std::collections::HashMap;

use serde::Serialize;

use super::draw;
use super::{Caption, caption};
use crate::model::{Held, Lock, Outcomes, Pair, Profile, Role, RoleStats, SiteStats, Times};
use crate::names::Names;

/// Rows that are shown at once, with all their details.
pub(super) const SHOWN: usize = 200;

/// The most rows: a page of 5 MB is large enough. The rows with the longest waiting are kept.
const MOST: usize = 1000;

/// The most sites, and the most pairs, that a row opens to.
struct Parts {
    sites: usize,
    pairs: usize,
}

/// Parts of a row that is shown at once.
const RICH: Parts = Parts { sites: 8, pairs: 6 };
/// Parts of any other row.
const POOR: Parts = Parts { sites: 2, pairs: 0 };

/// A row.
#[derive(Serialize)]
pub(super) struct Row {
    label: String,
    role: Option<&'static str>,
    kind: String,
    address: u64,
    hexadecimal: String,
    /// Waiting for signals is no contention: such rows come last.
    is_signal: bool,
    /// Acquisitions without a wait are seen, too.
    is_counted: bool,
    acquisitions: u64,
    contended: u64,
    share: f64,
    wait: Span,
    hold: Span,
    /// `~` if the time held is an estimate; `≥` if not every hold was measured.
    hold_mark: &'static str,
    hold_error: u64,
    /// Share of the recording in which it was held, per cent.
    used: Option<f64>,
    used_mark: &'static str,
    /// Whether the details have the split.
    is_rich: bool,
    /// Shares of the time waited, per cent.
    held: f64,
    free: f64,
    unknown: f64,
    watched: f64,
    no_cpu: f64,
    longest_queue: u64,
    waits: String,
    holds: String,
    strip: String,
    call_site: Option<usize>,
    call_site_caption: Caption,
    is_created: bool,
    is_destroyed: bool,
    failed_tries: u64,
    wake_ups: u64,
    outcomes: Vec<OutcomeRow>,
    sites: Vec<SiteRow>,
    sites_left: usize,
    pairs: Vec<PairRow>,
    pairs_left: usize,
}

/// Lengths of time in three columns.
#[derive(Serialize, Default)]
pub(super) struct Span {
    pub(super) count: u64,
    pub(super) total: u64,
    pub(super) mean: u64,
    pub(super) longest: u64,
}

impl Span {
    pub(super) fn of(times: &Times) -> Self {
        Self {
            count: times.count,
            total: times.total,
            mean: times.mean().round() as u64,
            longest: times.longest,
        }
    }

    fn of_sum(count: u64, total: u64, longest: u64) -> Self {
        Self { count, total, mean: total.checked_div(count).unwrap_or_default(), longest }
    }

    /// The total and the mean may be estimates; the longest is that of what was measured.
    pub(super) fn of_held(held: &Held, acquisitions: u64) -> Self {
        Self { total: held.total, mean: held.mean(acquisitions).round() as u64, ..Self::of(&held.measured) }
    }
}

#[derive(Serialize)]
struct OutcomeRow {
    name: &'static str,
    count: u64,
    share: f64,
}

#[derive(Serialize)]
struct SiteRow {
    call_site: usize,
    caption: Caption,
    acquisitions: u64,
    contended: u64,
    wait: Span,
    hold: Span,
    blocked: u64,
    blocked_total: u64,
    is_release: bool,
}

#[derive(Serialize)]
struct PairRow {
    waiter: usize,
    waiter_caption: Caption,
    holder: Option<usize>,
    holder_caption: Caption,
    /// It is where the holder released the lock.
    is_release: bool,
    count: u64,
    total: u64,
    longest: u64,
    free: u64,
}

/// The rows: waits for locks, the longest total first, then returns from condition variables, then waits for
/// signals; and how many are left out.
pub(super) fn rows(profile: &Profile, all: &Names<'_>) -> (Vec<Row>, usize) {
    let mut used: Vec<(&Lock, &RoleStats)> = profile
        .uses()
        .filter(|(_, stats)| stats.acquisitions + stats.contended + stats.failed_tries + stats.wake_ups > 0)
        .collect();
    used.sort_by_key(|(_, stats)| (stats.role.rank(), std::cmp::Reverse(stats.wait.total)));
    let left = used.len().saturating_sub(MOST);
    used.truncate(MOST);
    let mut pairs: HashMap<(u32, Role), Vec<&Pair>> = HashMap::new();
    for pair in &profile.pairs {
        pairs.entry((pair.lock, pair.role)).or_default().push(pair);
    }
    let waits = draw::range(used.iter().map(|(_, stats)| stats.wait.histogram.as_slice()));
    let holds = draw::range(used.iter().map(|(_, stats)| stats.hold.measured.histogram.as_slice()));
    let row = |(number, (lock, stats)): (usize, (&Lock, &RoleStats))| {
        let is_rich = number < SHOWN;
        let pairs = pairs.get(&(lock.id, stats.role)).map_or(&[][..], Vec::as_slice);
        Row {
            waits: draw::histogram(&stats.wait.histogram, waits, is_rich),
            holds: draw::histogram(&stats.hold.measured.histogram, holds, is_rich),
            ..row((profile, all), lock, stats, pairs, if is_rich { RICH } else { POOR })
        }
    };
    (used.into_iter().enumerate().map(row).collect(), left)
}

fn row(
    (profile, names): (&Profile, &Names<'_>),
    lock: &Lock,
    stats: &RoleStats,
    pairs: &[&Pair],
    parts: Parts,
) -> Row {
    let all = stats.split.held + stats.split.free + stats.split.unknown;
    Row {
        label: lock.label.clone(),
        role: super::role(lock.kind, stats.role),
        kind: lock.noun().to_owned(),
        address: lock.address,
        hexadecimal: format!("{:#x}", lock.address),
        is_signal: !stats.role.has_holder(),
        is_counted: !lock.is_slept_for(),
        acquisitions: stats.acquisitions,
        contended: stats.contended,
        share: stats.contended_share().unwrap_or_default() * 100.0,
        wait: Span::of(&stats.wait),
        hold: Span::of_held(&stats.hold, stats.acquisitions),
        hold_mark: stats.held().map_or("", |held| held.bound.mark()),
        hold_error: stats.hold.total_error,
        used: stats.utilisation.map(|share| share * 100.0),
        used_mark: stats.held().map_or("", |held| held.bound.mark()),
        is_rich: parts.pairs > 0,
        held: share(stats.split.held, all),
        free: share(stats.split.free, all),
        unknown: share(stats.split.unknown, all),
        watched: share(stats.split.watched, all),
        no_cpu: share(stats.split.no_cpu, stats.split.watched),
        longest_queue: stats.longest_queue,
        waits: String::new(),
        holds: String::new(),
        strip: draw::small_strip(&stats.strip, profile.duration),
        call_site: lock.creation_site,
        call_site_caption: caption(names, lock.creation_site),
        is_created: lock.is_created,
        is_destroyed: lock.is_destroyed,
        failed_tries: stats.failed_tries,
        wake_ups: stats.wake_ups,
        outcomes: outcomes(&stats.outcomes, stats.contended),
        sites: stats.sites.iter().take(parts.sites).map(|site| SiteRow::new(site, names)).collect(),
        sites_left: stats.sites.len().saturating_sub(parts.sites),
        pairs: pairs.iter().take(parts.pairs).map(|pair| PairRow::new(pair, names)).collect(),
        pairs_left: pairs.len().saturating_sub(parts.pairs),
    }
}

impl SiteRow {
    fn new(site: &SiteStats, names: &Names<'_>) -> Self {
        Self {
            call_site: site.call_site,
            caption: caption(names, Some(site.call_site)),
            acquisitions: site.acquisitions,
            contended: site.contended,
            wait: Span::of_sum(site.contended, site.wait_total, site.wait_longest),
            hold: Span::of_held(&site.hold, site.acquisitions),
            blocked: site.blocked,
            blocked_total: site.blocked_total,
            is_release: site.is_release,
        }
    }
}

impl PairRow {
    fn new(pair: &Pair, names: &Names<'_>) -> Self {
        Self {
            waiter: pair.waiter,
            waiter_caption: caption(names, Some(pair.waiter)),
            holder: pair.holder,
            holder_caption: caption(names, pair.holder),
            is_release: pair.is_release,
            free: pair.free,
            count: pair.count,
            total: pair.held(),
            longest: pair.wait_longest,
        }
    }
}

impl Row {
    /// Places that the row points to.
    pub(super) fn call_sites(&self) -> impl Iterator<Item = usize> {
        let sites = self.sites.iter().map(|site| site.call_site);
        let pairs = self.pairs.iter().flat_map(|pair| [Some(pair.waiter), pair.holder]).flatten();
        self.call_site.into_iter().chain(sites).chain(pairs)
    }
}

fn outcomes(outcomes: &Outcomes, contended: u64) -> Vec<OutcomeRow> {
    let all = [
        ("acquired while spinning", outcomes.spun),
        ("slept", outcomes.parked),
        ("slept, and the lock was handed over", outcomes.handed_over),
        ("timed out", outcomes.timed_out),
        ("not known whether it slept", outcomes.unknown),
        ("stopped spinning: the owner changed", outcomes.owner_changed),
        ("stopped spinning: the owner was off CPU", outcomes.off_cpu),
        ("stopped spinning: spin limit reached", outcomes.budget),
    ];
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(name, count)| OutcomeRow { name, count, share: share(count, contended) }).collect()
}

/// In per cent.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}
