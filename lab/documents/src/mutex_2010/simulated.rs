//! Document 001: the kernel's mutex of 2010, before and after.

use spinpark_measure::stats::quantile_bin;
use spinpark_sim::workload::{Place, Report, Setting, SettingError};

use crate::simulated::{
    Bins, Bound, Effort, Figure, Progress, Table, Unit, figure, machine, ratios, run_seeds,
};

const OLD: &str = "classic-mutex-2.6.34";
const FIXED: &str = "classic-mutex-fixed";

/// "V 256": as many tasks as the document has on its largest machine. For the others it gives no number.
const TASKS: u32 = 256;

/// The machine, what is published (before, after, their ratio), and what must come out.
struct Case {
    machine: &'static str,
    what: &'static str,
    published: [Option<f64>; 3],
    bound: Bound,
}

const NEUTRAL: Bound = Bound::Within(0.9, 1.1);

const CASES: [Case; 4] = [
    Case {
        machine: "nehalem-ex-64",
        what: "64 cores",
        published: [Some(62_864.0), Some(197_200.0), Some(3.137)],
        bound: Bound::Within(2.2, 4.4),
    },
    Case {
        machine: "westmere-12",
        what: "12 cores",
        published: [None, None, Some(3.5)],
        bound: Bound::AtLeast(2.0),
    },
    Case { machine: "core2-4", what: "4 cores", published: [None, None, Some(1.0)], bound: NEUTRAL },
    Case { machine: "up", what: "one CPU", published: [None; 3], bound: NEUTRAL },
];

pub(crate) fn v(effort: Effort, progress: Progress<'_>) -> Result<Table, SettingError> {
    // The first round makes the files, which the document's ten seconds do not show.
    let (first_ns, all_ns) = effort.pick((20_000_000, 26_000_000), (15_000_000, 60_000_000));
    let mut settings = Vec::new();
    for of in &CASES {
        let machine = machine(of.machine)?;
        for lock in [OLD, FIXED] {
            for for_ns in [first_ns, all_ns] {
                let setting = Setting::new(machine.clone(), lock, "creat", TASKS);
                settings.push(Setting { for_ns, ..setting });
            }
        }
    }
    let reports = run_seeds(&settings, effort.seeds(), progress)?;
    let seconds = (all_ns - first_ns) as f64 / 1e9;
    // One seed is one run: the longer one begins with the shorter one.
    let rates = |pair: &[Vec<Report>]| -> Vec<f64> {
        let both = pair[0].iter().zip(&pair[1]);
        both.map(|(first, all)| (all.in_time - first.in_time) as f64 / seconds).collect()
    };
    let mut figures = Vec::new();
    for (of, runs) in CASES.iter().zip(reports.chunks(4)) {
        let (old, fixed) = (rates(&runs[..2]), rates(&runs[2..]));
        let gain: Vec<f64> = fixed.iter().zip(&old).map(|(fixed, old)| fixed / old).collect();
        let [before, after, ratio] = of.published;
        figures.push(figure(format!("{}: 2.6.34", of.what), Unit::PerSecond, before, &old, None));
        figures.push(figure(format!("{}: with the fix", of.what), Unit::PerSecond, after, &fixed, None));
        figures.push(figure(format!("{}: ratio", of.what), Unit::Ratio, ratio, &gain, Some(of.bound)));
    }
    Ok(Table::new(
        "001",
        format!("test-mutex V, {TASKS} tasks: operations per second"),
        CASES.map(|of| of.machine).join(", "),
        figures,
        [
            "The model has two places where tasks can pile up, the mutex and the spin lock of the list of open files, and the \
             pile stays where it is. With the fix it has probably moved to the list's lock. The ratio depends on what a \
             store that misses costs: see the page on the documents in the simulator.",
            "The document does not say how many tasks ran on 12 and 4 cores, nor on which file system.",
        ],
    ))
}

