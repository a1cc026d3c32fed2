//! Which lock is the fastest of each cell, without simulating to the end those that are far behind it.
//!
//! Most of the time of a table went into locks that poll with hundreds of threads: a hundred times as many
//! events as the fastest lock, for no operation. So the locks of a cell race: all run for a fortieth of the
//! time; those that have a tenth of the fastest one's operations for a tenth of it; those that have half of
//! them for all of it; and those that still have half, with all seeds.

use std::sync::Mutex;

use spinpark_sim::machine::Machine;
use spinpark_sim::parallel::run_all;
use spinpark_sim::workload::{Report, Setting, SettingError};

use super::Progress;

/// Into which part of the time a heat is shorter, and which part of the fastest one's operations is needed to
/// be in the next.
const HEATS: [(u64, f64); 3] = [(40, 0.1), (10, 0.5), (1, 0.5)];
/// With fewer operations of the fastest one, none is left out: chance decides then.
const FEW: u64 = 20;

/// Locks under the same load. The first one is always in the table.
pub(super) struct Cell {
    pub(super) settings: Vec<Setting>,
    /// Whether locks may be left out.
    pub(super) is_race: bool,
}

/// With more threads than this, locks that are far behind are left out before the end.
pub(super) const RACE_ABOVE: u32 = 64;

/// Threads a CPU at which nothing may have collapsed.
pub(super) const OVERSUBSCRIBED: u32 = 4;

/// A cell for each workload and number of threads, in this order.
pub(super) fn cells(
    machine: &Machine,
    locks: &[&str],
    workloads: &[&str],
    thread_counts: &[u32],
    for_ns: u64,
) -> Vec<Cell> {
    let cell = |workload: &str, threads: u32| {
        let setting =
            |lock: &&str| Setting { for_ns, ..Setting::new(machine.clone(), lock, workload, threads) };
        Cell { settings: locks.iter().map(setting).collect(), is_race: threads > RACE_ABOVE }
    };
    let of_workload =
        |workload: &&str| thread_counts.iter().map(|&threads| cell(workload, threads)).collect();
    workloads.iter().flat_map::<Vec<Cell>, _>(of_workload).collect()
}

/// For each lock of each cell its reports by seed; of those that were left out, none.
pub(super) type Raced = Vec<Vec<Option<Vec<Report>>>>;

/// Runs all heats.
pub(super) fn race(cells: &[Cell], seeds: u64, progress: Progress<'_>) -> Result<Raced, SettingError> {
    let mut entered: Vec<Vec<bool>> = cells.iter().map(|cell| vec![true; cell.settings.len()]).collect();
    let mut all: Vec<Vec<Vec<Report>>> =
        cells.iter().map(|cell| vec![Vec::new(); cell.settings.len()]).collect();
    let mut track = Track { done: Mutex::new(0), progress, all: 0 };
    for (number, (shorter, part)) in HEATS.into_iter().enumerate() {
        let is_final = shorter == 1;
        let runs = runs(cells, &entered, |cell, lock| is_final || (cell.is_race && lock > 0), shorter, 0);
        track.all = track.so_far() + cost(&runs) + ahead(cells, &entered, number + 1, seeds);
        let reports = track.run(&runs)?;
        let mut by_cell: Vec<Vec<(usize, u64)>> = vec![Vec::new(); cells.len()];
        for ((cell, lock, _), report) in runs.iter().zip(reports) {
            if *lock > 0 {
                by_cell[*cell].push((*lock, report.in_time));
            }
            if is_final {
                all[*cell][*lock].push(report);
            }
        }
        for (cell, operations) in by_cell.iter().enumerate().filter(|(cell, _)| cells[*cell].is_race) {
            for lock in left_out(operations, part) {
                entered[cell][lock] = false;
            }
        }
    }
    for seed in 1..seeds {
        let runs = runs(cells, &entered, |_, _| true, 1, seed);
        track.all = track.so_far() + cost(&runs) * (seeds - seed);
        for ((cell, lock, _), report) in runs.iter().zip(track.run(&runs)?) {
            all[*cell][*lock].push(report);
        }
    }
    let kept = |(reports, is_in): (Vec<Report>, bool)| is_in.then_some(reports);
    Ok(all
        .into_iter()
        .zip(entered)
        .map(|(of, is_in)| of.into_iter().zip(is_in).map(kept).collect())
        .collect())
}

