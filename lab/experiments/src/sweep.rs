//! Many settings side by side: which lock is below the best of its cell? As a table for each machine and
//! workload, plots, CSV and JSON.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use spinpark_charts::front;
use spinpark_charts::front::{Entry, Front, Price, price};
use spinpark_charts::plot::{Chart, Line, Undrawable};
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::text::units::{counted, number};

use crate::Document;
use crate::formats::{for_option, ns, rate, share};
use crate::limit::Limit;
use crate::summary::{Summary, Weak, waited_all_along};
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting};

/// What is varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// Machines.
    pub machines: Vec<Machine>,
    /// Workloads.
    pub workloads: Vec<String>,
    /// Locks.
    pub locks: Vec<String>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Virtual time of a run, ns.
    pub for_ns: u64,
}

impl Ladder {
    /// A setting for each combination, in the order in which it is shown: the runs of one setting are
    /// neighbours.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for machine in &self.machines {
            for workload in &self.workloads {
                for &threads in &self.threads {
                    for lock in &self.locks {
                        for &seed in &self.seeds {
                            let setting = Setting::new(machine.clone(), lock, workload, threads);
                            settings.push(Setting { seed, for_ns: self.for_ns, ..setting });
                        }
                    }
                }
            }
        }
        settings
    }
}

/// Locks at the same work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The machine.
    pub machine: String,
    /// Its CPUs.
    pub cpus: u32,
    /// The workload.
    pub workload: String,
    /// Threads.
    pub threads: u32,
    /// A lock each.
    pub locks: Vec<Ranked>,
}

/// A lock among others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// Throughput over the best lock's.
    pub of_best: f64,
    /// It is below the best by more than the spread of the seeds: its best seed is below the worst seed of
    /// the best.
    pub is_below: bool,
    /// CPU time an operation ÷ that of others; none without an operation.
    pub cpu_time: Option<Price>,
    /// Its figures.
    #[serde(flatten)]
    pub summary: Summary,
}

/// Locks that sleep at once: a mutex, and a read-write lock.
pub const SLEEPERS: [&str; 2] = ["classic-mutex-2003", "classic-rwsem-nospin"];

impl Ranked {
    /// It has left threads behind: throughput is not all.
    #[must_use]
    pub fn is_unfair(&self) -> bool {
        /// Jain's index of threads of which a fifth does nothing, if the others do the same.
        const FAIR: f64 = 0.8;
        self.summary.fairness.jain < FAIR || waited_all_along(&self.summary)
    }
}

/// The cells of a ladder, as far as its runs were made: `reports` stand as [`Ladder::settings`] does.
#[must_use]
pub fn cells(ladder: &Ladder, reports: &[Option<Report>]) -> Vec<Cell> {
    let mut summaries = Vec::new();
    let mut left = reports;
    for machine in &ladder.machines {
        for _ in 0..ladder.workloads.len() * ladder.threads.len() {
            let mut cell = Vec::new();
            for _ in &ladder.locks {
                let (seeds, rest) = left.split_at(ladder.seeds.len().min(left.len()));
                left = rest;
                let made: Vec<Report> = seeds.iter().flatten().cloned().collect();
                cell.extend(Summary::of(machine, &made));
            }
            summaries.push(cell);
        }
    }
    summaries.into_iter().filter_map(ranked).collect()
}

fn ranked(summaries: Vec<Summary>) -> Option<Cell> {
    let best = summaries.iter().map(|summary| summary.throughput);
    let best = best.max_by(|a, b| a.mean.total_cmp(&b.mean))?;
    let first = summaries.first()?;
    let (machine, workload) = (first.machine.clone(), first.workload.clone());
    let (cpus, threads) = (first.cpus, first.threads);
    let entries: Vec<Entry<'_>> = summaries.iter().map(Summary::entry).collect();
    let sleeper = SLEEPERS.into_iter().find(|sleeper| entries.iter().any(|entry| entry.name == *sleeper));
    let prices: Vec<Option<Price>> =
        entries.iter().map(|entry| price(&entries, entry.name, sleeper)).collect();
    let rank = |(summary, cpu_time): (Summary, Option<Price>)| Ranked {
        of_best: if best.mean > 0.0 { summary.throughput.mean / best.mean } else { 1.0 },
        is_below: summary.throughput.high < best.low,
        cpu_time,
        summary,
    };
    let locks = summaries.into_iter().zip(prices).map(rank).collect();
    Some(Cell { machine, cpus, workload, threads, locks })
}

