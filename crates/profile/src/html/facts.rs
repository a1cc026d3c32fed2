//! The facts of the run, as text.

use serde::Serialize;
use spinpark_measure::text::one_line;
use spinpark_measure::{date, units};

use super::span;
use crate::model::{Cost, Detail, ENDED_EARLY, Ended, LocksOf, Profile};
use crate::thread_time;

/// A fact. Back quotes enclose code.
#[derive(Serialize)]
pub(super) struct Fact {
    name: &'static str,
    text: String,
    is_warning: bool,
}

pub(super) fn facts(profile: &Profile) -> Vec<Fact> {
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
    if let Some(line) = thread_time::line(profile) {
        facts.push(fact("Threads' time", line.trim_start_matches("Threads' time: ").to_owned()));
    }
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
        (Ended::Running, _) => String::from("the program was still running"),
        (_, Some(known)) => format!("the program {known}"),
        (Ended::Exited, None) => String::from("the program exited"),
        (Ended::Killed, None) => format!("the program {ENDED_EARLY}"),
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
    let how = if cost.is_measured {
        "measured on this program"
    } else {
        "estimated from what the recorder measured of itself"
    };
    let mut text = format!("time × {:.3}", cost.ratio);
    if let Some((low, high)) = cost.interval {
        let what = if cost.is_measured { "95 % interval" } else { "bounds" };
        text += &format!(", {what} {low:.3} to {high:.3}");
    }
    if let Some(noise) = cost.noise {
        text += &format!(", noise {}", units::percent(noise));
    }
    format!("{text} ({how}). {}", cost.says)
}
