//! What recording cost a program, from what its recorder measured of itself.
//!
//! The recorder times its own calls, and says how much of that it did while its thread had a lock that others
//! have waited for. From inside, the program's time without it can only be bounded:
//!
//! - at least: the recorder's time is spread over the threads that can run at a time, or, if that is more,
//!   what it did with such locks held delayed all threads;
//! - at most: no two threads ever ran at a time, and all of it delayed the program.
//!
//! What is in neither is how threads alternate otherwise when they come to a lock later. That matters to
//! threads that do little but lock.

use spinpark_measure::units::{count, short_percent, time};

use crate::model::{Cost, Detail, Profile, RecorderCost};

/// A recording that slowed its program more is said to be none of the program as it is.
pub const BOUND: f64 = 1.05;
/// The recorder's part of the time that is still believed; if it had more, all that is known is that it was
/// much.
const MOST: f64 = 0.75;
/// Threads that take contended locks more often than once in this number of ns do little else.
const LITTLE_ELSE: f64 = 2_000.0;

/// What calls cost that the recorder does not time, ns each; as measured on the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untimed {
    /// An acquisition that is only counted, with its release.
    pub counted: f64,
    /// One that is left out of a sample.
    pub left_out: f64,
}

/// The estimate; none if there is nothing to estimate.
#[must_use]
pub fn estimate(profile: &Profile, untimed: Untimed) -> Option<Cost> {
    let own = &profile.recorder;
    let threads = profile.thread_time() as f64;
    let wall = profile.duration as f64;
    if threads <= 0.0 || wall <= 0.0 || *own == RecorderCost::default() {
        return None;
    }
    let counted =
        profile.locks.iter().flat_map(|lock| &lock.roles).map(|stats| stats.acquisitions as f64).sum::<f64>();
    let counted = match profile.detail {
        Detail::Sampled => counted,
        _ => 0.0,
    };
    let by_number = own.left_out as f64 * untimed.left_out + counted * untimed.counted;
    let all = own.calls as f64 + own.rare as f64 + by_number;
    let held = own.held as f64;
    // A table may have been used by several threads one after the other.
    let at_a_time = (threads / wall).max(1.0);
    let cpus = if profile.cpus == 0 { at_a_time } else { f64::from(profile.cpus).min(at_a_time) };
    let least = (all / (cpus * wall)).max(held / wall).min(MOST);
    let most = (all / wall).clamp(least, MOST);
    let ratio = |share: f64| 1.0 / (1.0 - share);
    let mut says = format!(
        "Recording cost {} of the threads' time, as the recorder measured of itself: {}",
        // Threads that the recorder has nothing of ran, too.
        match short_percent(all / threads.max(wall)) {
            tiny if tiny.starts_with('<') => tiny.replacen('<', "less than", 1),
            about => format!("about {about}"),
        },
        time(all),
    );
    if own.rare > 0 && own.unwound > 0 {
        says += &format!(
            " ({} of it for what is rare, such as unwinding {} {})",
            time(own.rare as f64),
            count(own.unwound),
            if own.unwound == 1 { "stack" } else { "stacks" }
        );
    }
    if held > 0.0 {
        says += &format!(", {} while a thread had a lock that others have waited for", time(held));
    }
    let at_most =
        if most < MOST { format!("to {}", short_percent(ratio(most) - 1.0)) } else { "or more".into() };
    says += &format!(". That made the run {} {at_most} longer.", short_percent(ratio(least) - 1.0));
    let taken = own.recorded as f64 + own.left_out as f64;
    if own.left_out > 0 && threads / taken < LITTLE_ELSE {
        says += " Threads took contended locks so often that they do little else: recording also changes how they alternate, \
                 which is not in these figures and can be more than they are.";
    }
    if profile.detail == Detail::Contended && untimed.counted >= 0.05 {
        says += &format!(
            " Not in it: a lock that no thread has waited for takes {:.1} ns longer each time, with its release, and such locks \
             are not counted.",
            untimed.counted
        );
    }
    says += " `--overhead` measures all of it on the program itself.";
    let interval = Some((ratio(least), ratio(most)));
    Some(Cost { is_measured: false, ratio: ratio(least), interval, noise: None, says })
}