/// Both kernels under the file server's mix: by kernel and seed.
fn serve(effort: Effort, progress: Progress<'_>) -> Result<[Vec<Report>; 2], SettingError> {
    let for_ns = effort.pick(40_000_000, 100_000_000);
    let machine = machine("nehalem-ex-64")?;
    let setting = |lock| Setting { for_ns, ..Setting::new(machine.clone(), lock, "fserver", TASKS) };
    let mut reports = run_seeds(&[setting(OLD), setting(FIXED)], effort.seeds(), progress)?;
    let fixed = reports.pop().unwrap_or_default();
    Ok([reports.pop().unwrap_or_default(), fixed])
}

fn place(report: &Report) -> Place {
    report.places.first().cloned().unwrap_or_default()
}

/// The first bin in which the document has anything: an acquisition that was faster did not wait.
const FIRST_BIN: usize = 11;

/// Counts from the first bin of the document on, by bin.
fn waits(report: &Report) -> Vec<u64> {
    place(report).waits.bins()[FIRST_BIN..].to_vec()
}

/// The bin of the median wait.
fn median_bin(report: &Report) -> f64 {
    quantile(&waits(report), 0.5)
}

fn quantile(counts: &[u64], part: f64) -> f64 {
    (quantile_bin(counts, part).unwrap_or(0) + FIRST_BIN) as f64
}

/// The part of all waits that is in the fullest bin and its neighbours.
fn mode_share(report: &Report) -> f64 {
    let counts = waits(report);
    let three = |bin: usize| counts[bin.saturating_sub(1)..(bin + 2).min(counts.len())].iter().sum::<u64>();
    let fullest = (0..counts.len()).map(three).max().unwrap_or(0);
    100.0 * fullest as f64 / counts.iter().sum::<u64>().max(1) as f64
}

/// The part of all waits that is in this bin or a higher one.
fn share_from(report: &Report, bin: usize) -> f64 {
    let counts = waits(report);
    let above = counts.iter().skip(bin.saturating_sub(FIRST_BIN)).sum::<u64>();
    100.0 * above as f64 / counts.iter().sum::<u64>().max(1) as f64
}

/// What the document counted, from its lowest bin on.
fn published(kernel: usize) -> Vec<u64> {
    let rows = include_str!("mutex_acquisition_histogram.csv").lines().skip(1);
    rows.filter_map(|row| row.split(',').nth(kernel + 1)?.parse().ok()).collect()
}

pub(crate) fn histogram(effort: Effort, progress: Progress<'_>) -> Result<Table, SettingError> {
    let kernels = serve(effort, progress)?;
    let each = |kernel: usize, of: fn(&Report) -> f64| kernels[kernel].iter().map(of).collect::<Vec<_>>();
    let (old, fixed) = (each(0, median_bin), each(1, median_bin));
    let lower: Vec<f64> = old.iter().zip(&fixed).map(|(old, fixed)| old - fixed).collect();
    let medians = [0, 1].map(|kernel| quantile(&published(kernel), 0.5));
    // Two bins above where the old kernel's waits are.
    let tail_from = |index: usize| old[index] as usize + 2;
    let tail: Vec<f64> =
        kernels[1].iter().enumerate().map(|(index, report)| share_from(report, tail_from(index))).collect();
    let row =
        |name, published, values: &[f64], bound| figure(name, Unit::Count, Some(published), values, bound);
    let shifted = medians[0] - medians[1];
    let figures = vec![
        row("2.6.34: bin of the median", medians[0], &old, Some(Bound::Within(25.0, 27.0))),
        row("2.6.34: fullest three bins, %", 92.8, &each(0, mode_share), Some(Bound::AtLeast(70.0))),
        row("with the fix: bin of the median", medians[1], &fixed, None),
        row("with the fix: bins lower", shifted, &lower, Some(Bound::AtLeast(5.0))),
        row("with the fix: tail, %", 9.0, &tail, Some(Bound::AtLeast(2.0))),
    ];
    Ok(Table {
        fitted: FITTED.to_owned(),
        distributions: kernels.iter().enumerate().map(|(kernel, reports)| bins(kernel, reports)).collect(),
        ..Table::new(
            "001",
            "Time to acquire the mutex in a file server's mix, in bins of 2^n cycles",
            "nehalem-ex-64",
            figures,
            [TAIL_NOTE, HISTOGRAM_NOTE, LOTTERY_NOTE],
        )
    })
}

