//! Our mutex on machines that nobody here has: 64 and 512 cores, up to eight times as many threads, beside the classics.

use super::{Bound, Effort, Figure, Progress, Table, TableSpec, Unit};
use crate::machine::Machine;
use crate::sweep::run_all;
use crate::workload::{Report, Setting, SettingError};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const OURS: &str = "spinpark";
/// The documents' mutexes. (Test-and-set without back-off is far behind all of them.)
const CLASSICS: &[&str] = &[
    "classic-mutex-2.6.34",
    "classic-mutex-fixed",
    "classic-mutex-nospin",
    "classic-mutex-2003",
    "classic-rwsem-full",
    "classic-ttas",
    "classic-tas-backoff",
    "classic-mtx",
];
/// What the threads do: sections from nothing to 10 µs.
const WORKLOADS: &[&str] = &["saturated", "hot-lock", "five-lines", "medium", "long"];

/// The table for 64 cores.
pub(super) const ON_64: TableSpec = TableSpec {
    name: "ours-64",
    about: "our mutex and the classics on 64 cores, 1 to 256 threads",
    run: |effort, progress| table(64, effort, progress),
};

/// The table for 512 cores.
pub(super) const ON_512: TableSpec = TableSpec {
    name: "ours-512",
    about: "our mutex and the classics on 512 cores, 1 to 4,096 threads",
    run: |effort, progress| table(512, effort, progress),
};

/// So many times as many threads as CPUs are the rung at which nothing may have collapsed.
const OVERSUBSCRIBED: u32 = 4;

fn rungs(cpus: u32, effort: Effort) -> Vec<u32> {
    let most = if cpus == 512 { 8 * cpus } else { OVERSUBSCRIBED * cpus };
    match effort {
        Effort::Quick => vec![1, 4, cpus / 4],
        Effort::Full => {
            [1, 2, 3].into_iter().chain((2..).map(|bit| 1 << bit).take_while(|&rung| rung <= most)).collect()
        }
    }
}

fn table(cpus: u32, effort: Effort, progress: Progress<'_>) -> Result<Table, SettingError> {
    let machine =
        Machine::load("big-512").map_err(|error| SettingError::Unfit(error.to_string()))?.limited_to(cpus);
    let (rungs, workloads, for_ns) = match effort {
        Effort::Quick => (rungs(cpus, effort), &WORKLOADS[3..4], 1_000_000),
        Effort::Full => (rungs(cpus, effort), WORKLOADS, 20_000_000),
    };
    let locks = || [OURS].into_iter().chain(CLASSICS.iter().copied());
    let mut settings = Vec::new();
    for workload in workloads {
        for &threads in &rungs {
            settings.extend(locks().map(|lock| {
                let mut setting = Setting::new(machine.clone(), lock, workload, threads);
                setting.for_ns = for_ns;
                setting
            }));
        }
    }
    let (done, all) = (AtomicU64::new(0), settings.len() as u64);
    let reports = run_all(&settings, |_| progress(done.fetch_add(1, Relaxed) + 1, all))?;
    let mut figures = Vec::new();
    for of_workload in reports.chunks(rungs.len() * locks().count()) {
        let by_rung: Vec<_> = of_workload.chunks(locks().count()).collect();
        for rung in &by_rung {
            figures.extend(compare(rung));
        }
        figures.extend(collapse(&by_rung, OVERSUBSCRIBED * cpus));
    }
    Ok(Table {
        document: "ours".to_owned(),
        title: format!("Our mutex beside the classics, {cpus} cores"),
        machine: machine.name,
        fitted: "none".to_owned(),
        figures,
        distributions: Vec::new(),
        notes: vec![
            "The best classic is chosen anew for each figure, by throughput or by longest wait: no one lock has to be both.".to_owned(),
            format!("Runs of {} ms: a longest wait about as long as that is that of a thread which starved to the end.", for_ns / 1_000_000),
        ],
    })
}

fn figure(name: String, simulated: f64, bound: Bound) -> Figure {
    Figure {
        name,
        unit: Unit::Ratio,
        published: None,
        simulated,
        range: (simulated, simulated),
        bound: Some(bound),
        fitted: false,
    }
}

fn longest_wait(report: &Report) -> f64 {
    report.places.iter().map(|place| place.longest_wait_ns).fold(0.0, f64::max)
}

/// Ours, which stands first, and the classics at one rung.
fn compare(reports: &[Report]) -> Vec<Figure> {
    let [ours, classics @ ..] = reports else { return Vec::new() };
    let place = format!("{} at {}", ours.workload, ours.threads);
    let best = |key: fn(&Report) -> f64| classics.iter().max_by(|a, b| key(a).total_cmp(&key(b)));
    let mut figures = Vec::new();
    if let Some(fastest) = best(Report::throughput) {
        let ratio = ours.throughput() / fastest.throughput();
        figures.push(figure(
            format!("{place}: throughput, of {}", short(fastest)),
            ratio,
            Bound::AtLeast(1.0),
        ));
    }
    let calmest =
        best(|report| -longest_wait(report)).filter(|report| ours.threads > 1 && longest_wait(report) > 0.0);
    if let Some(calmest) = calmest {
        let ratio = longest_wait(ours) / longest_wait(calmest);
        figures.push(figure(
            format!("{place}: longest wait, of {}", short(calmest)),
            ratio,
            Bound::AtMost(1.0),
        ));
    }
    figures
}

fn short(report: &Report) -> &str {
    report.lock.trim_start_matches("classic-")
}

/// Ours with too many threads, beside ours at its best rung.
fn collapse(by_rung: &[&[Report]], threads: u32) -> Option<Figure> {
    let ours = by_rung.iter().filter_map(|rung| rung.first());
    let peak = ours.clone().filter(|report| report.threads > 1).map(Report::throughput).fold(0.0, f64::max);
    let crowded = ours.clone().find(|report| report.threads == threads)?;
    let name = format!("{} at {threads}: throughput, of ours at its best rung", crowded.workload);
    Some(figure(name, crowded.throughput() / peak, Bound::AtLeast(0.8)))
}
