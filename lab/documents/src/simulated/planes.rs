//! Our mutex on a plane of critical and non-critical sections, on machines with many CPUs, against the
//! fastest classic of each cell, and against one that sleeps at once.
//!
//! A cell is a workload with a number of threads. A table has one row for each bound: the worst cell, and how
//! many miss it.

use spinpark_charts::front::{self, Entry, Front};
use spinpark_sim::workload::{Report, Setting, SettingError};

use super::race::{OVERSUBSCRIBED, RACE_ABOVE, cells, race};
use super::{
    Bound, Effort, Figure, Progress, Table, Unit, evenness, figure, longest_wait, machine, run_seeds,
};

const OURS: &str = "spinpark";
/// The fastest classics, one of each kind: with back-off, in order, in order by a queue, with a queue of
/// spinners and sleepers, and both in a read-write lock.
const CLASSICS: [&str; 5] =
    ["classic-tas-backoff", "classic-ticket", "classic-mcs", "classic-mutex-fixed", "classic-rwsem-full"];

/// Those that serve first come, first served, and so starve no thread.
const IN_ORDER: [&str; 2] = ["classic-ticket", "classic-mcs"];

/// It sleeps at once: what a thread that waits costs least.
const SLEEPER: &str = "classic-mutex-2003";

/// What the threads do without a plane, and the steps of the plane's two sections.
const OTHERS: [&str; 4] = ["saturated", "hot-lock", "five-lines", "random-32"];
const STEPS: [u32; 4] = [0, 30, 300, 3000];

/// Section by section of the plane, after the others; one of them for a first look.
fn workloads(effort: Effort) -> Vec<String> {
    let row = |section: u32| STEPS.map(|between| format!("plane-{section}-{between}"));
    match effort {
        Effort::Quick => vec!["plane-300-300".to_owned()],
        Effort::Full => {
            OTHERS.map(str::to_owned).into_iter().chain(STEPS.into_iter().flat_map(row)).collect()
        }
    }
}

/// Of what evenness is asked, over a longer time.
const EVEN: [&str; 2] = ["plane-300-0", "plane-3000-300"];
const EVEN_NS: u64 = 100_000_000;

/// Sections shorter than this have no bound on the longest wait, ns.
const WAITS_BOUND_FROM_NS: f64 = 100.0;
/// What is allowed in addition to two sections of each thread, ns.
const ALLOWED_WAIT_NS: f64 = 5e6;

/// Numbers of threads on `cpus` CPUs: powers of two, and one, two and four a CPU.
fn thread_counts(cpus: u32, effort: Effort) -> Vec<u32> {
    match effort {
        Effort::Quick => vec![2, OVERSUBSCRIBED * cpus.min(32)],
        Effort::Full => (1..)
            .map(|bit| 1 << bit)
            .take_while(|&count| count < cpus)
            .chain([cpus, 2 * cpus, OVERSUBSCRIBED * cpus])
            .collect(),
    }
}

pub(crate) fn table(name: &str, effort: Effort, progress: Progress<'_>) -> Result<Table, SettingError> {
    let machine = machine(name)?;
    let cpus = machine.cpus();
    let (workloads, for_ns) = (workloads(effort), effort.pick(500_000, 5_000_000));
    let workloads: Vec<&str> = workloads.iter().map(String::as_str).collect();
    let thread_counts = thread_counts(cpus, effort);
    let setting = |lock, workload: &str, threads| Setting {
        for_ns,
        ..Setting::new(machine.clone(), lock, workload, threads)
    };
    let locks = [&[OURS], &CLASSICS[..]].concat();
    let cells = cells(&machine, &locks, &workloads, &thread_counts, for_ns);
    let reports: Vec<Vec<Report>> = race(&cells, 1, progress)?
        .into_iter()
        .map(|by_lock| by_lock.into_iter().flatten().flatten().collect())
        .collect();
    let sleepers: Vec<Setting> = workloads
        .iter()
        .flat_map(|workload| thread_counts.iter().map(|&threads| setting(SLEEPER, workload, threads)))
        .collect();
    let sleepers: Vec<Report> = run_seeds(&sleepers, 1, &|_, _| {})?.into_iter().flatten().collect();
    let mut figures = throughput(&reports);
    figures.extend(cpu_time(&reports, &sleepers));
    figures.extend(collapse(&reports, thread_counts.len()));
    figures.extend(waits(&reports));
    figures.extend(moves(&reports, cpus));
    if effort == Effort::Full {
        let even = |workload, threads| Setting { for_ns: EVEN_NS, ..setting(OURS, workload, threads) };
        let settings: Vec<Setting> = EVEN
            .iter()
            .flat_map(|workload| [cpus, OVERSUBSCRIBED * cpus].map(|threads| even(workload, threads)))
            .collect();
        let long: Vec<Report> = run_seeds(&settings, 1, &|_, _| {})?.into_iter().flatten().collect();
        let even: Vec<Placed> = long.iter().map(|report| (place(report), evenness(report))).collect();
        figures.extend(worst("Jain's index over 100 ms", &even, Bound::AtLeast(0.8)));
    }
    Ok(Table {
        fronts: fronts(&reports, &sleepers),
        ..Table::new(
            "ours",
            format!("Our mutex on a plane of critical and non-critical sections, {cpus} CPUs"),
            machine.name,
            figures,
            notes(for_ns),
        )
    })
}

