//! Our mutex on a plane of critical and non-critical sections, on machines with many CPUs, against the
//! fastest classic of each cell, and against one that sleeps at once.
//!
//! A cell is a workload with a number of threads. A table has one row for each bound: the worst cell, and how
//! many miss it.

use spinpark_measure::report::front::{self, Entry, Front};
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

/// What the threads do; the plane's names say the steps of both sections.
const WORKLOADS: [&str; 20] = [
    "saturated",
    "hot-lock",
    "five-lines",
    "random-32",
    "plane-0-0",
    "plane-0-30",
    "plane-0-300",
    "plane-0-3000",
    "plane-30-0",
    "plane-30-30",
    "plane-30-300",
    "plane-30-3000",
    "plane-300-0",
    "plane-300-30",
    "plane-300-300",
    "plane-300-3000",
    "plane-3000-0",
    "plane-3000-30",
    "plane-3000-300",
    "plane-3000-3000",
];

/// Of what evenness is asked, over a longer time.
const EVEN: [&str; 2] = ["plane-300-0", "plane-3000-300"];
const EVEN_NS: u64 = 100_000_000;

/// Sections shorter than this have no bound on the longest wait, ns.
const LONG_SECTION_NS: f64 = 100.0;
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
    let (workloads, for_ns) = effort.pick((&WORKLOADS[14..15], 500_000), (&WORKLOADS[..], 5_000_000));
    let thread_counts = thread_counts(cpus, effort);
    let setting = |lock, workload: &str, threads| Setting {
        for_ns,
        ..Setting::new(machine.clone(), lock, workload, threads)
    };
    let locks = [&[OURS], &CLASSICS[..]].concat();
    let cells = cells(&machine, &locks, workloads, &thread_counts, for_ns);
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
        figures.extend(worst(
            "Jain's index over 100 ms",
            Unit::Ratio,
            long.iter().map(|report| (place(report), -evenness(report))),
            |least| (-least, Bound::AtLeast(0.8)),
        ));
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

/// A figure of the cell with the highest value; `of` maps that to what is shown, and its bound.
fn worst(
    what: &str,
    unit: Unit,
    values: impl Iterator<Item = (String, f64)>,
    of: impl FnOnce(f64) -> (f64, Bound),
) -> Option<Figure> {
    let (place, value) = values.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (value, bound) = of(value);
    Some(figure(format!("{what}, worst: {place}"), unit, None, &[value], Some(bound)))
}

/// How many of the cells miss a bound.
fn count(what: String, missed: usize) -> Figure {
    figure(what, Unit::Count, None, &[missed as f64], Some(Bound::AtMost(0.0)))
}

/// The fastest of the others. Ours stands first.
fn fastest(cell: &[Report]) -> Option<(&Report, &Report)> {
    let [ours, classics @ ..] = cell else { return None };
    let fastest = classics.iter().max_by(|a, b| a.throughput().total_cmp(&b.throughput()))?;
    Some((ours, fastest))
}

/// Ours ÷ the fastest of the others for which `is_meant` holds, by cell.
fn ratios(cells: &[Vec<Report>], is_meant: impl Fn(&str) -> bool) -> Vec<(String, f64)> {
    let fastest = |cell: &[Report]| {
        let others = cell.iter().skip(1).filter(|other| is_meant(&other.lock)).map(Report::throughput);
        let ours = cell.first()?;
        others.reduce(f64::max).map(|best| (place(ours), ours.throughput() / best))
    };
    cells.iter().filter_map(|cell| fastest(cell)).collect()
}

