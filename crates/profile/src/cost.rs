//! What recording cost a program: what was measured, or that it is not known.
//!
//! From inside, the recorder can time its own calls, but not what they change for other threads, and that is
//! most of it. So where contended locks are used often, it makes an experiment (the recorder's `spans`): it
//! records in some spans of time, and forwards calls in the others. How much longer a use of a lock takes in
//! the former has an interval ([`Experiment`](crate::model::Experiment)); the share of these spans makes it
//! the cost of the run. Where locks are used seldom, their number bounds the cost. What can neither be
//! compared nor bounded is not claimed.

use spinpark_measure::text::units::{count, short_percent, time};

use crate::model::{Cost, Detail, Profile, RecorderCost};

/// A recording that slowed its program more is said to be none of the program as it is.
pub const BOUND: f64 = 1.05;
/// What a use of a contended lock costs in a light span, ns: at least, and at most. The most is what was
/// measured of threads that do little else, whose order in time any instruction changes.
const LIGHT_USE: (f64, f64) = (1.0, 80.0);
/// The same of a wait.
const LIGHT_WAIT: (f64, f64) = (20.0, 300.0);
/// What a use and a wait cost at most that are recorded, with what that changes for other threads.
const MOST_OF_USE: f64 = 100.0;
const MOST_OF_WAIT: f64 = 4_000.0;
/// Time that is in no cycle is recorded; events are so few then that they cost less than this.
const MOST_OF_PLAIN: f64 = 0.04;
/// A bound above this is of no use.
const MOST: f64 = 0.15;

/// A share that is at least and at most so much.
type Range = (f64, f64);

/// How much longer the run was, and how much more CPU time it took.
struct Found {
    longer: Range,
    cpu: Range,
    how: String,
}

/// What recording cost; none if nothing was recorded. `untimed_use`: of what the recorder does not time, the ns
/// for each use of a lock that no thread has waited for, as measured on the machine; 0 if that was not measured.
#[must_use]
pub fn estimate(profile: &Profile, untimed_use: f64) -> Option<Cost> {
    let own = &profile.recorder;
    if profile.thread_time() == 0 || profile.duration == 0 || *own == RecorderCost::default() {
        return None;
    }
    let cpu = cpu_of(profile);
    let work = (own.calls + own.rare + own.start) as f64;
    let mut sentence;
    let found = find(profile, cpu);
    match &found {
        Ok(Found { longer, cpu, how }) => {
            sentence = match longer.0 {
                0.0 => format!(
                    "Recording made the run less than {} longer, and took less than {} more CPU time: {how}.",
                    short_percent(longer.1),
                    short_percent(cpu.1)
                ),
                _ => format!(
                    "Recording made the run {} longer, and took {} more CPU time: {how}.",
                    range(*longer),
                    range(*cpu)
                ),
            };
        }
        Err(why) => {
            // Of a process that was killed, the CPU time is a guess, which can be less than that.
            let share = match work <= cpu {
                true => format!(", {} of the CPU time", short_percent(work / cpu)),
                false => String::new(),
            };
            sentence = format!(
                "What recording cost is not known: {why}. The recorder's own work took {}{share}; what it changed for other threads \
                 can be more.",
                time(work)
            );
        }
    }
    sentence += " Not included: loading the library, about 1 ms a program";
    if profile.detail == Detail::Contended && untimed_use >= 0.05 {
        sentence +=
            &format!(", and {untimed_use:.1} ns for each use of a lock that no thread has waited for");
    }
    sentence += ". `--overhead` measures all of it.";
    let interval = found.ok().map(|found| (1.0 + found.longer.0, 1.0 + found.longer.1));
    let ratio = interval.map_or(1.0, |(low, high)| (low * high).sqrt());
    Some(Cost { is_measured: false, ratio, interval, noise: None, sentence })
}

fn range((low, high): Range) -> String {
    let (low, high) = (short_percent(low), short_percent(high));
    if low == high { low } else { format!("{low} to {high}") }
}

/// The CPU time of the process, as far as it is known.
fn cpu_of(profile: &Profile) -> f64 {
    let known = profile.recorder.cpu;
    let waited = profile.threads.iter().fold(0, |sum: u64, thread| sum.saturating_add(thread.waited));
    // Of a process that was killed: its threads may not have run all the time that they did not wait.
    let guess = profile.thread_time().saturating_sub(waited) / 2;
    if known > 0 { known as f64 } else { guess.max(1) as f64 }
}

