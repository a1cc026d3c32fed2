//! The answer of a run in sentences: what limits, and what makes the figures weak.

use spinpark_measure::units::number;

use super::{for_option, ns, share};
use crate::simulate::limit::{Causes, Limit, Mostly};
use crate::simulate::weak::Weak;

/// A part of the time from which on it is said what else there is besides the limit.
const WORTH_SAYING: f64 = 0.1;

/// A cause with less than this is not among several.
const LEAST_SAID: f64 = 0.005;

/// What limits, in a word or two, for tables.
#[must_use]
pub fn words(limit: &Limit) -> &'static str {
    match limit {
        Limit::Failure { .. } => "failed",
        Limit::TooShort { .. } => "too short",
        Limit::Held { .. } => "sections",
        Limit::OffCpu { .. } => "owners' CPUs",
        Limit::HandOver { mostly, .. } => match mostly {
            Mostly::WakeUps => "wake-ups",
            Mostly::Cpus => "CPUs",
            Mostly::Lines => "lines",
            Mostly::Pauses => "pauses",
            Mostly::Steps => "lock's steps",
            Mostly::Several => "hand-over",
        },
        Limit::Barging { .. } => "few awake",
        Limit::Readers { .. } => "writers",
        Limit::Lines { .. } => "lines",
        Limit::Cpus { .. } => "CPUs",
        Limit::WakeUps { .. } => "wake-ups",
        Limit::Work { .. } => "work",
        Limit::Sleep { .. } => "sleep",
    }
}

/// What limits, in a sentence.
#[must_use]
pub fn sentence(limit: &Limit) -> String {
    match limit {
        Limit::Failure { seed, what } => format!("The run with seed {seed} failed: {what}."),
        Limit::TooShort { for_ns } => format!(
            "Too short: no operation ended within {}. A longer --duration says what limits.",
            ns(*for_ns as f64)
        ),
        Limit::Held { place, held, readers, contended, wait_ns, wanted, mostly, causes } => format!(
            "The sections under `{place}` limit: it is held for {} of the time{}; {} of the acquisitions find it taken or \
             wanted, and an acquisition takes {} on the average.{}",
            share(*held),
            if *readers > 0.0 { format!(", by readers for {}", share(*readers)) } else { String::new() },
            share(*contended),
            ns(*wait_ns),
            if *wanted >= WORTH_SAYING {
                format!(
                    " For {} of the time it is free although it is wanted, {}.",
                    share(*wanted),
                    why(*mostly, causes)
                )
            } else {
                String::new()
            }
        ),
        Limit::OffCpu { place, held, off_cpu } => format!(
            "Owners without a CPU limit: `{place}` is held for {} of the time, and for {} of that its owner could go on, and \
             waits for a CPU.",
            share(*held),
            share(*off_cpu)
        ),
        Limit::HandOver { place, held, gap_ns, hold_ns, wanted, mostly, causes, .. } => format!(
            "{}: for {} of the time `{place}` is free although it is wanted, {}. It is held for {} of the time; a hold takes \
             {}, and {} pass between two.",
            what_passes(*mostly),
            share(*wanted),
            why(*mostly, causes),
            share(*held),
            ns(*hold_ns),
            ns(*gap_ns)
        ),
        Limit::Barging { place, held, at_once, asleep } => format!(
            "Barging limits: running threads pass sleeping ones. Of the acquisitions of `{place}` that find others waiting, {} take it at \
             once, and threads sleep for {} of their time; it is held for {} of the time.",
            share(*at_once),
            share(*asleep),
            share(*held)
        ),
        Limit::Readers { place, held, contended, wait_ns } => format!(
            "Waiting for writers limits: they hold the lock for {} of the time; {} of the acquisitions of `{place}` find a \
             writer, and an acquisition takes {} on the average.",
            share(*held),
            share(*contended),
            ns(*wait_ns)
        ),
        Limit::Lines { place, wait_ns, moves } => format!(
            "Cache lines limit: `{place}` is seldom taken, but an acquisition takes {}, as {} lines move from core to core \
             for each.",
            ns(*wait_ns),
            number(*moves)
        ),
        Limit::Cpus { busy, runnable, spinning } => format!(
            "The CPUs limit: they are busy for {} of the time; threads wait for one for {} of theirs, and poll for {}.",
            share(*busy),
            share(*runnable),
            share(*spinning)
        ),
        Limit::WakeUps { runnable, asleep, busy } => format!(
            "Wake-ups limit: threads are on their way to a CPU for {} of their time, and sleep for {}, while CPUs are busy for \
             {} of theirs.",
            share(*runnable),
            share(*asleep),
            share(*busy)
        ),
        Limit::Work { working } => {
            format!("Nothing limits but the work: threads do it for {} of their time.", share(*working))
        }
        Limit::Sleep { asleep } => format!(
            "No lock limits: threads sleep for {} of their time, for other reasons than a lock.",
            share(*asleep)
        ),
    }
}

/// What lies between two owners, for most of that time.
fn what_passes(mostly: Mostly) -> &'static str {
    match mostly {
        Mostly::WakeUps => "Wake-ups limit",
        Mostly::Cpus => "Waiting for CPUs limits",
        Mostly::Lines => "The lock's cache lines limit",
        Mostly::Pauses => "Pauses between two looks limit",
        Mostly::Steps => "The lock's own steps limit",
        Mostly::Several => "The way from one owner to the next limits",
    }
}

/// What the next owner is kept by.
fn why(mostly: Mostly, causes: &Causes) -> String {
    let Causes { wake_ups, cpus, lines, pauses, steps } = *causes;
    match mostly {
        Mostly::WakeUps => format!("{} of that until its next owner is awake", share(wake_ups)),
        Mostly::Cpus => format!("{} of that while its next owner waits for a CPU", share(cpus)),
        Mostly::Lines => format!("{} of that while its cache lines are on their way", share(lines)),
        Mostly::Pauses => {
            format!("{} of that while its next owner does not look (PAUSE, back-off)", share(pauses))
        }
        Mostly::Steps => format!("{} of that in its next owner's own steps and system calls", share(steps)),
        Mostly::Several => {
            let mut causes = [
                ("wake-ups", wake_ups),
                ("cache lines", lines),
                ("pauses between two looks", pauses),
                ("CPUs", cpus),
                ("steps", steps),
            ];
            causes.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            let said = causes.iter().filter(|(_, part)| *part >= LEAST_SAID);
            let said: Vec<String> = said.map(|(what, part)| format!("{what} ({})", share(*part))).collect();
            format!("for {}", said.join(", "))
        }
    }
}

/// What makes the figures weak, and what to do about it.
#[must_use]
pub fn weak(weak: &Weak) -> String {
    match *weak {
        Weak::FewOperations { operations, try_for_ns } => format!(
            "Few operations: {} in a run, so all figures are rough. --duration {} gives more.",
            number(operations),
            for_option(try_for_ns)
        ),
        Weak::FewOfEachThread { operations, try_for_ns } => format!(
            "Few operations of each thread: {} in a run, so fairness and the longest waits are chance. --duration {} gives more.",
            number(operations),
            for_option(try_for_ns)
        ),
        Weak::WaitedAllAlong { try_for_ns } => format!(
            "A thread waited as long as the run: too short to judge fairness. Try --duration {}.",
            for_option(try_for_ns)
        ),
    }
}