/// What a front is about.
pub(super) const BESIDE: &str = "throughput beside CPU time";
/// What stands beside a lock that is below the best by more than chance.
const BELOW: &str = "▼";
/// What stands beside a lock that has left threads behind.
const UNFAIR: &str = "!";

/// What a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Operations per second.
    Throughput,
    /// CPU time an operation.
    CpuTime,
    /// That, over the CPU time of the fastest lock.
    OfFastest,
    /// That, over the CPU time of the lock that sleeps at once.
    OfSleeper,
    /// The mean wait.
    MeanWait,
    /// The longest wait.
    LongestWait,
    /// Jain's index.
    Fairness,
    /// Cache lines moved for each acquisition.
    Moves,
    /// How busy CPUs are.
    Busy,
    /// What limits, in a word or two.
    Limit,
}

impl What {
    /// What `--details` shows besides throughput.
    const DETAILS: [Self; 9] = [
        Self::CpuTime,
        Self::OfFastest,
        Self::OfSleeper,
        Self::Limit,
        Self::MeanWait,
        Self::LongestWait,
        Self::Fairness,
        Self::Moves,
        Self::Busy,
    ];

    /// As a title.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Throughput => "operations/s",
            Self::CpuTime => "CPU time an operation",
            Self::OfFastest => "CPU time an operation ÷ the fastest lock's",
            Self::OfSleeper => "CPU time an operation ÷ that of the lock that sleeps at once",
            Self::MeanWait => "mean wait",
            Self::LongestWait => "longest wait",
            Self::Fairness => "Jain index",
            Self::Moves => "lines moved per acquisition",
            Self::Busy => "CPUs busy",
            Self::Limit => "what limits",
        }
    }

    fn shown(self, lock: &Ranked) -> String {
        let summary = &lock.summary;
        match self {
            Self::Throughput => {
                let below = if lock.is_below { BELOW } else { "" };
                let unfair = if lock.is_unfair() { UNFAIR } else { "" };
                rate(summary.throughput.mean) + below + unfair
            }
            Self::CpuTime if summary.cpu_ns.is_finite() => ns(summary.cpu_ns),
            Self::CpuTime => dash(),
            Self::OfFastest => quotient(lock.cpu_time.map(|price| price.of_fastest)),
            Self::OfSleeper => quotient(lock.cpu_time.and_then(|price| price.of_sleeper)),
            Self::MeanWait => ns(summary.mean_wait_ns()),
            Self::LongestWait => ns(summary.longest_wait_ns()),
            Self::Fairness => format!("{:.3}", summary.fairness.jain),
            Self::Moves => number(summary.per_acquisition(summary.counts.moves())),
            Self::Busy => share(summary.utilisation),
            Self::Limit => Limit::of(summary).words().to_owned(),
        }
    }
}

/// What stands where there is no number.
fn dash() -> String {
    String::from("–")
}

fn quotient(quotient: Option<f64>) -> String {
    quotient.map_or_else(dash, |quotient| format!("{quotient:.2}"))
}

/// A table before it is drawn.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// What it shows.
    pub title: String,
    /// The columns.
    pub header: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Shown>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Its text.
    pub text: String,
    /// How it is shown: `left`, `best` of its column, or `below` that by more than the seeds' spread.
    pub class: &'static str,
}

impl Shown {
    pub(super) fn new(class: &'static str, text: impl Into<String>) -> Self {
        Self { text: text.into(), class }
    }
}

