//! The smaller tables: FreeBSD's columns, condition variables and other waits, the longest waits, threads,
//! stacks.

use serde::Serialize;

use super::locks::{Span, share};
use super::{Caption, caption, function, role};
use crate::chain;
use crate::model::{Kind, Profile, Role};
use crate::names::Names;

/// Rows of a table that may be long; it is the costly ones that stay.
const MOST: usize = 500;

/// A row with the columns of FreeBSD's `LOCK_PROFILING(9)`.
#[derive(Serialize)]
pub(super) struct FreeBsd {
    hold: Span,
    wait_total: u64,
    wait_longest: u64,
    count: u64,
    mean: u64,
    wait_mean: u64,
    held_up: u64,
    found_locked: u64,
    name: String,
}

/// A row for each site of each lock, the longest total wait first; and how many are left out.
pub(super) fn freebsd(profile: &Profile) -> (Vec<FreeBsd>, usize) {
    let called = Names::of(&profile.call_sites);
    let mut rows = Vec::new();
    for lock in profile.locks.iter().filter(|lock| lock.kind.is_lock()) {
        for stats in &lock.roles {
            let role = role(lock.kind, stats.role).map(|role| format!(", {role}")).unwrap_or_default();
            for site in &stats.sites {
                let call_site = called.position(site.call_site);
                let hold = Span::of_held(&site.hold, site.acquisitions);
                rows.push(FreeBsd {
                    wait_total: site.wait_total,
                    wait_longest: site.wait_longest,
                    count: site.acquisitions,
                    mean: hold.total.checked_div(site.acquisitions).unwrap_or_default(),
                    // As FreeBSD does: by all acquisitions, not only by those that waited.
                    wait_mean: site.wait_total.checked_div(site.acquisitions).unwrap_or_default(),
                    held_up: site.blocked,
                    found_locked: site.contended,
                    name: format!("{call_site} ({}:{}{role})", lock.kind.noun(), lock.label),
                    hold,
                });
            }
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse((row.wait_total, row.hold.total)));
    let left = rows.len().saturating_sub(MOST);
    rows.truncate(MOST);
    (rows, left)
}

/// A condition variable.
#[derive(Serialize)]
pub(super) struct Condvar {
    label: String,
    address: u64,
    hexadecimal: String,
    signals: u64,
    wait: Span,
    timed_out: u64,
    back: Span,
    late: Span,
}

pub(super) fn condvars(profile: &Profile) -> Vec<Condvar> {
    let mut rows: Vec<Condvar> = profile
        .locks
        .iter()
        .filter(|lock| lock.kind == Kind::Condvar)
        .map(|lock| {
            let of = |role| lock.roles.iter().find(move |stats| stats.role == role);
            let span = |role| of(role).map(|stats| Span::of(&stats.wait)).unwrap_or_default();
            Condvar {
                label: lock.label.clone(),
                address: lock.address,
                hexadecimal: format!("{:#x}", lock.address),
                signals: lock.roles.iter().map(|stats| stats.wake_ups).sum(),
                wait: span(Role::Signal),
                timed_out: of(Role::Signal).map_or(0, |stats| stats.outcomes.timed_out),
                back: span(Role::Back),
                late: span(Role::Late),
            }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.back.total, row.wait.total)));
    rows.truncate(MOST);
    rows
}

/// Waits with another lock held.
#[derive(Serialize)]
pub(super) struct HeldWait {
    outer: String,
    wanted: String,
    count: u64,
    total: u64,
    mean: u64,
    longest: u64,
    time_blocked: u64,
}

pub(super) fn held_waits(profile: &Profile) -> Vec<HeldWait> {
    let row = |chain::Row { outer, wanted, waits }: chain::Row| HeldWait {
        outer,
        wanted,
        count: waits.count,
        total: waits.wait_total,
        mean: waits.wait_total.checked_div(waits.count).unwrap_or_default(),
        longest: waits.wait_longest,
        time_blocked: waits.time_blocked,
    };
    chain::rows(profile).into_iter().take(MOST).map(row).collect()
}

/// A wait that had not ended.
#[derive(Serialize)]
pub(super) struct Waiting {
    thread: u32,
    lock: String,
    role: Option<&'static str>,
    call_site: Option<usize>,
    caption: Caption,
    holder: Option<u32>,
    held: Option<usize>,
    held_caption: Caption,
    time: u64,
}