/// Those whose operations are too few.
fn left_out(operations: &[(usize, u64)], part: f64) -> impl Iterator<Item = usize> {
    let most = operations.iter().map(|&(_, operations)| operations).max().unwrap_or_default();
    let needed = if most < FEW { 0.0 } else { part * most as f64 };
    operations.iter().filter(move |&&(_, operations)| (operations as f64) < needed).map(|&(lock, _)| lock)
}

/// Cell, lock, and what is run.
type Run = (usize, usize, Setting);

fn runs(
    cells: &[Cell],
    entered: &[Vec<bool>],
    is_in: impl Fn(&Cell, usize) -> bool,
    shorter: u64,
    seed: u64,
) -> Vec<Run> {
    let mut runs = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        for (lock, setting) in cell.settings.iter().enumerate() {
            if entered[number][lock] && is_in(cell, lock) {
                let for_ns = setting.for_ns / shorter;
                runs.push((number, lock, Setting { for_ns, seed, ..setting.clone() }));
            }
        }
    }
    runs
}

/// What runs cost, roughly: how far the progress goes with them.
fn cost(runs: &[Run]) -> u64 {
    runs.iter().map(|(_, _, setting)| cost_of(setting.threads, setting.for_ns)).sum()
}

fn cost_of(threads: u32, for_ns: u64) -> u64 {
    (for_ns as f64 * f64::from(threads).sqrt() * 1e-3) as u64
}

/// What is ahead after heat `number` if nothing more is left out: that is too much, so the progress is faster
/// than it says.
fn ahead(cells: &[Cell], entered: &[Vec<bool>], number: usize, seeds: u64) -> u64 {
    let heats =
        HEATS.iter().skip(number).map(|(shorter, _)| cost(&runs(cells, entered, |_, _| true, *shorter, 0)));
    heats.sum::<u64>() + cost(&runs(cells, entered, |_, _| true, 1, 0)) * (seeds - 1)
}

struct Track<'a> {
    done: Mutex<u64>,
    progress: Progress<'a>,
    all: u64,
}

impl Track<'_> {
    fn so_far(&self) -> u64 {
        *self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn run(&self, runs: &[Run]) -> Result<Vec<Report>, SettingError> {
        let settings: Vec<Setting> = runs.iter().map(|(_, _, setting)| setting.clone()).collect();
        run_all(&settings, |report| {
            let mut done = self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *done += cost_of(report.threads, report.for_ns);
            (self.progress)(*done, self.all);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(is_race: bool) -> Cell {
        let locks = ["spinpark", "classic-mtx", "classic-mutex-fixed", "classic-mutex-2003"];
        let setting = |lock| {
            let setting = Setting::new(Machine::plain(64), lock, "hot-lock", 64);
            Setting { for_ns: 1_000_000, ..setting }
        };
        Cell { settings: locks.map(setting).to_vec(), is_race }
    }

    #[test]
    fn the_fastest_is_the_same_with_and_without_a_race() {
        let raced = race(&[cell(true), cell(false)], 2, &|done, all| assert!(done <= all)).unwrap();
        let [race, all] = &raced[..] else { panic!("{raced:?}") };
        assert!(race[0].is_some() && all.iter().all(Option::is_some));
        assert!(race[1].is_none(), "mtx does a tenth of the others' operations");
        let seeds = |reports: &Option<Vec<Report>>| {
            reports.as_ref().map(|reports| reports.iter().map(|report| report.seed).collect::<Vec<_>>())
        };
        assert_eq!(seeds(&race[0]), Some(vec![0, 1]));
        let mean = |reports: &Option<Vec<Report>>| {
            reports.as_ref().map_or(0, |reports| reports.iter().map(|report| report.in_time).sum::<u64>())
        };
        let fastest = |of: &[Option<Vec<Report>>]| (1..of.len()).max_by_key(|&lock| mean(&of[lock]));
        assert_eq!(fastest(race), fastest(all));
        for (lock, reports) in race.iter().enumerate().filter(|(_, reports)| reports.is_some()) {
            assert_eq!(reports, &all[lock], "what is not left out is the same");
        }
    }

    #[test]
    fn few_operations_leave_no_lock_out() {
        let out = |operations: &[(usize, u64)]| left_out(operations, 0.5).collect::<Vec<_>>();
        assert_eq!(out(&[(1, 19), (2, 0)]), [0; 0]);
        assert_eq!(out(&[(1, 20), (2, 10), (3, 9), (4, 0)]), [3, 4]);
        assert_eq!(out(&[]), [0; 0]);
    }
}
