//! Many settings side by side: which lock is below the best of its cell?

use serde::{Deserialize, Serialize};
use spinpark_measure::report::front::{Entry, Price, price};
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting};

use super::summary::Summary;
use super::weak::waited_all_along;

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