fn notes(for_ns: u64) -> Vec<String> {
    vec![
        format!(
            "A cell is a workload with a number of threads. The classics are {}; the best one of a cell is the one with the highest throughput there. Runs of {} ms, one seed.",
            CLASSICS.join(", "),
            for_ns as f64 / 1e6
        ),
        format!(
            "In order are {}: no thread starves there. Where they were left out, because they did less than half of what the \
             fastest classic does, there is no cell.",
            IN_ORDER.join(" and ")
        ),
        format!("The sleeping mutex is {SLEEPER}. CPU time is of all threads, polling and all."),
        "Longest wait: allowed are two sections of each thread and 5 ms, or the best classic's longest wait if that is longer; in cells with sections of 100 ns and more.".to_owned(),
        "Cache lines moved: without the one that the section changes; in cells with no more threads than CPUs.".to_owned(),
    ]
}

fn place(report: &Report) -> String {
    format!("{} at {}", report.workload, report.threads)
}

/// A figure with the cell that it is of.
type Placed = (String, f64);

/// The figure of the cell that is nearest to missing the bound, or misses it most.
fn worst(what: &str, values: &[Placed], bound: Bound) -> Option<Figure> {
    let order = |a: &&Placed, b: &&Placed| a.1.total_cmp(&b.1);
    let worst = match bound {
        Bound::AtLeast(_) => values.iter().min_by(order),
        _ => values.iter().max_by(order),
    };
    let (place, value) = worst?;
    Some(figure(format!("{what}, worst: {place}"), Unit::Ratio, None, &[*value], Some(bound)))
}

/// How many of the cells miss a bound: none may.
fn count(what: String, values: &[Placed], is_missed: impl Fn(f64) -> bool) -> Figure {
    let missed = values.iter().filter(|(_, value)| is_missed(*value)).count();
    figure(what, Unit::Count, None, &[missed as f64], Some(Bound::AtMost(0.0)))
}

/// The fastest of the others. Ours stands first.
fn fastest(cell: &[Report]) -> Option<(&Report, &Report)> {
    let [ours, classics @ ..] = cell else { return None };
    let fastest = classics.iter().max_by(|a, b| a.throughput().total_cmp(&b.throughput()))?;
    Some((ours, fastest))
}

/// Ours ÷ the fastest of the others for which `is_meant` holds, by cell.
fn ratios(cells: &[Vec<Report>], is_meant: impl Fn(&str) -> bool) -> Vec<Placed> {
    let fastest = |cell: &[Report]| {
        let others = cell.iter().skip(1).filter(|other| is_meant(&other.lock)).map(Report::throughput);
        let ours = cell.first()?;
        others.reduce(f64::max).map(|best| (place(ours), ours.throughput() / best))
    };
    cells.iter().filter_map(|cell| fastest(cell)).collect()
}

/// The geometric mean of all cells.
fn mean(what: &str, ratios: &[Placed], bound: Option<Bound>) -> Figure {
    let mean = (ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp();
    figure(format!("{what}, geometric mean"), Unit::Ratio, None, &[mean], bound)
}

fn throughput(cells: &[Vec<Report>]) -> Vec<Figure> {
    const LEAST: f64 = 0.90;
    let missed = |what, ratios: &[Placed]| count(what, ratios, |ratio| ratio < LEAST);
    let of_all = ratios(cells, |_| true);
    let in_order = ratios(cells, |lock| IN_ORDER.contains(&lock));
    let mut figures = vec![
        mean("throughput ÷ the best classic's", &of_all, Some(Bound::AtLeast(1.05))),
        missed(format!("cells with less than {LEAST:.2}, of {}", of_all.len()), &of_all),
    ];
    figures.extend(worst("throughput", &of_all, Bound::AtLeast(LEAST)));
    figures.push(mean("throughput ÷ the best classic's that serves in order", &in_order, None));
    let what = format!("of these cells, {}, with less than {LEAST:.2}", in_order.len());
    figures.push(Figure { bound: None, ..missed(what, &in_order) });
    figures
}

/// CPU time of all threads an operation, ns; none without an operation.
fn cpu_ns(report: &Report) -> Option<f64> {
    (report.in_time > 0).then(|| report.on_cpu_ns() as f64 / report.in_time as f64)
}

/// Throughput and CPU time: of the cells in which no lock was left out, and of the others, of the locks
/// that were in all of them.
fn fronts(cells: &[Vec<Report>], sleepers: &[Report]) -> Vec<(String, Front)> {
    let is_crowded = |cell: &[Report]| cell.first().is_some_and(|ours| ours.threads > RACE_ABOVE);
    let of = |crowded: bool, title: String| {
        let cells = cells.iter().zip(sleepers).filter(|(cell, _)| is_crowded(cell) == crowded);
        let entries: Vec<Vec<Entry<'_>>> =
            cells.map(|(cell, sleeper)| cell.iter().chain([sleeper]).map(entry).collect()).collect();
        // The first one is that of most cells and locks.
        Some((title, front::fronts(&entries, &[SLEEPER]).into_iter().next()?))
    };
    let few = of(false, format!("up to {RACE_ABOVE} threads"));
    few.into_iter().chain(of(true, format!("more than {RACE_ABOVE} threads"))).collect()
}

fn entry(report: &Report) -> Entry<'_> {
    Entry {
        name: &report.lock,
        throughput: report.throughput(),
        cpu_ns: cpu_ns(report).unwrap_or(f64::INFINITY),
    }
}