/// The cells of each machine and workload.
pub(super) fn groups(cells: &[Cell]) -> impl Iterator<Item = &[Cell]> {
    cells.chunk_by(|a, b| (&a.machine, &a.workload) == (&b.machine, &b.workload))
}

/// For each machine and workload what it is, and its table: locks in rows, numbers of threads in columns.
#[must_use]
pub fn grids(cells: &[Cell], what: What) -> Vec<(String, Grid)> {
    groups(cells).map(|group| (title(&group[0]), grid(group, what))).collect()
}

/// What can be shown of these cells besides throughput: a ratio needs what it is of.
#[must_use]
pub fn details(cells: &[Cell]) -> Vec<What> {
    let mut prices = cells.iter().flat_map(|cell| &cell.locks).filter_map(|lock| lock.cpu_time);
    let has_sleeper = prices.any(|price| price.of_sleeper.is_some());
    What::DETAILS.into_iter().filter(|what| has_sleeper || *what != What::OfSleeper).collect()
}

fn names(cells: &[Cell]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for lock in cells.iter().flat_map(|cell| &cell.locks) {
        if !names.contains(&lock.summary.lock.as_str()) {
            names.push(&lock.summary.lock);
        }
    }
    names
}

fn title(cell: &Cell) -> String {
    format!("{} on {}", cell.workload, cell.machine)
}

fn grid(group: &[Cell], what: What) -> Grid {
    let shown = |name: &str, cell: &Cell| {
        let Some(lock) = cell.locks.iter().find(|lock| lock.summary.lock == name) else {
            return Shown::new("", dash());
        };
        let class = match what {
            What::Throughput if lock.of_best >= 1.0 => "best",
            What::Throughput if lock.is_below => "below",
            _ => "",
        };
        Shown::new(class, what.shown(lock))
    };
    let row = |name: &str| {
        let own = group.iter().map(|cell| shown(name, cell));
        std::iter::once(Shown::new("left", name)).chain(own).collect()
    };
    let header = |cell: &Cell| format!("{}{}", cell.threads, if cell.threads > cell.cpus { "*" } else { "" });
    Grid {
        title: format!("{} by threads", what.title()),
        header: std::iter::once(String::from("lock")).chain(group.iter().map(header)).collect(),
        rows: names(group).into_iter().map(row).collect(),
    }
}

/// All tables.
#[must_use]
pub fn render(cells: &[Cell], is_detailed: bool, style: Style) -> String {
    let mut out = String::new();
    let more = if is_detailed { details(cells) } else { Vec::new() };
    for what in std::iter::once(What::Throughput).chain(more) {
        for (of, grid) in grids(cells, what) {
            let _ = writeln!(out, "{}", style.wrap(&format!("{of}: {}", grid.title), 2));
            out += &drawn(&grid, style);
        }
    }
    for (title, front) in fronts(cells) {
        let _ = writeln!(out, "{}", style.wrap(&format!("{title}: {BESIDE}"), 2));
        out += &front.render("lock", style);
    }
    if !cells.is_empty() {
        legend(cells).iter().for_each(|line| out += &(style.wrap(line, 2) + "\n"));
    }
    out
}

/// Throughput beside CPU time, of each machine: what it is of, and the figures. One lock has none.
#[must_use]
pub fn fronts(cells: &[Cell]) -> Vec<(String, Front)> {
    let of_machine = |cells: &[Cell]| {
        let entries: Vec<Vec<Entry<'_>>> =
            cells.iter().map(|cell| cell.locks.iter().map(|lock| lock.summary.entry()).collect()).collect();
        let title = match cells {
            [only] => format!("{}, {}", title(only), counted(only.threads as usize, "thread")),
            [first, ..] => format!("{}, {}", first.machine, counted(cells.len(), "cell")),
            [] => String::new(),
        };
        front::fronts(&entries, &SLEEPERS).into_iter().map(|front| (title.clone(), front)).collect::<Vec<_>>()
    };
    cells.chunk_by(|a, b| a.machine == b.machine).flat_map(of_machine).collect()
}