/// The part of each bin, %.
fn bins(kernel: usize, reports: &[Report]) -> Bins {
    let parts = |counts: &[u64]| -> Vec<f64> {
        let all = counts.iter().sum::<u64>().max(1) as f64;
        counts.iter().map(|&count| 100.0 * count as f64 / all).collect()
    };
    let document = parts(&published(kernel));
    let by_seed: Vec<_> = reports.iter().map(|report| parts(&waits(report))).collect();
    let mean = |index: usize| by_seed.iter().map(|parts| parts[index]).sum::<f64>() / by_seed.len() as f64;
    // What starved here is in bins that the document does not have.
    let bins = by_seed.iter().map(Vec::len).min().unwrap_or(0);
    let last = (0..bins).rev().find(|&index| mean(index) > 0.0).map_or(0, |last| last + 1);
    let last = last.max(document.len());
    let published = document.into_iter().chain(std::iter::repeat(0.0)).take(last).collect();
    Bins {
        name: ["2.6.34", "with the fix"][kernel].to_owned(),
        of: "cycles".to_owned(),
        first: FIRST_BIN as u32,
        published,
        simulated: (0..last).map(mean).collect(),
    }
}

const FITTED: &str =
    "jobs per minute, by the time that the directory's mutex is held (HOLD_CYCLES of fserver)";

const TAIL_NOTE: &str = "The tail: two bins above the old kernel's median, or more.";

const HISTOGRAM_NOTE: &str = "Acquisitions of less than 2^10 cycles are left out: the document has none of them, and here they \
    are of tasks that found the mutex free while others slept.";

const LOTTERY_NOTE: &str = "The old kernel's mode is too wide and too low. Its spinners win by lot here, so their waits are \
    spread as such are; the document has nearly all within a factor of two, about a scheduler's period. A mutex whose waiters \
    sleep, and do not win by spinning, has such waits: see the page on the documents in the simulator.";

pub(crate) fn fserver(effort: Effort, progress: Progress<'_>) -> Result<Table, SettingError> {
    let [old, fixed] = serve(effort, progress)?;
    let percent = |of: fn(&Report) -> f64| -> Vec<f64> {
        ratios(&fixed, &old, of).iter().map(|ratio| 100.0 * (ratio - 1.0)).collect()
    };
    let mean_wait = |report: &Report| {
        let place = place(report);
        place.wait_ns / place.contended.max(1) as f64
    };
    let contended_per_job =
        |report: &Report| waits(report).iter().sum::<u64>() as f64 / report.in_time.max(1) as f64;
    let gains = ratios(&fixed, &old, Report::throughput);
    let gain = figure("jobs in a minute: ratio", Unit::Ratio, Some(1.629), &gains, Some(Bound::AtLeast(1.3)));
    let change = |name, published, values: &[f64], bound| {
        figure(name, Unit::Percent, Some(published), values, Some(bound))
    };
    Ok(Table {
        fitted: FITTED.to_owned(),
        ..Table::new(
            "001",
            format!("A file server's mix, {TASKS} users: with the fix against 2.6.34"),
            "nehalem-ex-64",
            vec![
                Figure { fitted: true, ..gain },
                change("contentions a job: change", -32.6, &percent(contended_per_job), Bound::Sign),
                change("mean time to acquire: change", -48.5, &percent(mean_wait), Bound::AtMost(-30.0)),
            ],
            [
                "The mix is reduced to what meets at one directory's mutex: a computation, then a file that is made. Users, files \
                 and directories of the document's runs are not known.",
                HISTOGRAM_NOTE,
            ],
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_medians() {
        assert_eq!([0, 1].map(|kernel| quantile(&published(kernel), 0.5)), [26.0, 18.0]);
        assert_eq!([0, 1].map(|kernel| published(kernel).iter().sum::<u64>()), [72_971, 49_209]);
    }
}
