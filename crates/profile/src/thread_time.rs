//! What threads did with their time, in a line: running, runnable, locks, signals, other.
//!
//! Percentages are of the time of all threads that were not idle, and add up to 100. Running and runnable are
//! the kernel's figures (`schedstat`), locks and signals the recorder's; what the rest was is sampled by
//! [`watch`](crate::watch).

use std::cmp::Reverse;

use spinpark_measure::text::units::{count, time};

use crate::model::{FEW, Profile, ThreadTime, Threads};

/// The line; none if the process was not observed, or too little to tell.
#[must_use]
pub fn line(profile: &Profile) -> Option<String> {
    Some(format!("Threads' time: {}", spent(profile)?))
}

/// What the line says of the threads' time.
pub(crate) fn spent(profile: &Profile) -> Option<String> {
    let observed = profile.observed.as_ref()?;
    let Threads { number, idle, time: ref spent, samples, .. } = observed.threads;
    if samples < FEW {
        return None;
    }
    let resolution = format!(
        "Resolution: {} between samples, {} samples.",
        time(observed.interval as f64),
        count(samples)
    );
    if spent.total() == 0 {
        let all = if number == 1 {
            String::from("the thread")
        } else {
            format!("all {} threads", count(number.into()))
        };
        return Some(format!("{all} slept nearly all the time. {resolution}"));
    }
    let shares = shares(spent);
    let other: u64 = OTHER.iter().map(|(of, _)| of(&shares)).sum();
    let parts: Vec<String> = OTHER
        .iter()
        .filter(|(of, _)| of(&shares) > 0)
        .map(|(of, name)| format!("{name} {} %", of(&shares)))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let left_out = match idle {
        0 => String::new(),
        idle => format!(" {} of {} threads idle, not counted.", count(idle.into()), count(number.into())),
    };
    Some(format!(
        "running {} %, runnable {} %, locks {} %, signals {} %, other {other} %{parts}.{left_out} {resolution}",
        shares.running, shares.runnable, shares.locks, shares.signals
    ))
}

/// One part of the time, and what it is called.
type Part = (fn(&ThreadTime) -> u64, &'static str);

/// What is neither running, runnable, locks nor signals.
const OTHER: [Part; 8] = [
    (|shares| shares.unclear, "locks or work"),
    (|shares| shares.futexes, "other futexes"),
    (|shares| shares.io, "I/O"),
    (|shares| shares.sleep, "sleep"),
    (|shares| shares.ends, "end of threads or processes"),
    (|shares| shares.semaphores, "file locks or System V semaphores"),
    (|shares| shares.stopped, "stopped"),
    (|shares| shares.unknown, "not known"),
];

/// Whole percentages that add up to 100: the largest remainders are rounded up.
pub(crate) fn shares(spent: &ThreadTime) -> ThreadTime {
    let whole = u128::from(spent.total().max(1));
    let mut rounded = *spent;
    let mut remainders: Vec<(u128, usize)> = Vec::new();
    for (at, part) in rounded.parts().into_iter().enumerate() {
        let scaled = u128::from(*part) * 100;
        remainders.push((scaled % whole, at));
        *part = u64::try_from(scaled / whole).unwrap_or(100);
    }
    remainders.sort_by_key(|remainder| Reverse(*remainder));
    let missing = 100_u64.saturating_sub(rounded.total());
    let mut parts = rounded.parts();
    remainders.iter().zip(0..missing).for_each(|((_, at), _)| *parts[*at] += 1);
    rounded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_add_up() {
        let thirds = ThreadTime { running: 1, futexes: 1, io: 1, ..ThreadTime::default() };
        let mut rounded = shares(&thirds);
        assert_eq!(rounded.total(), 100);
        assert!(rounded.parts().iter().all(|part| [0, 33, 34].contains(*part)), "{rounded:?}");
        let most = ThreadTime { running: 9_999, locks: 1, ..ThreadTime::default() };
        assert_eq!((shares(&most).running, shares(&most).total()), (100, 100));
        assert_eq!(
            shares(&ThreadTime { io: u64::MAX / 2, sleep: u64::MAX / 2, ..ThreadTime::default() }).io,
            50
        );
    }
}