pub(super) fn waiting(profile: &Profile, called: &Names<'_>) -> Vec<Waiting> {
    let row = |wait: &crate::model::Waiting| {
        let lock = profile.lock(wait.lock);
        let held = wait.holder.as_ref().and_then(|holder| holder.call_site);
        let doing = wait.holder.as_ref().and_then(|holder| holder.doing.as_deref());
        let held_caption = match doing {
            _ if !wait.role.is_lock() => Caption::of_none("–"),
            Some(doing) => Caption::of_none(doing),
            None => caption(called, held),
        };
        Waiting {
            thread: wait.thread,
            lock: lock.map_or_else(String::new, |lock| lock.label.clone()),
            role: lock.and_then(|lock| role(lock.kind, wait.role)),
            call_site: wait.call_site,
            caption: caption(called, wait.call_site),
            holder: wait.holder.as_ref().and_then(|holder| holder.thread),
            held,
            held_caption,
            time: wait.time,
        }
    };
    profile.waiting.iter().take(MOST).map(row).collect()
}

impl Waiting {
    /// The numbers of its call sites.
    pub(super) fn call_sites(&self) -> impl Iterator<Item = usize> {
        self.call_site.into_iter().chain(self.held)
    }
}

/// A wait for work, an event or another thread, or one of which it is not known what it is for.
#[derive(Serialize)]
pub(super) struct OtherWait {
    object: String,
    woken_in: Option<String>,
    wait: Span,
    timed_out: u64,
    may_be_lock: bool,
}

pub(super) fn other_waits(profile: &Profile) -> Vec<OtherWait> {
    let row = |row: crate::other_waits::Row<'_>| OtherWait {
        object: row.lock.label.clone(),
        woken_in: row.woken_in,
        wait: Span::of(&row.stats.wait),
        timed_out: row.stats.outcomes.timed_out,
        may_be_lock: row.stats.role == Role::Wake,
    };
    let profile = &crate::classes::grouped(profile, crate::other_waits::MANY);
    crate::other_waits::rows(profile).into_iter().take(MOST).map(row).collect()
}

/// One of the longest waits.
#[derive(Serialize)]
pub(super) struct Slow {
    thread: String,
    lock: String,
    call_site: Option<usize>,
    caption: Caption,
    held: Option<usize>,
    held_caption: Caption,
    at: u64,
    time: u64,
    queue: u32,
    call: Option<String>,
    call_time: u64,
}

pub(super) fn slow(profile: &Profile, called: &Names<'_>) -> Vec<Slow> {
    let row = |wait: &crate::model::SlowWait| Slow {
        thread: format!("{} {}", wait.name, wait.thread),
        lock: profile.lock(wait.lock).map_or_else(String::new, |lock| lock.label.clone()),
        call_site: wait.call_site,
        caption: caption(called, wait.call_site),
        held: wait.holder,
        held_caption: caption(called, wait.holder),
        at: wait.start,
        time: wait.time,
        queue: wait.queue,
        call: wait.holder_call.as_ref().map(|call| call.function.clone()),
        call_time: wait.holder_call.as_ref().map_or(0, |call| call.time),
    };
    let is_shown = |wait: &&crate::model::SlowWait| wait.role.is_lock() || wait.role == Role::Wake;
    profile.slow_waits.iter().filter(is_shown).take(MOST).map(row).collect()
}

impl Slow {
    /// The numbers of its call sites.
    pub(super) fn call_sites(&self) -> impl Iterator<Item = usize> {
        self.call_site.into_iter().chain(self.held)
    }
}

/// A thread, or several after each other.
#[derive(Serialize)]
pub(super) struct Thread {
    name: String,
    id: u32,
    users: u32,
    waits: u64,
    waited: u64,
    share: f64,
}

pub(super) fn threads(profile: &Profile) -> (Vec<Thread>, usize) {
    let row = |thread: &crate::model::Thread| Thread {
        name: thread.name.clone(),
        id: thread.id,
        users: thread.users,
        waits: thread.waits,
        waited: thread.waited,
        share: share(thread.waited, thread.time),
    };
    let mut rows: Vec<Thread> = profile.threads.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.waited));
    let left = rows.len().saturating_sub(MOST);
    rows.truncate(MOST);
    (rows, left)
}

/// A stack in full.
#[derive(Serialize)]
pub(super) struct Stack {
    number: usize,
    caption: String,
    frames: Vec<FrameRow>,
    is_cut: bool,
}

#[derive(Serialize)]
struct FrameRow {
    function: String,
    source: Option<String>,
    module: String,
    is_inlined: bool,
}

/// The stacks of the call sites with these numbers.
pub(super) fn stacks(
    profile: &Profile,
    names: &Names<'_>,
    numbers: impl Iterator<Item = usize>,
) -> Vec<Stack> {
    numbers
        .filter_map(|number| {
            let call_site = profile.call_sites.get(number)?;
            let frames = call_site.frames.iter().map(|frame| FrameRow {
                function: function(frame),
                source: frame.source.as_ref().map(|(path, line)| format!("{path}:{line}")),
                module: frame.module.clone(),
                is_inlined: frame.is_inlined,
            });
            Some(Stack {
                number,
                caption: caption(names, Some(number)).text,
                frames: frames.collect(),
                is_cut: call_site.is_cut,
            })
        })
        .collect()
}