/// What the marks mean that there are.
#[must_use]
pub fn legend(cells: &[Cell]) -> Vec<String> {
    let locks = || cells.iter().flat_map(|cell| &cell.locks);
    let mut out: Vec<String> = Vec::new();
    if locks().any(|lock| lock.is_below) {
        let seeds = locks().map(|lock| lock.summary.seeds.len()).min().unwrap_or_default();
        out.push(String::from(if seeds > 1 {
            "▼ below the best lock by more than the seeds' spread: its best seed is worse than the best lock's worst one."
        } else {
            "▼ below the best lock, by one seed only: use more --seeds."
        }));
    }
    if locks().any(|lock| lock.is_unfair()) {
        let unfair = "! unfair: Jain's index of the threads' operations is below 0.8, or a wait was as long as the run.";
        out.push(unfair.to_owned());
    }
    out.extend(weak(cells));
    if cells.iter().any(|cell| cell.threads > cell.cpus) {
        out.push(String::from("* more threads than CPUs."));
    }
    out
}

/// What makes some of them weak: a sentence for each kind.
fn weak(cells: &[Cell]) -> Vec<String> {
    const KINDS: [(&str, &str); 3] = [
        ("Fewer than 100 operations in a run", "rough figures."),
        ("Fewer than 10 operations of a thread", "fairness and longest waits are chance there."),
        ("A thread waited as long as the run", "too short to judge fairness there."),
    ];
    let summaries = || cells.iter().flat_map(|cell| &cell.locks).map(|lock| &lock.summary);
    let parts = |weak| match weak {
        Weak::FewOperations { operations, try_for_ns } => (0, Some(operations), try_for_ns),
        Weak::FewOfEachThread { operations, try_for_ns } => (1, Some(operations), try_for_ns),
        Weak::WaitedAllAlong { try_for_ns } => (2, None, try_for_ns),
    };
    let of = |summary| Weak::of(summary).into_iter().map(move |weak| (summary, parts(weak)));
    let sentence = |(kind, (begin, end)): (usize, (&str, &str))| {
        let these: Vec<_> = summaries().flat_map(of).filter(|(_, weak)| weak.0 == kind).collect();
        let longest = these.iter().map(|(_, weak)| weak.2).max()?;
        let fewest = these.iter().filter_map(|&(summary, weak)| Some((summary, weak.1?)));
        let place = fewest.min_by(|a, b| a.1.total_cmp(&b.1)).map_or_else(String::new, |(at, operations)| {
            let (all, fewest) = (counted(summaries().count(), "cell"), number(operations));
            let at = format!("{} in {} at {}", at.lock, at.workload, at.threads);
            format!(" in {} of {all} ({at}: {fewest})", these.len())
        });
        Some(format!("{begin}{place}: {end} Try --duration {}.", for_option(longest)))
    };
    KINDS.into_iter().enumerate().filter_map(sentence).collect()
}

/// In several parts, if it is too wide.
fn drawn(grid: &Grid, style: Style) -> String {
    // Each column has two blanks, and something that parts it from the next one.
    let width = |column: usize| {
        let texts = grid.rows.iter().map(|row| row[column].text.chars().count());
        texts.chain([grid.header[column].chars().count()]).max().unwrap_or_default() + 3
    };
    let (mut out, mut left) = (String::new(), 1);
    while left < grid.header.len() {
        let (mut used, mut right) = (width(0), left);
        while right < grid.header.len() && (right == left || used + width(right) < usize::from(style.width)) {
            used += width(right);
            right += 1;
        }
        out += &part(grid, left..right, style);
        left = right;
    }
    out
}

