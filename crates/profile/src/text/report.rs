//! The whole report: the summary first.

use spinpark_measure::text::units::{count, time};

use super::{
    Style, blocking, condvars, held_waits, locks, other_waits, outcomes, places, sites, slow, split, spread,
    steps, waiting, wrap,
};
use crate::fit::fit;
use crate::model::{Detail, ENDED_EARLY, LocksOf, Merged, Profile, RecordingEnd};
use crate::summary::summary;
use crate::swap;
use crate::thread_time;

/// All of the report of one process: what ran, the summary, tables, what the numbers leave out, and what recording
/// cost.
#[must_use]
pub fn report(profile: &Profile, style: Style) -> String {
    let mut parts =
        vec![head(profile, style), slowed(profile, style), missing(profile, style), first(profile, style)];
    parts.extend([
        steps(profile, style),
        waiting(profile, style),
        locks(profile, style),
        split(profile, style),
        blocking(profile, style),
        held_waits(profile, style),
        spread(profile, style),
        places(profile, style),
        slow(profile, style),
        sites(profile, style),
        condvars(profile, style),
        other_waits(profile, style),
        outcomes(profile, style),
        all_notes(profile, style),
    ]);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// `store --fast (process 4242): 10.0 s, 3 threads, spinpark's locks, detail `sampled`.`
pub(super) fn head(profile: &Profile, style: Style) -> String {
    let command =
        if profile.arguments.is_empty() { profile.program.clone() } else { profile.arguments.join(" ") };
    let threads = profile.number_of_threads();
    let ended = match (profile.ended, &profile.ended_by) {
        (RecordingEnd::Running, _) => String::from(", still running"),
        (_, Some(known)) => format!(", {known}"),
        (RecordingEnd::Exited, None) => String::new(),
        (RecordingEnd::Killed, None) => format!(", {ENDED_EARLY}"),
    };
    let locks = match profile.locks_of {
        LocksOf::Glibc => "glibc's locks",
        LocksOf::Spinpark => "spinpark's locks",
        LocksOf::Library => "locks of the Rust library",
    };
    let detail = match profile.detail {
        Detail::Off => String::from("off"),
        Detail::Contended => String::from("contended"),
        Detail::Sampled => format!("sampled (holds: 1 in {})", profile.sample_every),
        Detail::Full => String::from("full"),
    };
    let how = match &profile.sampling {
        Some(sampling) => format!("sampled every {}", time(sampling.interval as f64)),
        None => format!("detail {detail}"),
    };
    let threads = match threads {
        // Threads are recorded when they wait.
        _ if profile.threads.is_empty()
            && profile.lock_wait() == 0
            && profile.detail == Detail::Contended
            && !profile.is_partial() =>
        {
            String::from(", no thread waited")
        }
        0 => String::new(),
        1 => String::from(", 1 thread"),
        threads => format!(", {} threads", count(threads)),
    };
    let line = match &profile.merged {
        Some(merged) => format!(
            "{}, {}: {} together{threads}; {locks}, {how}.",
            fit(&command, style.width / 2),
            processes(merged),
            time(profile.duration as f64)
        ),
        None => format!(
            "{} (process {}): {}{threads}{ended}; {locks}, {how}.",
            fit(&command, style.width / 2),
            profile.pid,
            time(profile.duration as f64)
        ),
    };
    wrap(&line, style.width, 2) + "\n"
}

/// `1,000 processes of build 1a2b3c4d in 20 places`.
fn processes(merged: &Merged) -> String {
    let number = match merged.processes {
        1 => String::from("1 process"),
        number => format!("{} processes", count(number)),
    };
    let build = merged.build().map(|build| format!(" of build {build}"));
    let places = match merged.places.len() {
        0 | 1 => String::new(),
        places => format!(" in {} places", count(places as u64)),
    };
    format!("{number}{}{places}", build.unwrap_or_default())
}

pub(super) fn first(profile: &Profile, style: Style) -> String {
    let summary = summary(profile);
    let headline = wrap(&summary.headline, style.width, 0);
    let bold = if style.color { format!("\x1b[1m{headline}\x1b[0m") } else { headline };
    let details = summary.details.join(" ");
    let mut parts = vec![bold, wrap(&details, style.width, 0)];
    parts.extend(thread_time::line(profile).map(|line| wrap(&line, style.width, 2)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n") + "\n"
}

/// That the numbers are not the program's, before everything.
pub(super) fn slowed(profile: &Profile, style: Style) -> String {
    profile.slowed().map(|text| wrap(&text, style.width, 0) + "\n").unwrap_or_default()
}

/// What was not recorded, before the summary: that could be wrong.
pub(super) fn missing(profile: &Profile, style: Style) -> String {
    profile.losses().iter().map(|text| wrap(&format!("Warning: {text}"), style.width, 2) + "\n").collect()
}

/// What a reader must know about the numbers.
pub(super) fn notes(profile: &Profile) -> Vec<String> {
    let mut notes = Vec::new();
    if profile.detail == Detail::Contended && !profile.locks.is_empty() {
        notes.push(String::from(
            "Acquisitions are counted from a lock's first wait on. Holds of threads that had not waited were measured only \
             while others waited: the lock was held for longer (≥). `--detail full` measures all.",
        ));
    }
    let estimated = profile.uses().map(|(_, stats)| stats).filter(|stats| stats.hold.total_error > 0);
    let widest = estimated
        .filter(|stats| stats.hold.total > 0)
        .map(|stats| stats.hold.total_error as f64 / stats.hold.total as f64)
        .fold(0.0, f64::max);
    if widest > 0.0 {
        notes.push(format!(
            "~ hold times are estimated from samples; the widest 95 % interval is ±{}.",
            spinpark_measure::text::units::short_percent(widest)
        ));
    }
    if profile.locks.iter().any(|lock| lock.kind.is_lock() && lock.type_name.is_some()) {
        notes.push(String::from(
            "Of locks that are not libc's only the waits are seen in which a thread slept: how often they were taken, and for how \
             long held, is not known, and a thread that waits may sleep several times.",
        ));
    }
    if profile.nested > 0 {
        notes.push(format!(
            "{} calls from signal handlers were not recorded, because the handler had interrupted the recorder.",
            count(profile.nested)
        ));
    }
    notes.extend(profile.left_out());
    notes.extend(profile.notes().map(|warning| format!("Warning: {warning}")));
    notes
}

/// The notes, what other locks would change, and what recording cost.
fn all_notes(profile: &Profile, style: Style) -> String {
    let cost = profile.cost.iter().map(|cost| cost.sentence.clone());
    let notes = notes(profile).into_iter().chain(swap::of_one(profile)).chain(cost);
    notes.map(|note| wrap(&note, style.width, 2) + "\n").collect()
}
