//! The comparison as text.

use spinpark_measure::text::units::{short_count, short_percent, three_digits, time, time_or_dash};

use super::{Change, Diff, LockChange, SMALL, is_small, share};
use crate::fit::fit;
use crate::model::{Detail, Kind, LocksOf, Profile};
use crate::text::{Style, render, wrap};

/// The comparison as text: a sentence, and a table.
#[must_use]
pub fn text(diff: &Diff, before: &Profile, after: &Profile, style: Style) -> String {
    let words = |profile: &Profile| match profile.locks_of {
        LocksOf::Glibc => "glibc's locks",
        LocksOf::Spinpark => "spinpark's locks",
        LocksOf::Library => "locks of the library",
    };
    let wait = diff.all.wait;
    let sentence = match wait {
        (0, 0) => String::from("No thread waited for a lock in either run."),
        (before, after) if before == after => String::from("Threads waited for locks just as long."),
        (before, after) if is_small(before, after) => format!(
            "Threads waited about as long for locks: {} instead of {} ({}). One run each cannot show changes below {}.",
            time(after as f64),
            time(before as f64),
            with_error(&diff.all),
            short_percent(SMALL)
        ),
        (before, after) => {
            let word = if after < before { "less" } else { "more" };
            let how_much = match ratio(before, after).as_str() {
                "new" => format!("{}, and not at all before", time(after as f64)),
                "gone" => format!("not at all, and {} before", time(before as f64)),
                _ => {
                    let ratio = with_error(&diff.all);
                    format!("{} instead of {} ({ratio})", time(after as f64), time(before as f64))
                }
            };
            format!("Threads waited {word} for locks: {how_much}.")
        }
    };
    let is_one = before.program == after.program;
    let name = |profile: &Profile| match is_one {
        true => String::new(),
        false => format!("{}, ", fit(profile.program.rsplit('/').next().unwrap_or_default(), 40)),
    };
    let ran = format!(
        "Before: {}{}, {}, threads waited {} of their time. After: {}{}, {}, {}.",
        name(before),
        time(diff.durations.0 as f64),
        words(before),
        short_percent(share(before)),
        name(after),
        time(diff.durations.1 as f64),
        words(after),
        short_percent(share(after)),
    );
    let is_wide = style.width >= 100;
    let mut header = vec!["lock", "wait\nbefore", "\nafter", "\nratio"];
    // Runs may differ in length and threads.
    header.extend(is_wide.then_some(["share\nbefore", "\nafter"]).into_iter().flatten());
    header.extend(["waits\nbefore", "\nafter", "held\nbefore", "\nafter"]);
    let times = (before.thread_time(), after.thread_time());
    let changed = diff.locks.iter().filter(|lock| lock.role.has_holder());
    let row = |lock: &LockChange| {
        let (change, role) = (&lock.change, lock.role);
        let name = match lock.creation_sites {
            (0 | 1, 0 | 1) => lock.label.clone(),
            (before, after) => format!("{} ({before}, then {after})", lock.label),
        };
        let name = if lock.kind == Kind::RwLock { format!("{name}, {}", role.word()) } else { name };
        let mut row = vec![
            name,
            time_or_dash(change.wait.0),
            time_or_dash(change.wait.1),
            match change.wait {
                (0, 1..) => String::from("from 0"),
                (1.., 0) => String::from("to 0"),
                _ => with_error(change),
            },
        ];
        row.extend(is_wide.then(|| part(change.wait.0, times.0)));
        row.extend(is_wide.then(|| part(change.wait.1, times.1)));
        row.extend([short_count(change.contended.0), short_count(change.contended.1)]);
        row.extend([time_or_dash(change.hold.0), time_or_dash(change.hold.1)]);
        row
    };
    let mut parts = vec![format!("{}\n{}\n", wrap(&sentence, style.width, 0), wrap(&ran, style.width, 0))];
    parts.push(render(style, "Locks, by change in waiting", &header, 1, (changed, row)));
    if !diff.locks.is_empty() {
        parts.push(wrap(&notes(diff, before, after), style.width, 2) + "\n");
    }
    parts.push(
        diff.warnings.iter().map(|text| wrap(&format!("Warning: {text}"), style.width, 2) + "\n").collect(),
    );
    parts.retain(|part: &String| !part.is_empty());
    parts.join("\n")
}

/// What the columns mean.
fn notes(diff: &Diff, before: &Profile, after: &Profile) -> String {
    let of = |profile: &Profile| match profile.detail {
        Detail::Off => "nothing was recorded",
        Detail::Contended => "only holds after waits",
        Detail::Sampled => "estimated from samples",
        Detail::Full => "every hold",
    };
    let held = match (of(before), of(after)) {
        (before, after) if before == after => before.to_owned(),
        (before, after) => format!("before: {before}; after: {after}"),
    };
    let absent = match [before, after].iter().any(|profile| profile.detail == Detail::Contended) {
        true => {
            " The detail `contended` records a lock only if a thread waits for it: a lock that is missing from a run may have \
             been used there without waits."
        }
        false => "",
    };
    let is_there = |of: fn(&LockChange) -> bool| diff.locks.iter().any(of);
    let unclear = match is_there(|lock| lock.creation_sites.0.max(lock.creation_sites.1) > 1) {
        true => {
            " (1, then 2): the number of call sites, before and after, where one function creates such locks or uses them first. \
             They cannot be told apart and share a row."
        }
        false => "",
    };
    let is_sampled = is_there(|lock| lock.change.ratio_error().is_some()) || diff.all.ratio_error().is_some();
    let sampled = if is_sampled { " ±: 95 % interval, as waits were sampled." } else { "" };
    let by_order = match is_there(|lock| lock.is_by_order) {
        true => {
            " Locks that the same functions create, or use first, were matched in the order of their lines."
        }
        false => "",
    };
    let runs = match diff.all.wait {
        (0, 0) => "",
        _ => {
            " By how much runs of one program differ is not known from one run each: `spinpark compare --against` measures \
             whether the program became faster."
        }
    };
    format!("Held: total time held by all threads ({held}).{sampled}{runs}{absent}{unclear}{by_order}")
}

/// The ratio of the times waited, with what sampling leaves open: `×0.50 ±4 %`.
fn with_error(change: &Change) -> String {
    let ratio = ratio(change.wait.0, change.wait.1);
    match change.ratio_error() {
        Some(error) => format!("{ratio} ±{}", short_percent(error)),
        None => ratio,
    }
}

/// As a share of the time of all threads.
fn part(time: u64, threads: u64) -> String {
    match time {
        0 => String::from("–"),
        _ if threads == 0 => String::from("?"),
        time => short_percent((time as f64 / threads as f64).min(1.0)),
    }
}

/// How many times as much: `×1.25`; `new` where there was nothing.
fn ratio(before: u64, after: u64) -> String {
    match (before, after) {
        (0, 0) => String::from("–"),
        (0, _) => String::from("new"),
        (_, 0) => String::from("gone"),
        (before, after) => match after as f64 / before as f64 {
            ratio if ratio >= 999.5 => format!("×{ratio:.0}"),
            ratio if ratio < 0.001 => String::from("×<0.001"),
            ratio if ratio < 0.0995 => format!("×{ratio:.3}"),
            ratio => format!("×{}", three_digits(ratio)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn ratios() {
        assert_eq!([ratio(0, 0), ratio(0, 5), ratio(5, 0), ratio(4, 5)], ["–", "new", "gone", "×1.25"]);
        assert_eq!([ratio(1_000, 12), ratio(1, 5_000), ratio(5_000_000, 1)], ["×0.012", "×5000", "×<0.001"]);
    }
}
