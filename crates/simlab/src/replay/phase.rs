//! When a recorded program's threads were at work: its start-up and its end are cut off.

use spinpark_profile::model::{Profile, Thread};

const PARTS: usize = 64;

/// The part of a recording that is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Its start, ns after that of the recording.
    pub start: u64,
    /// Its length, ns.
    pub length: u64,
    /// Which part of all acquisitions it has.
    pub share: f64,
    /// How many threads were at work at a time, on average: idle ones wait for signals, or for the ends of
    /// others.
    pub workers: f64,
}

impl Phase {
    /// From the first to the last time at which at least three quarters as many threads acquired locks as at
    /// a typical acquisition. The whole recording, if it does not say when they did.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let idle = |thread: &Thread| thread.signals.saturating_add(thread.others);
        let at_work = |thread: &Thread| thread.time.min(profile.duration).saturating_sub(idle(thread));
        let all = profile.threads.iter().map(at_work).sum::<u64>();
        let duration = profile.duration.max(1);
        let whole = Self { start: 0, length: duration, share: 1.0, workers: all as f64 / duration as f64 };
        let activities = || profile.threads.iter().map(|thread| &thread.activity);
        let part = activities().map(|activity| activity.part).max().unwrap_or(0).max(1);
        // Each is a power of two of a µs, and of these there are at most 64.
        let by_thread: Vec<Vec<u64>> = activities()
            .map(|activity| {
                let mut numbers = vec![0; PARTS];
                for (at, number) in (0..).zip(&activity.acquisitions) {
                    let at = u64::saturating_mul(at, activity.part) / part;
                    numbers[(at as usize).min(PARTS - 1)] += number;
                }
                numbers
            })
            .collect();
        let sum = |at: usize| by_thread.iter().map(|numbers| numbers[at]).sum::<u64>();
        let threads = |at: usize| by_thread.iter().filter(|numbers| numbers[at] > 0).count();
        let acquisitions: u64 = (0..PARTS).map(sum).sum();
        if acquisitions == 0 {
            return whole;
        }
        let typical =
            (0..PARTS).map(|at| sum(at) as f64 * threads(at) as f64).sum::<f64>() / acquisitions as f64;
        // A thread may acquire nothing in a part; start-up and end have one thread, of two or more.
        let is_busy = |at: &usize| threads(*at) as f64 >= 0.75 * typical;
        let (Some(mut first), Some(mut last)) = ((0..PARTS).find(is_busy), (0..PARTS).rfind(is_busy)) else {
            return whole;
        };
        // Threads begin and end within a part: the outermost two go, where enough are left.
        const FEW: usize = 6;
        if last - first >= FEW {
            (first, last) = (first + 1, last - 1);
        }
        let at = |parts: usize| (parts as u64).saturating_mul(part).min(duration);
        let (start, end) = (at(first), at(last + 1));
        let length = (end - start).max(1);
        let is_idle = |at: usize| idle(&profile.threads[at]) as f64 / profile.threads[at].time.max(1) as f64;
        let present = |numbers: &[u64]| {
            let (from, to) = (numbers.iter().position(|n| *n > 0), numbers.iter().rposition(|n| *n > 0));
            let (Some(from), Some(to)) = (from, to) else { return 0.0 };
            (last.min(to) + 1).saturating_sub(first.max(from)) as f64 * part as f64
        };
        let workers: f64 = by_thread
            .iter()
            .enumerate()
            .map(|(at, numbers)| present(numbers) * (1.0 - is_idle(at).min(1.0)))
            .sum();
        Self {
            start,
            length,
            share: (first..=last).map(sum).sum::<u64>() as f64 / acquisitions as f64,
            workers: workers / length as f64,
        }
    }
}
