//! Our mutex on machines that were not at hand: 64 and 512 cores, up to eight times as many threads,
//! against the classics.

use spinpark_sim::workload::{Report, SettingError};

use super::race::{OVERSUBSCRIBED, RACE_ABOVE, cells, race};
use super::{Bound, Effort, Figure, Progress, Table, Unit, evenness, figure, longest_wait, machine, ratios};

const OURS: &str = "spinpark";
/// The documents' mutexes, and two that serve in order. (Test-and-set without back-off is far behind all of
/// them.)
const CLASSICS: &[&str] = &[
    "classic-mutex-2.6.34",
    "classic-mutex-fixed",
    "classic-mutex-nospin",
    "classic-mutex-2003",
    "classic-rwsem-full",
    "classic-ttas",
    "classic-tas-backoff",
    "classic-ticket",
    "classic-mcs",
    "classic-mtx",
];
/// What the threads do: sections from nothing to 10 µs.
const WORKLOADS: &[&str] = &["saturated", "hot-lock", "five-lines", "medium", "long"];

fn thread_counts(cpus: u32, effort: Effort) -> Vec<u32> {
    let most = if cpus == 512 { 8 * cpus } else { OVERSUBSCRIBED * cpus };
    match effort {
        Effort::Quick => vec![1, 4, cpus / 4],
        Effort::Full => [1, 2, 3]
            .into_iter()
            .chain((2..).map(|bit| 1 << bit).take_while(|&count| count <= most))
            .collect(),
    }
}

pub(crate) fn table(cpus: u32, effort: Effort, progress: Progress<'_>) -> Result<Table, SettingError> {
    let machine = machine("big-512")?.limited_to(cpus);
    let thread_counts = thread_counts(cpus, effort);
    // The larger one takes more than twice as long as it is.
    let in_full = if cpus > 64 { 10_000_000 } else { 20_000_000 };
    let (workloads, for_ns) = effort.pick((&WORKLOADS[3..4], 1_000_000), (WORKLOADS, in_full));
    let locks: Vec<&str> = [OURS].iter().chain(CLASSICS).copied().collect();
    let cells = cells(&machine, &locks, workloads, &thread_counts, for_ns);
    let reports: Vec<Vec<Vec<Report>>> = race(&cells, effort.seeds(), progress)?
        .into_iter()
        .map(|by_lock| by_lock.into_iter().flatten().collect())
        .collect();
    let mut figures = Vec::new();
    for of_workload in reports.chunks(thread_counts.len()) {
        for count in of_workload {
            figures.extend(compare(count));
        }
        figures.extend(collapse(of_workload, OVERSUBSCRIBED * cpus));
    }
    Ok(Table::new("ours", format!("Our mutex and the classics, {cpus} cores"), machine.name, figures, vec![
"The best classic of a count is one lock: the one with the highest throughput there. Ours has to reach it, less the spread of the ratio over the seeds, with a longest wait that is no longer.".to_owned(),
format!("With more than {RACE_ABOVE} threads a classic that does less than half of the fastest one's operations is not simulated to the end: less than a tenth after a fortieth of the time, or less than half after a tenth or after the first seed."),
"Without a bound: the longest wait over the shortest of any classic that was simulated to the end; and how evenly the operations are spread over the threads (Jain: 1 is evenly, 1/threads is all by one).".to_owned(),
format!("Runs of {} ms: a longest wait about as long as that is that of a thread which starved to the end.", for_ns / 1_000_000),
"Ours puts all but a few threads to sleep. A thread that has slept for 0.8 ms is on a CPU in deep idle, which takes 290 µs to wake up; the queue's waiters are woken one after another, so a long queue waits that long for each. Classics that never sleep do not pay that.".to_owned(),
"Where the fastest classic lets one thread keep the lock for long (saturated: tas-backoff), ours is slower, and fairer.".to_owned(),
]))
}

fn mean(reports: &[Report], of: impl Fn(&Report) -> f64) -> f64 {
    reports.iter().map(of).sum::<f64>() / reports.len().max(1) as f64
}

/// Ours, which stands first, and the classics with one number of threads; each by seed.
fn compare(by_lock: &[Vec<Report>]) -> Vec<Figure> {
    let [ours, classics @ ..] = by_lock else { return Vec::new() };
    let Some(first) = ours.first() else { return Vec::new() };
    let place = format!("{} at {}", first.workload, first.threads);
    let best = |key: fn(&Report) -> f64| {
        classics.iter().max_by(|a, b| mean(a, key).total_cmp(&mean(b, key))).filter(|best| !best.is_empty())
    };
    let ratio = |name, those: &[Report], of: fn(&Report) -> f64, bound| {
        let name = format!("{place}: {name}, of {}", those.first().map_or("", short));
        figure(name, Unit::Ratio, None, &ratios(ours, those, of), bound)
    };
    let mut figures = Vec::new();
    let Some(fastest) = best(Report::throughput) else { return figures };
    let mut throughput = ratio("throughput", fastest, Report::throughput, None);
    throughput.bound = Some(Bound::AtLeast(1.0 - (throughput.range.1 - throughput.range.0)));
    figures.push(throughput);
    if first.threads == 1 {
        return figures;
    }
    let waits = |those: &[Report]| those.iter().all(|report| longest_wait(report) > 0.0);
    if waits(fastest) {
        figures.push(ratio("longest wait", fastest, longest_wait, Some(Bound::AtMost(1.0))));
    }
    if let Some(calmest) = best(|report| -longest_wait(report)).filter(|calmest| waits(calmest)) {
        figures.push(ratio("longest wait, shortest of all", calmest, longest_wait, None));
    }
    figures.push(ratio("evenness", fastest, evenness, None));
    figures
}

fn short(report: &Report) -> &str {
    report.lock.trim_start_matches("classic-")
}

/// Ours with too many threads, over ours with its best number.
fn collapse(by_count: &[Vec<Vec<Report>>], threads: u32) -> Option<Figure> {
    let ours = || by_count.iter().filter_map(|count| count.first());
    let count_of = |reports: &Vec<Report>| reports.first().map_or(0, |report| report.threads);
    let peak = ours()
        .filter(|reports| count_of(reports) > 1)
        .max_by(|a, b| mean(a, Report::throughput).total_cmp(&mean(b, Report::throughput)))?;
    let crowded = ours().find(|reports| count_of(reports) == threads)?;
    let workload = &crowded.first()?.workload;
    let name = format!("{workload} at {threads}: throughput, of ours at its best count");
    let ratios = ratios(crowded, peak, Report::throughput);
    Some(figure(name, Unit::Ratio, None, &ratios, Some(Bound::AtLeast(0.8))))
}
