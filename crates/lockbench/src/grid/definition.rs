//! Planes and what is to hold in them, as the definition file has them.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::figure::{Against, Figure};
use crate::locks::definitions::{Implementation, Role};
use crate::locks::load::{Placement, Signal, Wake};
use crate::locks::selection::once;

/// Everything in the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// What is measured unless told otherwise; the first one is the baseline.
    pub implementations: Vec<String>,
    /// The planes.
    #[serde(rename = "plane")]
    pub planes: Vec<Plane>,
    /// What is to hold.
    #[serde(default, rename = "bound")]
    pub bounds: Vec<Bound>,
}

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

impl Plane {
    /// Whether `implementation` is measured in it: ours is, and a peer if the plane does not have others.
    #[must_use]
    pub fn is_compared_with(&self, implementation: &Implementation) -> bool {
        implementation.role != Role::Peer
            || self.peers.is_empty()
            || self.peers.contains(&implementation.name)
    }
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

/// Values of the parameters; an empty list says nothing about its parameter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Axes {
    /// Numbers of threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<usize>,
    /// Iterations of work inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub section: Vec<u32>,
    /// Iterations of work outside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<u32>,
    /// Writes in a thousand operations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<u16>,
    /// Producers, consumers, capacity.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<[usize; 3]>,
    /// Items that each queue of a pipeline holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<usize>,
    /// Iterations of work on an item.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<u32>,
    /// Where signals are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signal: Vec<Signal>,
    /// How many waiters a signal wakes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wake: Vec<Wake>,
    /// Ways to wait for each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<Handoff>,
}

impl Axes {
    /// The values of `other` where it has some.
    #[must_use]
    pub fn replaced_by(&self, other: &Self) -> Self {
        fn either<T: Clone>(own: &[T], other: &[T]) -> Vec<T> {
            if other.is_empty() { own.to_vec() } else { other.to_vec() }
        }
        Self {
            threads: either(&self.threads, &other.threads),
            section: either(&self.section, &other.section),
            outside: either(&self.outside, &other.outside),
            writes: either(&self.writes, &other.writes),
            queues: either(&self.queues, &other.queues),
            capacity: either(&self.capacity, &other.capacity),
            work: either(&self.work, &other.work),
            signal: either(&self.signal, &other.signal),
            wake: either(&self.wake, &other.wake),
            handoffs: either(&self.handoffs, &other.handoffs),
        }
    }

    /// Checks that no value is there twice; a cell has one place.
    pub(super) fn check(&self) -> Result<(), String> {
        fn distinct<T: PartialEq + Copy + Display>(name: &str, all: &[T]) -> Result<(), String> {
            once(name, all).map_err(|what| what.lines().next().unwrap_or_default().to_owned())
        }
        distinct("`threads`", &self.threads)?;
        distinct("`section`", &self.section)?;
        distinct("`outside`", &self.outside)?;
        distinct("`writes`", &self.writes)?;
        distinct("`capacity`", &self.capacity)?;
        distinct("`work`", &self.work)
    }
}

/// Something that is to hold in planes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// In words.
    pub what: String,
    /// In which planes, each by itself.
    pub planes: Vec<String>,
    /// Which number.
    pub figure: Figure,
    /// What is made of the cells.
    pub over: Over,
    /// Only cells with these numbers of threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<usize>,
    /// Only cells with so many writes in a thousand operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<u16>,
    /// Which implementations are judged, each by itself.
    pub ours: Vec<String>,
    /// What they are divided by.
    pub against: Against,
    /// The largest ratio that is fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The smallest ratio that is fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
}

/// What a bound makes of the cells of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Each has to be within the limit.
    EachCell,
    /// Their geometric mean has to be.
    GeometricMean,
    /// The geometric mean of those of each number of threads has to be.
    EachThreads,
}

impl Grid {
    /// The plane of that name.
    ///
    /// # Errors
    ///
    /// A sentence that says which there are.
    pub fn plane(&self, name: &str) -> Result<&Plane, String> {
        self.planes.iter().find(|plane| plane.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.planes.iter().map(|plane| plane.name.as_str()).collect();
            format!("there is no plane `{name}`; there are: {}", names.join(", "))
        })
    }
}
