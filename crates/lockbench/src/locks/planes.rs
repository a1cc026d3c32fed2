//! The cells of a plane: a place in a table, and what threads do there.

use super::definitions::{Axes, Handoff, Implementation, Kind, Plane};
use super::experiment::{Cell, Measured, Place};
use super::load::{Barrier, Load, PingPong, Pipeline, Placement, Pool, Queue, Section, Shared, Signal, Wake};
use super::peers::Peers;
use super::selection::split;

/// A place, and what is to be run there.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Where.
    pub place: Place,
    /// What.
    pub load: Load,
    /// In how many threads.
    pub threads: usize,
}

/// All points of a plane with these values of its parameters.
///
/// # Errors
///
/// A sentence about the first point that makes no sense.
pub fn points(plane: &Plane, axes: &Axes) -> Result<Vec<Point>, String> {
    let points = match plane.load {
        Kind::Mutex => mutex(plane, axes),
        Kind::Rwlock => rwlock(plane, axes),
        Kind::Queue => queue(plane, axes),
        Kind::Handoff => handoff(plane, axes),
        Kind::Pipeline => pipeline(plane, axes),
    };
    if points.is_empty() {
        return Err(String::from("nothing is left to measure with these values"));
    }
    points.iter().try_for_each(|point| point.load.check(point.threads))?;
    Ok(points)
}

/// A table for each number of threads.
fn by_threads(threads: usize) -> String {
    format!("{threads} threads")
}

fn mutex(plane: &Plane, axes: &Axes) -> Vec<Point> {
    let Plane { locks, lines, exponential, leaves_ms, .. } = *plane;
    let mut points = Vec::new();
    for &threads in &axes.threads {
        for &inside in &axes.section {
            for &outside in &axes.outside {
                let section =
                    Section { locks, lines, inside, outside, beside: false, exponential, leaves_ms };
                let place = place(plane, by_threads(threads), inside.to_string(), outside.to_string());
                points.push(Point { place, load: Load::Section(section), threads });
            }
        }
    }
    points
}

fn rwlock(plane: &Plane, axes: &Axes) -> Vec<Point> {
    let mut points = Vec::new();
    for &threads in &axes.threads {
        for &writes in &axes.writes {
            for &inside in &axes.section {
                for &outside in &axes.outside {
                    let load = Load::Shared(Shared {
                        percent_writes: 0,
                        writes_per_thousand: Some(writes),
                        inside,
                        outside,
                    });
                    let row = format!("{writes} ‰, {inside}");
                    let place = place(plane, by_threads(threads), row, outside.to_string());
                    points.push(Point { place, load, threads });
                }
            }
        }
    }
    points
}

fn queue(plane: &Plane, axes: &Axes) -> Vec<Point> {
    let mut points = Vec::new();
    for &[producers, consumers, capacity] in &axes.queues {
        for &signal in &axes.signal {
            for &wake in &axes.wake {
                for &work in &axes.work {
                    let load =
                        Load::Queue(Queue { capacity, producers: Some(producers), work, signal, wake });
                    let row = format!("{producers},{consumers},{capacity}");
                    let wake = if wake == Wake::One { "one" } else { "all" };
                    let column = format!("{}/{wake}/{work}", short(signal));
                    let place = place(plane, String::new(), row, column);
                    points.push(Point { place, load, threads: producers + consumers });
                }
            }
        }
    }
    points
}

fn handoff(plane: &Plane, axes: &Axes) -> Vec<Point> {
    /// Jobs for each worker in a batch.
    const JOBS: usize = 8;
    let mut points = Vec::new();
    let mut add = |row: String, work: u32, load: Load, threads: usize| {
        let place = place(plane, String::new(), row, format!("work {work}"));
        points.push(Point { place, load, threads });
    };
    for handoff in &axes.handoffs {
        match handoff {
            Handoff::PingPong if axes.work.contains(&0) => {
                for &signal in &axes.signal {
                    let load = Load::PingPong(PingPong { signal, cpus: Placement::Any });
                    add(format!("ping-pong, {}", short(signal)), 0, load, 2);
                }
            }
            Handoff::PingPong => {}
            Handoff::Pool => {
                // One thread feeds, so a pool of one worker has two threads.
                for &workers in &axes.threads {
                    for &work in &axes.work {
                        let load = Load::Pool(Pool { batch: JOBS * workers, work });
                        add(format!("pool, 1+{workers}"), work, load, workers + 1);
                    }
                }
            }
            Handoff::Barrier => {
                for &threads in &axes.threads {
                    for &work in &axes.work {
                        add(format!("barrier, {threads}"), work, Load::Barrier(Barrier { work }), threads);
                    }
                }
            }
        }
    }
    points
}

fn pipeline(plane: &Plane, axes: &Axes) -> Vec<Point> {
    let mut points = Vec::new();
    for &threads in &axes.threads {
        for &capacity in &axes.capacity {
            for &signal in &axes.signal {
                for &work in &axes.work {
                    let load = Load::Pipeline(Pipeline { capacity, work, signal });
                    let column = format!("{}/{work}", short(signal));
                    let place = place(plane, String::new(), format!("{threads} stages, {capacity}"), column);
                    points.push(Point { place, load, threads });
                }
            }
        }
    }
    points
}

fn short(signal: Signal) -> &'static str {
    match signal {
        Signal::UnderLock => "un",
        Signal::AfterUnlock => "af",
    }
}

fn place(plane: &Plane, table: String, row: String, column: String) -> Place {
    Place { plane: plane.name.clone(), table, row, column }
}

/// The cells of `points`, without runs, with those of `implementations` that can run them.
#[must_use]
pub fn cells(
    plane: &Plane,
    points: Vec<Point>,
    implementations: &[Implementation],
    peers: &Peers,
    cpus: usize,
) -> Vec<Measured> {
    let wanted = |implementation: &&Implementation| plane.is_compared_with(implementation);
    let cell = |Point { place, load, threads }| {
        let (implementations, skipped) = split(implementations.iter().filter(wanted), &load, peers, cpus);
        Measured::new(Cell {
            workload: format!("{} {} {}", place.plane, place.row, place.column),
            place: Some(place),
            load,
            threads,
            cpus: plane.cpus,
            at_least_millis: plane.millis_per_thread * threads as u64,
            implementations,
            skipped,
        })
    };
    points.into_iter().map(cell).collect()
}
