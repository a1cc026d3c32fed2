//! The page's data of one process: the facts of the run as text, and what the tables and pictures need.

use std::collections::BTreeSet;

use serde::Serialize;
use spinpark_measure::text::one_line;
use spinpark_measure::text::{date, units};

use super::{Shown, draw, file, flame, locks, matrix, small_tables, span};
use crate::advice::{Advice, advice};
use crate::model::{Cost, Detail, ENDED_EARLY, LocksOf, Profile, RecordingEnd, Role, Strip};
use crate::names::Names;
use crate::thread_time;

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
    facts: Vec<Fact>,
    steps: Vec<Advice>,
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
            Strip::sum(roles().filter(move |stats| is(stats.role)).map(|stats| &stats.strip))
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
            name: file(&profile.program).to_owned(),
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
            facts: facts(profile),
            steps: advice(profile),
            strips: strips.into_iter().filter_map(wide).collect(),
            is_full: profile.detail == Detail::Full,
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

/// A fact. Back quotes enclose code.
#[derive(Serialize)]
struct Fact {
    name: &'static str,
    text: String,
    is_warning: bool,
}

fn facts(profile: &Profile) -> Vec<Fact> {
    let fact = |name, text| Fact { name, text, is_warning: false };
    let users: u64 = profile.threads.iter().map(|thread| u64::from(thread.users)).sum();
    let mut facts = vec![
        fact("Command", code(&one_line(&profile.arguments.join(" ")))),
        fact("Program", code(&profile.program)),
        fact("Process", format!("{}, started by {}", profile.pid, profile.parent)),
        fact(
            "Recorded",
            format!(
                "{} from {}; {}",
                span(profile.duration),
                date::iso(profile.started / 1_000_000_000),
                ended(profile)
            ),
        ),
        fact(
            match profile.detail {
                Detail::Contended => "Threads that used contended locks",
                _ => "Threads that used locks",
            },
            format!("{}; the program may use {}", units::number(users as f64), cpus(profile.cpus)),
        ),
        fact("Locks", locks(profile.locks_of)),
        fact("Detail", detail(profile)),
        fact("Cost of recording", cost(profile.cost.as_ref())),
    ];
    facts.extend(thread_time::spent(profile).map(|spent| fact("Threads' time", spent)));
    if profile.nested > 0 {
        let text = format!(
            "{} calls from signal handlers that had interrupted the recorder.",
            units::number(profile.nested as f64)
        );
        facts.push(Fact { name: "Not recorded", text, is_warning: true });
    }
    facts
}

fn code(text: &str) -> String {
    // A back quote would end the code.
    format!("`{}`", text.replace('`', "'"))
}

fn cpus(count: u32) -> String {
    match count {
        0 => String::from("an unknown number of CPUs"),
        1 => String::from("1 CPU"),
        count => format!("{count} CPUs"),
    }
}

fn ended(profile: &Profile) -> String {
    match (profile.ended, &profile.ended_by) {
        (RecordingEnd::Running, _) => String::from("the program was still running"),
        (_, Some(known)) => format!("the program {known}"),
        (RecordingEnd::Exited, None) => String::from("the program exited"),
        (RecordingEnd::Killed, None) => format!("the program {ENDED_EARLY}"),
    }
}

fn locks(of: LocksOf) -> String {
    String::from(match of {
        LocksOf::Glibc => "glibc's",
        LocksOf::Spinpark => "spinpark's, in place of glibc's",
        LocksOf::Library => "spinpark's, used as a Rust library",
    })
}

fn detail(profile: &Profile) -> String {
    match profile.detail {
        Detail::Off => String::from("`off`: nothing was recorded"),
        Detail::Contended => String::from(
            "`contended`: all waits; acquisitions from a lock's first wait on; hold times only after waits",
        ),
        Detail::Sampled => format!(
            "`sampled`: all waits and all acquisitions; hold times after waits, and of one in {} other acquisitions",
            profile.sample_every
        ),
        Detail::Full => String::from("`full`: all waits, acquisitions and hold times"),
    }
}

fn cost(cost: Option<&Cost>) -> String {
    let Some(cost) = cost else { return String::from("not known") };
    let how = if cost.is_measured { "measured on this program" } else { "estimated" };
    if !cost.is_measured && cost.interval.is_none() {
        return cost.sentence.clone();
    }
    let mut text = format!("time × {:.3}", cost.ratio);
    if let Some((low, high)) = cost.interval {
        let what = if cost.is_measured { "95 % interval" } else { "bounds" };
        text += &format!(", {what} {low:.3} to {high:.3}");
    }
    if let Some(noise) = cost.noise {
        text += &format!(", noise {}", units::percent(noise));
    }
    format!("{text} ({how}). {}", cost.sentence)
}
