//! Planes: a kind of load over parameters. Each combination of their values is a place in a table, at which
//! threads do something.

use serde::{Deserialize, Serialize};
use spinpark_measure::report::distinct;

use super::experiment::Place;
use super::load::{Barrier, Load, PingPong, Pipeline, Placement, Pool, Queue, Section, Shared, Signal, Wake};

/// A kind of load over parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plane {
    /// Its name on the command line.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// What threads do.
    pub load: Kind,
    /// The parameters of a whole run.
    pub axes: Axes,
    /// Those of `--quick`, where they differ.
    #[serde(default)]
    pub quick: Axes,
    /// A run is at least this long for each thread, in milliseconds.
    #[serde(default)]
    pub millis_per_thread: u64,
    /// The peers, if not all of them.
    #[serde(default)]
    pub peers: Vec<String>,
    /// Mutexes to choose from at random.
    #[serde(default = "one")]
    pub locks: usize,
    /// Cache lines that are changed inside.
    #[serde(default = "one")]
    pub lines: usize,
    /// Read-write locks prefer writers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writers_first: bool,
    /// One thread only writes, and the others only read, without a pause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_writer: bool,
    /// Lengths are exponentially distributed.
    #[serde(default)]
    pub exponential: bool,
    /// Milliseconds for which each thread leaves now and then.
    #[serde(default)]
    pub leaves_ms: u32,
    /// Where threads run.
    #[serde(default, skip_serializing_if = "Placement::is_any")]
    pub cpus: Placement,
}

fn one() -> usize {
    1
}

/// What threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Sections under a mutex.
    Mutex,
    /// Reads and writes under a read-write lock.
    Rwlock,
    /// A bounded queue.
    Queue,
    /// Threads that wait for each other.
    Handoff,
    /// Stages with a bounded queue between each two.
    Pipeline,
}

/// A way in which threads wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handoff {
    /// Two threads in strict alternation.
    PingPong,
    /// Workers that one thread feeds.
    Pool,
    /// A barrier of all threads.
    Barrier,
}

/// The parameters, and what their lists do.
macro_rules! axes {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty,)*) => {
        /// Values of the parameters; an empty list says nothing about its parameter.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Axes {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Vec::is_empty")]
                pub $name: Vec<$type>,
            )*
        }

        impl Axes {
            /// The values of `other` where it has some.
            #[must_use]
            pub fn replaced_by(&self, other: &Self) -> Self {
                let mut both = other.clone();
                $(if both.$name.is_empty() { both.$name.clone_from(&self.$name); })*
                both
            }

            /// Checks that no value is there twice; a cell has one place.
            fn check(&self) -> Result<(), String> {
                $(if distinct(&self.$name).len() < self.$name.len() {
                    return Err(format!("`{}` has a value twice", stringify!($name)));
                })*
                Ok(())
            }
        }
    };
}

axes! {
    /// Numbers of threads.
    threads: usize,
    /// Iterations of the critical section.
    section: u32,
    /// Iterations of the non-critical section.
    outside: u32,
    /// Writes in a thousand operations.
    writes: u16,
    /// Producers, consumers, capacity.
    queues: [usize; 3],
    /// Items that each queue of a pipeline holds.
    capacity: usize,
    /// Iterations of work on an item.
    work: u32,
    /// Where signals are.
    signal: Signal,
    /// How many waiters a signal wakes.
    wake: Wake,
    /// Ways to wait for each other.
    handoffs: Handoff,
}

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
    axes.check()?;
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
        let one = [(1000 / threads) as u16];
        for &writes in if plane.one_writer { &one[..] } else { &axes.writes } {
            for &inside in &axes.section {
                for &outside in &axes.outside {
                    let load = Load::Shared(Shared {
                        percent_writes: 0,
                        writes_per_thousand: Some(writes),
                        inside,
                        outside,
                        writers_first: plane.writers_first,
                        one_writer: plane.one_writer,
                    });
                    let row = match plane.one_writer {
                        true => inside.to_string(),
                        false => format!("{writes} ‰, {inside}"),
                    };
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