impl Profile {
    /// That recording has slowed the program by more than its bound: then it is the first thing to know.
    #[must_use]
    pub fn slowed(&self) -> Option<String> {
        let cost = self.cost.as_ref().filter(|cost| cost.ratio > BOUND)?;
        let by = match cost.interval.filter(|_| !cost.is_measured) {
            Some((low, high)) if high >= 1.0 / (1.0 - MOST) => format!("×{low:.2} or more (estimated)"),
            Some((low, high)) => format!("×{low:.2} to ×{high:.2} (estimated)"),
            None => format!("×{:.2} (measured)", cost.ratio),
        };
        Some(format!("This recording slowed the program {by}: its figures are not the program's."))
    }

    /// What was left out because it came faster than it can be recorded.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let own = &self.recorder;
        if own.left_out == 0 && own.waits_left_out == 0 {
            return None;
        }
        let stats = || self.locks.iter().flat_map(|lock| &lock.roles);
        let widest = |parts: Vec<(u64, u64)>| {
            let shares =
                parts.into_iter().filter(|(_, of)| *of > 0).map(|(error, of)| error as f64 / of as f64);
            short_percent(shares.fold(0.0, f64::max))
        };
        let first = stats().max_by_key(|stats| stats.wait.total)?;
        let some = |number: u64, what: &str| match number {
            0 => None,
            1 => Some(format!("1 {what}")),
            number => Some(format!("{} {what}s", count(number))),
        };
        let parts = [some(own.left_out, "acquisition"), some(own.waits_left_out, "short wait")];
        let verb = if own.left_out + own.waits_left_out == 1 { "was" } else { "were" };
        let what = format!("{} {verb}", parts.into_iter().flatten().collect::<Vec<_>>().join(" and "));
        Some(format!(
            "Contended locks were taken faster than that can be recorded: {} left out of a random sample, and figures are \
             estimates. For the lock that is waited for most, 95 % intervals are ±{} (acquisitions), ±{} (waits) and ±{} (time \
             waited).",
            what,
            widest(vec![(first.error.acquisitions, first.acquisitions)]),
            widest(vec![(first.error.contended, first.contended)]),
            widest(vec![(first.error.waited, first.wait.total)]),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Thread;

    fn profile(recorder: RecorderCost) -> Profile {
        let thread = Thread { users: 1, time: 1_000_000_000, ..Thread::default() };
        let threads = (1..=4).map(|id| Thread { id, ..thread.clone() }).collect();
        Profile { duration: 1_000_000_000, cpus: 2, threads, recorder, ..Profile::default() }
    }

    #[test]
    fn the_recorder_s_time_is_bounded_from_both_sides() {
        // 2 CPUs, 4 threads: at least a half of 100 ms.
        let own = RecorderCost { calls: 80_000_000, rare: 20_000_000, ..RecorderCost::default() };
        let cost = estimate(&profile(own), Untimed::default()).expect("an estimate");
        assert!((cost.ratio - 1.0 / 0.95).abs() < 1e-9, "{cost:?}");
        assert!(cost.says.contains("5.3 % to 11 % longer"), "{}", cost.says);
        // What is done with the lock held delays all.
        let own = RecorderCost { calls: 100_000_000, held: 90_000_000, ..RecorderCost::default() };
        let cost = estimate(&profile(own), Untimed::default()).expect("an estimate");
        assert!((cost.ratio - 1.0 / 0.91).abs() < 1e-9, "{cost:?}");
    }

    #[test]
    fn acquisitions_that_were_left_out_cost_too() {
        let own = RecorderCost { left_out: 10_000_000, recorded: 1_000, ..RecorderCost::default() };
        let cost = estimate(&profile(own), Untimed { left_out: 5.0, counted: 0.0 }).expect("an estimate");
        assert!((cost.ratio - 1.0 / 0.975).abs() < 1e-9, "{cost:?}");
        assert!(cost.says.contains("how they alternate"), "{}", cost.says);
    }

    #[test]
    fn a_costly_recording_says_so() {
        let mut profile = profile(RecorderCost { calls: 1_400_000_000, ..RecorderCost::default() });
        profile.cost = estimate(&profile, Untimed::default());
        let text = profile.slowed().expect("a sentence");
        assert!(text.starts_with("This recording slowed the program ×3.33 or more (estimated)"), "{text}");
        let report = crate::text::report(&profile, crate::text::Style { width: 100, color: false, rows: 10 });
        let second = report.lines().nth(2).expect("a line");
        assert!(second.starts_with("This recording slowed the program"), "{report}");
        profile.recorder.calls = 1_000;
        profile.cost = estimate(&profile, Untimed::default());
        assert_eq!(profile.slowed(), None);
    }
}
