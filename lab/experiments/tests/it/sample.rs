//! Figures that no engine made: what is printed of them stays as it is when the engine is mended.

use spinpark_charts::front::{Entry, Front, Price, fronts};
use spinpark_experiments::summary::{Fairness, Shares, Spread, Summary};
use spinpark_experiments::sweep::{Cell, Ranked};
use spinpark_sim::Counts;
use spinpark_sim::table::{Bins, Bound, Figure, Table, Unit};
use spinpark_sim::workload::{Gap, Histogram, InTime, Place};

pub(crate) fn histogram(values: &[(u64, u64)]) -> Histogram {
    let mut histogram = Histogram::default();
    for &(value, count) in values {
        (0..count).for_each(|_| histogram.add(value));
    }
    histogram
}

fn counts() -> Counts {
    let text = r#"{"events": 1000000, "steps": 2000000, "moves_near": 12000, "moves_socket": 0, "moves_far": 3100,
        "switches": 450, "preemptions": 12, "wakes": 430, "migrations": 7, "futex_calls": 900,
        "locks": {"spin_acquired": 6000, "spin_left_owner_changed": 1200, "parked": 430, "handed_off": 25}}"#;
    serde_json::from_str(text).unwrap()
}

pub(crate) fn summary(lock: &str, threads: u32, throughput: [f64; 3]) -> Summary {
    let [low, mean, high] = throughput;
    Summary {
        machine: String::from("westmere-ex-40"),
        cpus: 40,
        ghz: 2.4,
        lock: lock.to_owned(),
        workload: String::from("hot-lock"),
        threads,
        for_ns: 20_000_000,
        seeds: vec![0, 1, 2],
        throughput: Spread { mean, low, high, deviation: Some((high - low) / 2.0) },
        cpu_ns: f64::from(threads) * 0.3e9 / mean,
        fairness: Fairness { jain: 0.9876, fewest: 310, most: 420 },
        time: Shares { working: 0.1, spinning: 0.25, runnable: 0.05, asleep: 0.6 },
        utilisation: 0.875,
        elapsed_ns: 60_500_000,
        measured_ns: 60_000_000,
        places: vec![Place {
            name: String::from("lock"),
            locks: 1,
            acquisitions: 10_000,
            contended: 9_500,
            wait_ns: 2.1e9,
            longest_wait_ns: 5.2e6,
            waits: histogram(&[(700, 3000), (1500, 5000), (3000, 1490), (900_000, 10)]),
            hold_ns: 5.4e7,
            longest_hold_ns: 9_000.0,
            holds: histogram(&[(100, 10_000)]),
            most_passed: 77,
            in_time: InTime {
                acquisitions: 9_900,
                contended: 9_400,
                at_once: 0,
                wait_ns: 2.0e9,
                hold_ns: 5.355e7,
                held_ns: 5.355e7,
                off_cpu_ns: 1e5,
                gap: Gap { asleep_ns: 1e6, lines_ns: 3e6, pause_ns: 4e5, steps_ns: 2e5, ..Gap::default() },
            },
        }],
        counts: counts(),
        failure: None,
    }
}

pub(crate) fn cell(threads: u32, throughputs: [[f64; 3]; 2]) -> Cell {
    let [ours, classic] = throughputs;
    let best = f64::max(ours[1], classic[1]);
    let rank = |name: &str, own: [f64; 3], other: [f64; 3]| Ranked {
        of_best: own[1] / best,
        is_below: own[2] < other[0],
        cpu_time: Some(Price { of_fastest: best / own[1], of_sleeper: None }),
        summary: summary(name, threads, own),
    };
    Cell {
        machine: String::from("westmere-ex-40"),
        cpus: 40,
        workload: String::from("hot-lock"),
        threads,
        locks: vec![rank("spinpark", ours, classic), rank("classic-mutex-2.6.34", classic, ours)],
    }
}

pub(crate) fn cells() -> Vec<Cell> {
    vec![
        cell(1, [[3e6, 3.1e6, 3.2e6], [3.05e6, 3.15e6, 3.25e6]]),
        cell(16, [[9e6, 9.1e6, 9.2e6], [8e6, 8.1e6, 8.2e6]]),
        cell(64, [[8.5e6, 8.6e6, 8.7e6], [450.0, 500.0, 560.0]]),
    ]
}

fn front() -> Front {
    let entry = |name, throughput, cpu_ns| Entry { name, throughput, cpu_ns };
    let cell = vec![entry("fast", 9e6, 400.0), entry("beaten", 6e6, 500.0), entry("sleeps", 3e6, 100.0)];
    fronts(&[cell], &["sleeps"]).swap_remove(0)
}

pub(crate) fn documents() -> Vec<(String, Table)> {
    let figure = |name: &str, unit, published, simulated, bound| Figure {
        name: name.to_owned(),
        unit,
        published,
        simulated,
        range: (simulated * 0.95, simulated * 1.05),
        bound,
        fitted: false,
    };
    let mut fitted =
        figure("64 cores, 256 tasks", Unit::Ratio, Some(3.15), 2.9, Some(Bound::Within(2.2, 4.4)));
    fitted.fitted = true;
    let missed = "The second figure is missed: a note that explains why, and is long enough to be broken into two \
                  lines here.";
    let figures = vec![
        fitted,
        figure("12 cores", Unit::Ratio, Some(3.5), 1.4, Some(Bound::AtLeast(2.0))),
        figure("median wait", Unit::Cycles, None, 1_048_576.0, None),
    ];
    let one = Table {
        fitted: String::from("the work under the directory's mutex, to the first row"),
        distributions: vec![Bins {
            name: String::from("with the fix"),
            of: String::from("cycles"),
            first: 11,
            published: vec![0.0, 0.4, 12.0, 87.6, 0.0, 0.0],
            simulated: vec![0.0, 0.0, 62.0, 33.0, 5.0, 0.0],
        }],
        ..Table::new("001", "V, with the fix over 2.6.34", "nehalem-ex-64", figures, [missed])
    };
    let gain = figure("gain", Unit::Percent, Some(17.0), 12.0, Some(Bound::Sign));
    let two = Table {
        fitted: String::from("nothing"),
        fronts: vec![(String::from("up to 64 threads"), front())],
        ..Table::new("004", "back-off", "e4500-12", vec![gain], None::<String>)
    };
    let ours = "five-lines at 256: throughput, of classic-mutex-2.6.34";
    let ours = figure(ours, Unit::Ratio, None, 1.2, Some(Bound::AtLeast(1.0)));
    let figures = vec![Figure { range: (1.2, 1.2), ..ours }];
    let three =
        Table::new("ours", "Our mutex and the classics, 64 cores", "big-512", figures, None::<String>);
    let named = [("001-v", one), ("004-backoff", two), ("ours-64", three)];
    named.into_iter().map(|(name, table)| (name.to_owned(), table)).collect()
}