/// What it cost, or why that is not known.
fn find(profile: &Profile, cpu: f64) -> Result<Found, String> {
    let own = &profile.recorder;
    let wall = profile.duration as f64;
    // What is measured, and needs no experiment.
    let measured = (own.rare + own.start) as f64;
    // If it ran in one thread after the other, it made the run as much longer.
    let shortest = cpu.min(wall);
    let at_most = |work: f64| (work / shortest, work / cpu);
    let (uses, waits, others) = (own.uses as f64, own.waits as f64, own.other_waits as f64);
    if profile.detail != Detail::Contended {
        let work = (own.calls as f64 + measured) * 4.0;
        let (longer, more) = at_most(work);
        if longer > 0.02 {
            return Err(String::from("with this `--detail` nothing is left out that could be compared"));
        }
        let how = String::from("four times the recorder's own work");
        return Ok(Found { longer: (0.0, longer), cpu: (0.0, more), how });
    }
    let Some(experiment) = &own.experiment else {
        let work = measured + uses * MOST_OF_USE + (waits + others) * MOST_OF_WAIT;
        let (longer, more) = at_most(work.max(4.0 * own.calls as f64 + measured));
        if longer > MOST {
            return Err(String::from(match others > waits {
                true => {
                    "the recorder leaves out no waits for semaphores and futexes, so it could not compare"
                }
                false => "the run was too short to compare, or nearly all waits were long",
            }));
        }
        let how = format!("a bound from its {} waits", count(own.waits + own.other_waits));
        return Ok(Found { longer: (0.0, longer), cpu: (0.0, more), how });
    };
    let (Some(time), Some(cpu_time)) = (experiment.time, experiment.cpu_time) else {
        return Err(format!(
            "the recorder forwarded calls in {} spans of time to compare, which is too few",
            count(experiment.spans)
        ));
    };
    let (recorded, light) = (experiment.recorded as f64, experiment.light as f64);
    let in_cycles = ((recorded + light) / wall).min(1.0);
    let share = recorded / (recorded + light).max(1.0);
    // Uses take `ratio` times as long in the recorded share of the time.
    let slowed = |ratio: f64| in_cycles * (1.0 / (share / ratio + 1.0 - share) - 1.0);
    let work = |least: bool| {
        let of = |(low, high): Range| if least { low } else { high };
        measured
            + uses * of(LIGHT_USE)
            + waits * of(LIGHT_WAIT)
            + if least { 0.0 } else { others * MOST_OF_WAIT }
    };
    let whole = |(low, high): Range| {
        let low = slowed(low) + work(true) / cpu;
        let high = slowed(high) + work(false) / cpu + (1.0 - in_cycles) * MOST_OF_PLAIN;
        (low.max(0.0), high.max(0.0))
    };
    Ok(Found {
        longer: whole(time),
        cpu: whole(cpu_time),
        how: format!(
            "in {} random spans, {} of the time, the process recorded, and a use of a contended lock took {:.2} to {:.2} times as \
             long as in the others, when calls were forwarded",
            count(experiment.spans),
            short_percent(share),
            time.0,
            time.1,
        ),
    })
}