/// The first column, and these.
fn part(grid: &Grid, columns: std::ops::Range<usize>, style: Style) -> String {
    let shown = || std::iter::once(0).chain(columns.clone());
    let header: Vec<&str> = shown().map(|column| grid.header[column].as_str()).collect();
    let mut rows = table(style, &header);
    for row in &grid.rows {
        let drawn = shown().map(|column| {
            let drawn = comfy_table::Cell::new(&row[column].text);
            match row[column].class {
                "best" if style.color => drawn.add_attribute(comfy_table::Attribute::Bold),
                "below" if style.color => drawn.fg(comfy_table::Color::Red),
                _ => drawn,
            }
        });
        rows.add_row(drawn.collect::<Vec<_>>());
    }
    text(&rows)
}

/// What is in the JSON of `spinpark-lab sim sweep`.
#[derive(Debug, Serialize)]
pub struct Sweep<'a> {
    cells: &'a [Cell],
    fronts: Vec<Beside>,
}

/// Throughput beside CPU time.
#[derive(Debug, Serialize)]
struct Beside {
    /// The cells, in words.
    of: String,
    #[serde(flatten)]
    front: Front,
}

/// The JSON of these cells.
#[must_use]
pub fn json<'a>(end: &'a str, command: &'a str, cells: &'a [Cell]) -> Document<'a, Sweep<'a>> {
    let fronts = fronts(cells).into_iter().map(|(of, front)| Beside { of, front }).collect();
    Document::new("spinpark sim sweep", end, command, Sweep { cells, fronts })
}

/// All plots: a file name and the SVG each.
///
/// # Errors
///
/// The first one that cannot be drawn.
pub fn plots(cells: &[Cell]) -> Result<Vec<(String, String)>, Undrawable> {
    let mut plots = plots_by_threads(cells)?;
    plots.extend(front::plots(&fronts(cells))?);
    Ok(plots)
}

/// A plot for each machine and workload that has several numbers of threads.
///
/// # Errors
///
/// The first one that cannot be drawn.
pub(super) fn plots_by_threads(cells: &[Cell]) -> Result<Vec<(String, String)>, Undrawable> {
    groups(cells).filter(|group| group.len() > 1).map(plot).collect()
}

fn plot(group: &[Cell]) -> Result<(String, String), Undrawable> {
    let names = names(group);
    let point = |(place, cell): (usize, &Cell), name: &str| {
        let lock = cell.locks.iter().find(|lock| lock.summary.lock == name)?;
        let spread = lock.summary.throughput;
        (spread.low > 0.0).then_some((place, [spread.low, spread.mean, spread.high]))
    };
    let lines = names.iter().enumerate().map(|(number, name)| {
        let points = group.iter().enumerate().filter_map(|place| point(place, name)).collect();
        Line { name, number, points }
    });
    let title = title(&group[0]);
    let chart = Chart {
        name: &title,
        caption: format!("{title}, simulated: operations/s by threads (log, higher is better)"),
        tasks: "threads",
        places: group.iter().map(|cell| cell.threads as usize).collect(),
        names: names.len(),
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
    };
    let file = format!("{}-{}.svg", group[0].workload, group[0].machine);
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    Ok((file.chars().map(plain).collect(), chart.render()?))
}

