//! A lock follows its load: what threads have learnt under one load they forget soon under another one.
//!
//! A workload `moves-…` runs beside both of its loads unmoved, from the same seeds. After each move its
//! throughput has to come up to that of the load it has moved to, within a time that is set by what it means:
//! a few waits of `starvation_ns`. `cargo test -p spinpark-sim --test it -- --nocapture follow::` prints the
//! times.

use crate::seeds;

/// From, and to; then back.
const MOVES: [[&str; 2]; 4] =
    [["0-0", "300-300"], ["300-30", "0-30"], ["30-0", "300-300"], ["3000-0", "30-30"]];
const CPUS: [u32; 3] = [2, 4, 8];
const THREADS: [u32; 3] = [2, 4, 16];
/// The sum of their runs has to follow: a single run can take longer (5.25 ms has been seen).
const SEEDS: u64 = 6;

const MS: usize = 4;
const SPAN_NS: u64 = 1_000_000 / MS as u64;
/// How long each load lasts, in spans.
const PHASE: usize = 12 * MS;
/// After so long a lock has followed. A waiter that leaves the lock to its owner comes for it every half
/// millisecond, and two samples tell it of a new load.
const MOST: usize = 5 * MS;
/// So much of the throughput of the unmoved load has to be reached.
const ENOUGH: f64 = 0.8;

/// Operations of all seeds in each span.
fn run(workload: &str, cpus: u32, threads: u32, phases: usize) -> Vec<u64> {
    let for_ns = (phases * PHASE) as u64 * SPAN_NS;
    let mut sums = vec![0; phases * PHASE];
    for report in seeds::run(SEEDS, [cpus, threads], workload, for_ns, SPAN_NS) {
        assert_eq!(report.spans.iter().sum::<u64>(), report.in_time);
        for (sum, done) in sums.iter_mut().zip(report.spans) {
            *sum += done;
        }
    }
    sums
}

fn mean(spans: &[u64]) -> f64 {
    spans.iter().sum::<u64>() as f64 / spans.len() as f64
}

/// The first span from which on enough is done: in the first millisecond, and in all that is left of the
/// phase.
///
/// Not in each moment between: some loads change between two ways to run for as long as they last (30/30 with
/// two threads on two CPUs), moved or not.
fn follows(spans: &[u64], unmoved: f64) -> Option<usize> {
    let is_enough = |spans: &[u64]| mean(spans) >= ENOUGH * unmoved;
    (0..spans.len() - MS).find(|&from| is_enough(&spans[from..from + MS]) && is_enough(&spans[from..]))
}

#[test]
fn throughput_follows_a_load_that_moves() {
    let mut late = Vec::new();
    for cpus in CPUS {
        for threads in THREADS {
            for loads in MOVES {
                // Their own first milliseconds do not count: threads learn there, too.
                let unmoved =
                    loads.map(|load| mean(&run(&format!("plane-{load}"), cpus, threads, 1)[MOST..]));
                let moved = run(&format!("moves-{}-{}", loads[0], loads[1]), cpus, threads, 3);
                for (phase, from, to) in [(1, 0, 1), (2, 1, 0)] {
                    let spans = &moved[phase * PHASE..][..PHASE];
                    let after = follows(spans, unmoved[to]);
                    let time = match after {
                        Some(spans) => format!("{:.2} ms", spans as f64 / MS as f64),
                        None => "never".to_owned(),
                    };
                    let line = format!(
                        "{cpus} CPUs, {threads} threads, {} to {}: {time}; then {:.2} of the unmoved load",
                        loads[from],
                        loads[to],
                        mean(&spans[after.unwrap_or(0)..]) / unmoved[to],
                    );
                    println!("{line}");
                    if after.is_none_or(|after| after > MOST) {
                        late.push(line);
                    }
                }
            }
        }
    }
    assert!(late.is_empty(), "late, or never:\n{}", late.join("\n"));
}

#[test]
fn a_load_is_followed_once_the_rest_is_enough() {
    let spans = |values: [u64; 3]| values.map(|value| [value; MS]).concat();
    assert_eq!(follows(&spans([100; 3]), 100.0), Some(0));
    assert_eq!(follows(&spans([50, 100, 100]), 100.0), Some(MS - 1));
    assert_eq!(follows(&spans([90, 30, 100]), 100.0), Some(2 * MS - 1), "the dip is too long");
    assert_eq!(follows(&spans([90, 60, 100]), 100.0), Some(0), "it is not");
    assert_eq!(follows(&spans([50; 3]), 100.0), None);
}