fn geometric_mean(ratios: &[(String, f64)]) -> f64 {
    (ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp()
}

fn throughput(cells: &[Vec<Report>]) -> Vec<Figure> {
    const LEAST: f64 = 0.90;
    let missed = |ratios: &[(String, f64)]| ratios.iter().filter(|(_, ratio)| *ratio < LEAST).count();
    let of_all = ratios(cells, |_| true);
    let name = "throughput ÷ the best classic's, geometric mean";
    let mut figures = vec![
        figure(name, Unit::Ratio, None, &[geometric_mean(&of_all)], Some(Bound::AtLeast(1.05))),
        count(format!("cells with less than {LEAST:.2}, of {}", of_all.len()), missed(&of_all)),
    ];
    let least = of_all.into_iter().map(|(place, ratio)| (place, -ratio));
    figures.extend(worst("throughput", Unit::Ratio, least, |ratio| (-ratio, Bound::AtLeast(LEAST))));
    let in_order = ratios(cells, |lock| IN_ORDER.contains(&lock));
    let name = "throughput ÷ the best classic's that serves in order, geometric mean";
    figures.push(figure(name, Unit::Ratio, None, &[geometric_mean(&in_order)], None));
    let what = format!("of these cells, {}, with less than {LEAST:.2}", in_order.len());
    figures.push(figure(what, Unit::Count, None, &[missed(&in_order) as f64], None));
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
    let of_fastest: Vec<(String, f64)> = cells
        .iter()
        .filter_map(|cell| fastest(cell))
        .filter_map(|(ours, fastest)| price(ours, fastest))
        .collect();
    let pairs = || cells.iter().filter_map(|cell| cell.first()).zip(sleepers);
    let cpu: Vec<(String, f64)> = pairs().filter_map(|(ours, sleeper)| price(ours, sleeper)).collect();
    let speed: Vec<(String, f64)> = pairs()
        .filter(|(_, sleeper)| sleeper.in_time > 0)
        .map(|(ours, sleeper)| (place(ours), ours.throughput() / sleeper.throughput()))
        .collect();
    let mean = |what: &str, ratios: &[(String, f64)], bound| {
        let name = format!("{what}, geometric mean");
        figure(name, Unit::Ratio, None, &[geometric_mean(ratios)], Some(bound))
    };
    let above = cpu.iter().filter(|(_, ratio)| *ratio > MOST).count();
    let below = speed.iter().filter(|(_, ratio)| *ratio < LEAST).count();
    let mut figures = vec![
        mean("CPU time an operation ÷ the best classic's", &of_fastest, Bound::AtMost(1.0)),
        mean("CPU time an operation ÷ the sleeping mutex's", &cpu, Bound::AtMost(1.0)),
        count(format!("cells with more than {MOST:.1}, of {}", cpu.len()), above),
        mean("throughput ÷ the sleeping mutex's", &speed, Bound::AtLeast(1.4)),
        count(format!("cells with less than {LEAST:.1}, of {}", speed.len()), below),
    ];
    figures.extend(worst("CPU time ÷ the sleeping mutex's", Unit::Ratio, cpu.into_iter(), |most| {
        (most, Bound::AtMost(MOST))
    }));
    let least = speed.into_iter().map(|(place, ratio)| (place, -ratio));
    figures.extend(worst("throughput ÷ the sleeping mutex's", Unit::Ratio, least, |least| {
        (-least, Bound::AtLeast(LEAST))
    }));
    figures
}

/// Ours with four threads a CPU, over ours with its best number of threads.
fn collapse(cells: &[Vec<Report>], thread_counts: usize) -> Option<Figure> {
    let parts = cells.chunks(thread_counts).filter_map(|of_workload| {
        let mut ours = of_workload.iter().filter_map(|cell| cell.first());
        let peak = ours.clone().map(Report::throughput).fold(0.0, f64::max);
        let crowded = ours.next_back()?;
        Some((place(crowded), -crowded.throughput() / peak))
    });
    worst("throughput ÷ that of its best number of threads", Unit::Ratio, parts, |part| {
        (-part, Bound::AtLeast(0.85))
    })
}

fn waits(cells: &[Vec<Report>]) -> Vec<Figure> {
    let excess: Vec<(String, f64)> = cells
        .iter()
        .filter_map(|cell| fastest(cell))
        .filter_map(|(ours, best)| {
            let held: f64 = ours.places.iter().map(|place| place.hold_ns).sum();
            let section = held / ours.acquisitions().max(1) as f64;
            let allowed = (2.0 * f64::from(ours.threads) * section + ALLOWED_WAIT_NS).max(longest_wait(best));
            (section >= LONG_SECTION_NS).then(|| (place(ours), longest_wait(ours) / allowed))
        })
        .collect();
    let missed = excess.iter().filter(|(_, ratio)| *ratio > 1.0).count();
    let all = excess.len();
    let figures = worst("longest wait ÷ what is allowed", Unit::Ratio, excess.into_iter(), |ratio| {
        (ratio, Bound::AtMost(1.0))
    });
    figures.into_iter().chain([count(format!("cells with a longer wait, of {all}"), missed)]).collect()
}

fn moves(cells: &[Vec<Report>], cpus: u32) -> Vec<Figure> {
    const MOST: f64 = 2.2;
    let moves: Vec<(String, f64)> = cells
        .iter()
        .filter_map(|cell| cell.first())
        .filter(|ours| ours.threads <= cpus && ours.workload.starts_with("plane-"))
        .map(|ours| (place(ours), ours.moves_per_acquisition() - 1.0))
        .collect();
    let missed = moves.iter().filter(|(_, moves)| *moves > MOST).count();
    let all = moves.len();
    let name = "cache lines moved an acquisition";
    let figures = worst(name, Unit::Ratio, moves.into_iter(), |most| (most, Bound::AtMost(MOST)));
    figures.into_iter().chain([count(format!("cells with more than {MOST}, of {all}"), missed)]).collect()
}