/// A row for each lock of each cell.
#[must_use]
pub fn csv(cells: &[Cell]) -> String {
    let mut out = String::from(
        "machine,workload,lock,threads,cpus,seeds,throughput,throughput_low,throughput_high,of_best,below_best,\
         cpu_ns,cpu_of_fastest,cpu_of_sleeper,jain,acquisitions,contended,mean_wait_ns,longest_wait_ns,hold_ns,working,\
         spinning,runnable,asleep,busy,moves_near,moves_socket,moves_far,switches,preemptions,migrations,futex_calls,failed,limit\n",
    );
    for (cell, lock) in cells.iter().flat_map(|cell| cell.locks.iter().map(move |lock| (cell, lock))) {
        let Ranked { of_best, is_below, cpu_time, summary } = lock;
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
        let (counts, time) = (&summary.counts, &summary.time);
        let contended: u64 = summary.places.iter().map(|place| place.contended).sum();
        let hold_ns: f64 = summary.places.iter().map(|place| place.hold_ns).sum();
        let fields = [
            quoted(&cell.machine),
            quoted(&cell.workload),
            quoted(&summary.lock),
            cell.threads.to_string(),
            cell.cpus.to_string(),
            summary.seeds.len().to_string(),
            format!("{:.3}", summary.throughput.mean),
            format!("{:.3}", summary.throughput.low),
            format!("{:.3}", summary.throughput.high),
            format!("{of_best:.4}"),
            is_below.to_string(),
            if summary.cpu_ns.is_finite() { format!("{:.1}", summary.cpu_ns) } else { String::new() },
            number(cpu_time.map(|price| price.of_fastest)),
            number(cpu_time.and_then(|price| price.of_sleeper)),
            format!("{:.4}", summary.fairness.jain),
            summary.acquisitions().to_string(),
            contended.to_string(),
            format!("{:.1}", summary.mean_wait_ns()),
            format!("{:.1}", summary.longest_wait_ns()),
            format!("{:.1}", hold_ns / summary.acquisitions().max(1) as f64),
            format!("{:.4}", time.working),
            format!("{:.4}", time.spinning),
            format!("{:.4}", time.runnable),
            format!("{:.4}", time.asleep),
            format!("{:.4}", summary.utilisation),
            counts.moves_near.to_string(),
            counts.moves_socket.to_string(),
            counts.moves_far.to_string(),
            counts.switches.to_string(),
            counts.preemptions.to_string(),
            counts.migrations.to_string(),
            counts.futex_calls.to_string(),
            summary.failure.is_some().to_string(),
            Limit::of(summary).words().to_owned(),
        ];
        out += &(fields.join(",") + "\n");
    }
    out
}

/// A path of a machine's file may have anything in it.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        Ladder {
            machines: vec![Machine::plain(2), Machine::plain(4)],
            workloads: vec!["hot-lock".to_owned()],
            locks: vec!["spinpark".to_owned(), "classic-mutex-nospin".to_owned()],
            threads: vec![1, 4],
            seeds: vec![3, 4],
            for_ns: 300_000,
        }
    }

    #[test]
    fn cells_of_all_runs() {
        let ladder = ladder();
        let reports: Vec<_> = ladder.settings().iter().map(|setting| Some(setting.run().unwrap())).collect();
        assert_eq!(reports.len(), 16);
        let cells = cells(&ladder, &reports);
        let names: Vec<_> = cells.iter().map(|cell| (cell.machine.as_str(), cell.threads)).collect();
        assert_eq!(names, [("plain-2", 1), ("plain-2", 4), ("plain-4", 1), ("plain-4", 4)]);
        for cell in &cells {
            assert_eq!(cell.locks.len(), 2);
            assert!(cell.locks.iter().all(|lock| lock.summary.seeds == [3, 4]));
            assert!(cell.locks.iter().any(|lock| lock.of_best == 1.0 && !lock.is_below));
        }
        // A lock that is far behind somewhere is marked there, and no other.
        let of_all = || cells.iter().flat_map(|cell| &cell.locks);
        assert!(
            of_all().any(|lock| lock.is_below),
            "{:?}",
            of_all().map(|lock| lock.of_best).collect::<Vec<_>>()
        );
        assert!(of_all().all(|lock| lock.is_below || lock.of_best > 0.5));
    }

    #[test]
    fn runs_that_were_not_made_are_left_out() {
        let ladder = ladder();
        let mut reports: Vec<Option<Report>> = vec![None; 16];
        reports[4] = Some(ladder.settings()[4].run().unwrap());
        let cells = cells(&ladder, &reports);
        assert_eq!(cells.len(), 1);
        assert_eq!((cells[0].threads, cells[0].locks.len()), (4, 1));
        assert_eq!(cells[0].locks[0].summary.seeds, [3]);
    }
}