/// What throughput costs: CPU time against that of the fastest classic, and both against the lock that sleeps
/// at once.
fn cpu_time(cells: &[Vec<Report>], sleepers: &[Report]) -> Vec<Figure> {
    const MOST: f64 = 2.0;
    const LEAST: f64 = 1.0;
    let price = |ours: &Report, other: &Report| Some((place(ours), cpu_ns(ours)? / cpu_ns(other)?));
    let of_fastest: Vec<Placed> = cells
        .iter()
        .filter_map(|cell| fastest(cell))
        .filter_map(|(ours, fastest)| price(ours, fastest))
        .collect();
    let pairs = || cells.iter().filter_map(|cell| cell.first()).zip(sleepers);
    let cpu: Vec<Placed> = pairs().filter_map(|(ours, sleeper)| price(ours, sleeper)).collect();
    let speed: Vec<Placed> = pairs()
        .filter(|(_, sleeper)| sleeper.in_time > 0)
        .map(|(ours, sleeper)| (place(ours), ours.throughput() / sleeper.throughput()))
        .collect();
    let mut figures = vec![
        mean("CPU time an operation ÷ the best classic's", &of_fastest, Some(Bound::AtMost(1.0))),
        mean("CPU time an operation ÷ the sleeping mutex's", &cpu, Some(Bound::AtMost(1.0))),
        count(format!("cells with more than {MOST:.1}, of {}", cpu.len()), &cpu, |ratio| ratio > MOST),
        mean("throughput ÷ the sleeping mutex's", &speed, Some(Bound::AtLeast(1.4))),
        count(format!("cells with less than {LEAST:.1}, of {}", speed.len()), &speed, |ratio| ratio < LEAST),
    ];
    figures.extend(worst("CPU time ÷ the sleeping mutex's", &cpu, Bound::AtMost(MOST)));
    figures.extend(worst("throughput ÷ the sleeping mutex's", &speed, Bound::AtLeast(LEAST)));
    figures
}

/// Ours with four threads a CPU, over ours with its best number of threads.
fn collapse(cells: &[Vec<Report>], thread_counts: usize) -> Option<Figure> {
    let part = |of_workload: &[Vec<Report>]| {
        let mut ours = of_workload.iter().filter_map(|cell| cell.first());
        let peak = ours.clone().map(Report::throughput).fold(0.0, f64::max);
        let crowded = ours.next_back()?;
        Some((place(crowded), crowded.throughput() / peak))
    };
    let parts: Vec<Placed> = cells.chunks(thread_counts).filter_map(part).collect();
    worst("throughput ÷ that of its best number of threads", &parts, Bound::AtLeast(0.85))
}

fn waits(cells: &[Vec<Report>]) -> Vec<Figure> {
    let excess: Vec<Placed> = cells
        .iter()
        .filter_map(|cell| fastest(cell))
        .filter_map(|(ours, best)| {
            let held: f64 = ours.places.iter().map(|place| place.hold_ns).sum();
            let section = held / ours.acquisitions().max(1) as f64;
            let allowed = (2.0 * f64::from(ours.threads) * section + ALLOWED_WAIT_NS).max(longest_wait(best));
            (section >= WAITS_BOUND_FROM_NS).then(|| (place(ours), longest_wait(ours) / allowed))
        })
        .collect();
    let worst = worst("longest wait ÷ what is allowed", &excess, Bound::AtMost(1.0));
    let missed =
        count(format!("cells with a longer wait, of {}", excess.len()), &excess, |ratio| ratio > 1.0);
    worst.into_iter().chain([missed]).collect()
}

fn moves(cells: &[Vec<Report>], cpus: u32) -> Vec<Figure> {
    const MOST: f64 = 2.2;
    let moves: Vec<Placed> = cells
        .iter()
        .filter_map(|cell| cell.first())
        .filter(|ours| ours.threads <= cpus && ours.workload.starts_with("plane-"))
        .map(|ours| (place(ours), ours.moves_per_acquisition() - 1.0))
        .collect();
    let worst = worst("cache lines moved an acquisition", &moves, Bound::AtMost(MOST));
    let missed =
        count(format!("cells with more than {MOST}, of {}", moves.len()), &moves, |moves| moves > MOST);
    worst.into_iter().chain([missed]).collect()
}