impl Profile {
    /// That recording has slowed the program by more than its bound: then it is the first thing to know.
    #[must_use]
    pub fn slowed(&self) -> Option<String> {
        let cost = self.cost.as_ref()?;
        let by = match cost.interval.filter(|_| !cost.is_measured) {
            Some((low, high)) if low > BOUND => format!("×{low:.2} to ×{high:.2} (estimated)"),
            None if cost.is_measured && cost.ratio > BOUND => format!("×{:.2} (measured)", cost.ratio),
            _ => return None,
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
    use crate::model::{Experiment, Thread};

    const SECOND: u64 = 1_000_000_000;

    fn profile(recorder: RecorderCost) -> Profile {
        let thread = Thread { users: 1, time: SECOND, ..Thread::default() };
        let threads = (1..=4).map(|id| Thread { id, ..thread.clone() }).collect();
        Profile {
            duration: SECOND,
            cpus: 2,
            detail: Detail::Contended,
            threads,
            recorder: RecorderCost { cpu: 2 * SECOND, ..recorder },
            ..Profile::default()
        }
    }

    fn cost(recorder: RecorderCost) -> Cost {
        estimate(&profile(recorder), 0.0).expect("a cost")
    }

    fn experiment(time: Option<(f64, f64)>) -> Option<Experiment> {
        let (recorded, light) = (SECOND / 8, SECOND - SECOND / 8);
        Some(Experiment { spans: 60, recorded, light, time, cpu_time: time })
    }

    #[test]
    fn what_the_experiment_found_is_the_cost_of_the_recorded_share() {
        let found = cost(RecorderCost {
            calls: 1,
            experiment: experiment(Some((1.2, 1.4))),
            ..RecorderCost::default()
        });
        let (low, high) = found.interval.expect("an interval");
        // An eighth of the time has a 1.2nd, or a 1.4th, of the throughput.
        assert!((low - 1.0 / (0.125 / 1.2 + 0.875)).abs() < 1e-9, "{low}");
        assert!((high - 1.0 / (0.125 / 1.4 + 0.875)).abs() < 1e-9, "{high}");
        assert!(found.sentence.contains("2.1 % to 3.7 % longer"), "{}", found.sentence);
        assert!(found.sentence.contains("60 random spans"), "{}", found.sentence);
    }

    #[test]
    fn a_cost_is_claimed_only_where_it_was_compared_or_is_bounded() {
        // Light spans, and too few of them.
        let own =
            RecorderCost { calls: 1_000_000, uses: 5_000_000, waits: 100_000, ..RecorderCost::default() };
        let unknown = cost(RecorderCost { experiment: experiment(None), ..own });
        assert_eq!(unknown.interval, None);
        assert!(
            unknown.sentence.contains("is not known") && unknown.sentence.contains("--overhead"),
            "{}",
            unknown.sentence
        );
        // None, and many events.
        let unknown = cost(own);
        assert_eq!(unknown.interval, None);
        // None, and few: not all of a thread's time, but all threads' one after the other.
        let bounded = cost(RecorderCost { calls: 1_000, waits: 1_000, ..RecorderCost::default() });
        assert_eq!(bounded.interval, Some((1.0, 1.004)));
        assert!(bounded.sentence.contains("less than 0.40 % longer"), "{}", bounded.sentence);
        // Killed after nearly all of its time was waiting: its CPU time is not known.
        let mut killed =
            profile(RecorderCost { calls: 1_000_000, waits: 100_000, ..RecorderCost::default() });
        killed.recorder.cpu = 0;
        killed.threads.iter_mut().for_each(|thread| thread.waited = u64::MAX);
        let unknown = estimate(&killed, 0.0).expect("a cost");
        assert!(!unknown.sentence.contains("of the CPU time"), "{}", unknown.sentence);
        // `full` makes no experiment.
        let mut full = profile(RecorderCost { calls: SECOND / 10, ..RecorderCost::default() });
        full.detail = Detail::Full;
        let unknown = estimate(&full, 0.0).expect("a cost");
        assert_eq!(unknown.interval, None);
        assert!(
            unknown.sentence.contains("own work took 100 ms, 5.0 % of the CPU time"),
            "{}",
            unknown.sentence
        );
    }

    #[test]
    fn starts_count() {
        let found = cost(RecorderCost { calls: 1, start: SECOND / 100, ..RecorderCost::default() });
        let (_, high) = found.interval.expect("a bound");
        assert!(high >= 1.01, "{high}");
    }

    #[test]
    fn a_costly_recording_says_so() {
        let own =
            RecorderCost { calls: 1, experiment: experiment(Some((2.0, 3.0))), ..RecorderCost::default() };
        let mut profile = profile(own);
        profile.cost = estimate(&profile, 0.0);
        let text = profile.slowed().expect("a sentence");
        assert!(text.starts_with("This recording slowed the program ×1.07 to ×1.09 (estimated)"), "{text}");
        let report = crate::text::report(&profile, crate::text::Style { width: 100, color: false, rows: 10 });
        let second = report.lines().nth(2).expect("a line");
        assert!(second.starts_with("This recording slowed the program"), "{report}");
        profile.recorder.experiment = experiment(Some((1.0, 1.5)));
        profile.cost = estimate(&profile, 0.0);
        assert_eq!(profile.slowed(), None);
    }
}
