//! The page's data of one process.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Shown, captions, draw, facts, flame, locks, matrix, small_tables, span};
use crate::model::{Role, Strip};
use crate::names::Names;

/// What the template gets.
#[derive(Serialize)]
pub(super) struct Process {
    /// Before all ids of its elements.
    id: String,
    name: String,
    pid: u32,
    /// Which recording of the process it is, if there are several.
    recording: Option<usize>,
    waited: u64,
    summary: Vec<String>,
    /// What is missing, shown before the summary.
    slowed: Option<String>,
    losses: Vec<String>,
    warnings: Vec<String>,
    facts: Vec<facts::Fact>,
    strips: Vec<Wide>,
    /// The highest detail counts all acquisitions; others do not.
    is_full: bool,
    locks: Vec<locks::Row>,
    locks_left: usize,
    flame: Option<String>,
    matrix: Option<matrix::Matrix>,
    held_waits: Vec<small_tables::HeldWait>,
    waiting: Vec<small_tables::Waiting>,
    condvars: Vec<small_tables::Condvar>,
    other_waits: Vec<small_tables::OtherWait>,
    slow: Vec<small_tables::Slow>,
    threads: Vec<small_tables::Thread>,
    threads_left: usize,
    freebsd: Vec<small_tables::FreeBsd>,
    freebsd_left: usize,
    stacks: Vec<small_tables::Stack>,
    shown: usize,
}

/// A strip of the whole width.
#[derive(Serialize)]
struct Wide {
    title: &'static str,
    svg: String,
    end: String,
    highest: String,
}

impl Process {
    pub(super) fn new(
        number: usize,
        Shown { profile, summary }: Shown<'_>,
        recording: Option<usize>,
    ) -> Self {
        let roles = || profile.locks.iter().flat_map(|lock| &lock.roles);
        let strip = |is: fn(Role) -> bool| {
            draw::sum(roles().filter(move |stats| is(stats.role)).map(|stats| &stats.strip))
        };
        let strips = [
            ("Waits for locks", "", strip(Role::is_lock)),
            ("Returns from condition variables", "", strip(|role| role == Role::Back)),
            ("Waits for signals", "signal", strip(|role| role == Role::Signal)),
            ("Waits for locks or signals, not known which", "signal", strip(|role| role == Role::Wake)),
        ];
        let wide = |(title, class, strip): (_, _, Strip)| wide(title, class, &strip, profile.duration);
        let called = Names::of(&profile.call_sites);
        let (rows, locks_left) = locks::rows(profile, &called);
        let waiting = small_tables::waiting(profile, &called);
        let call_sites = rows.iter().flat_map(locks::Row::call_sites);
        let slow = small_tables::slow(profile, &called);
        let call_sites: BTreeSet<usize> = call_sites
            .chain(waiting.iter().flat_map(small_tables::Waiting::call_sites))
            .chain(slow.iter().flat_map(small_tables::Slow::call_sites))
            .collect();
        let (threads, threads_left) = small_tables::threads(profile);
        let (freebsd, freebsd_left) = small_tables::freebsd(profile);
        Self {
            id: format!("p{number}"),
            name: captions::file(&profile.program).to_owned(),
            pid: profile.pid,
            recording,
            waited: profile.lock_wait(),
            summary: summary.to_vec(),
            slowed: profile.slowed(),
            losses: profile.losses(),
            warnings: crate::swap::of_one(profile)
                .into_iter()
                .chain(profile.left_out())
                .chain(profile.notes().map(str::to_owned))
                .collect(),
            facts: facts::facts(profile),
            strips: strips.into_iter().filter_map(wide).collect(),
            is_full: profile.detail == crate::model::Detail::Full,
            stacks: small_tables::stacks(profile, &called, call_sites.into_iter()),
            locks: rows,
            locks_left,
            flame: flame::flame(profile).and_then(|flame| json(&flame)),
            matrix: matrix::matrix(profile),
            held_waits: small_tables::held_waits(profile),
            waiting,
            condvars: small_tables::condvars(profile),
            other_waits: small_tables::other_waits(profile),
            slow,
            threads,
            threads_left,
            freebsd,
            freebsd_left,
            shown: locks::SHOWN,
        }
    }
}

fn wide(title: &'static str, class: &str, strip: &Strip, duration: u64) -> Option<Wide> {
    let highest = strip.waited.iter().copied().max().filter(|highest| *highest > 0)?;
    Some(Wide {
        title,
        svg: draw::large_strip(strip, duration, class),
        end: span(duration),
        highest: format!("{} in {}", span(highest), span(strip.part)),
    })
}

/// JSON that can stand in a page, whatever is in it.
fn json(value: &impl Serialize) -> Option<String> {
    let text = serde_json::to_string(value).ok()?;
    Some(text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}
