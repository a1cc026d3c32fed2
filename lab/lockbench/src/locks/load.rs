//! What the threads of a workload do, in numbers: read from a definition file, and handed to the worker
//! process.

use serde::{Deserialize, Serialize};

/// The most cache lines that a section can change.
pub const MAX_LINES: usize = 8;

/// One kind of load with its parameters.
///
/// An *iteration* of work is one step of a private xorshift generator: a chain of six instructions, about 2
/// ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// One thread locks and unlocks, uncontended.
    Pair(Pair),
    /// Threads with a critical section under a mutex, and a non-critical section.
    Section(Section),
    /// Threads that read, and sometimes write, under a read-write lock.
    Shared(Shared),
    /// Two threads in strict alternation through two condition variables.
    PingPong(PingPong),
    /// One thread wakes all others and waits until all have answered.
    Broadcast(Broadcast),
    /// Some threads fill a bounded queue, the others empty it.
    Queue(Queue),
    /// One thread feeds a pool of workers, a batch of jobs at a time.
    Pool(Pool),
    /// All threads meet at a barrier, again and again.
    Barrier(Barrier),
    /// Stages with a bounded queue between each two.
    Pipeline(Pipeline),
}

/// Parameters of [`Load::Pair`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// What is locked.
    pub lock: Locked,
    /// Whether a second thread is alive (and asleep): locks treat a process with one thread differently.
    pub threaded: bool,
    /// Whether the thread holds it already: a recursive mutex.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// What a pair locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Locked {
    /// A mutex.
    Mutex,
    /// A recursive mutex.
    Recursive,
    /// An error-checking mutex.
    ErrorCheck,
    /// A read-write lock, for reading.
    Read,
    /// A read-write lock, for writing.
    Write,
}

/// Parameters of [`Load::Section`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// Locks to choose from at random.
    pub locks: usize,
    /// Cache lines that are changed inside.
    pub lines: usize,
    /// Iterations of the critical section.
    pub inside: u32,
    /// Iterations of the non-critical section.
    pub outside: u32,
    /// The lock lies among the data that it protects, on one cache line with it if it is small: one counter
    /// before it, one behind it. Otherwise both are on lines of their own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// `inside` and `outside` are means of exponentially distributed lengths.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exponential: bool,
    /// Milliseconds for which each thread leaves, after about as much time of work.
    #[serde(skip_serializing_if = "is_zero")]
    pub leaves_ms: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Default for Section {
    fn default() -> Self {
        Self { locks: 1, lines: 1, inside: 0, outside: 0, beside: false, exponential: false, leaves_ms: 0 }
    }
}

/// Parameters of [`Load::Shared`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shared {
    /// Writes in a hundred operations.
    pub percent_writes: u8,
    /// Writes in a thousand operations, instead of `percent_writes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_per_thousand: Option<u16>,
    /// Iterations of the critical section.
    pub inside: u32,
    /// Iterations of the non-critical section.
    pub outside: u32,
    /// The lock prefers writers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub writers_first: bool,
    /// The first thread only writes, and the others only read, without a non-critical section. The share of
    /// writes is then what is expected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_writer: bool,
}

impl Shared {
    /// Writes in a thousand operations.
    #[must_use]
    pub fn per_thousand(&self) -> u16 {
        self.writes_per_thousand.unwrap_or(u16::from(self.percent_writes) * 10)
    }
}

/// Parameters of [`Load::PingPong`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingPong {
    /// Where the signal is.
    pub signal: Signal,
    /// Where the two threads run.
    pub cpus: Placement,
}

/// Where a signal is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// While the mutex is held.
    #[default]
    UnderLock,
    /// After the mutex was unlocked.
    AfterUnlock,
}

impl Signal {
    fn is_under_lock(&self) -> bool {
        *self == Self::UnderLock
    }
}

/// Where threads run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Where the kernel puts them.
    #[default]
    Any,
    /// All on one CPU.
    One,
    /// Each bound to a CPU, in turn.
    Each,
}

impl Placement {
    /// Whether the kernel decides.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::Any
    }
}

/// Parameters of [`Load::Broadcast`]: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broadcast {}

/// Parameters of [`Load::Queue`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Items that it holds.
    pub capacity: usize,
    /// Threads that fill it; if it does not say, half of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producers: Option<usize>,
    /// Iterations on each item, in the non-critical section, by the thread that makes it and by the thread
    /// that takes it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub work: u32,
    /// Where the signal is.
    #[serde(default, skip_serializing_if = "Signal::is_under_lock")]
    pub signal: Signal,
    /// How many waiters a signal wakes.
    #[serde(default, skip_serializing_if = "Wake::is_one")]
    pub wake: Wake,
}

impl Queue {
    /// How many of `threads` fill it.
    #[must_use]
    pub fn producers_of(&self, threads: usize) -> usize {
        self.producers.unwrap_or(threads / 2)
    }
}

/// How many waiters a signal wakes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    /// One of them.
    #[default]
    One,
    /// All of them: each checks whether there is something for it.
    All,
}

impl Wake {
    fn is_one(&self) -> bool {
        *self == Self::One
    }
}

/// Parameters of [`Load::Pool`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Jobs of a batch. The feeding thread hands them out one by one, and waits until all are done.
    pub batch: usize,
    /// Iterations of a job.
    #[serde(default)]
    pub work: u32,
}

/// Parameters of [`Load::Barrier`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Barrier {
    /// Iterations of each thread between two meetings.
    pub work: u32,
}

/// Parameters of [`Load::Pipeline`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Items that each queue holds.
    pub capacity: usize,
    /// Iterations of each stage on each item, in the non-critical section.
    #[serde(default)]
    pub work: u32,
    /// Where the signal is.
    #[serde(default)]
    pub signal: Signal,
}

/// What an implementation must have for a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// A mutex.
    Mutex,
    /// A recursive mutex.
    Recursive,
    /// An error-checking mutex.
    ErrorCheck,
    /// A read-write lock.
    RwLock,
    /// A read-write lock that prefers writers.
    WritersFirst,
    /// A condition variable with its mutex.
    Condvar,
}

impl Primitive {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Mutex, Self::Recursive, Self::ErrorCheck, Self::RwLock, Self::WritersFirst, Self::Condvar];

    /// "no recursive mutex": what is said of an implementation that lacks it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Recursive => "recursive mutex",
            Self::ErrorCheck => "error-checking mutex",
            Self::RwLock => "read-write lock",
            Self::WritersFirst => "read-write lock that prefers writers",
            Self::Condvar => "condition variable",
        }
    }
}

impl Load {
    /// What an implementation must have for it.
    #[must_use]
    pub fn needs(&self) -> Primitive {
        match self {
            Self::Pair(Pair { lock: Locked::Mutex, .. }) | Self::Section(_) => Primitive::Mutex,
            Self::Pair(Pair { lock: Locked::Recursive, .. }) => Primitive::Recursive,
            Self::Pair(Pair { lock: Locked::ErrorCheck, .. }) => Primitive::ErrorCheck,
            Self::Shared(Shared { writers_first: true, .. }) => Primitive::WritersFirst,
            Self::Pair(Pair { lock: Locked::Read | Locked::Write, .. }) | Self::Shared(_) => {
                Primitive::RwLock
            }
            Self::PingPong(_)
            | Self::Broadcast(_)
            | Self::Queue(_)
            | Self::Pool(_)
            | Self::Barrier(_)
            | Self::Pipeline(_) => Primitive::Condvar,
        }
    }

    /// Whether threads wait in it, so that it is run a second time, to time that.
    #[must_use]
    pub fn has_waits(&self) -> bool {
        !matches!(self, Self::Pair(_))
    }

    /// What is wrong with the parameters, or with running it in `threads` threads.
    ///
    /// # Errors
    ///
    /// A sentence about the first parameter that makes no sense.
    pub fn check(&self, threads: usize) -> Result<(), String> {
        /// More than this is a slip of the pen.
        const MANY: usize = 4096;
        let between = |what: &str, found: usize, low: usize, high: usize| {
            if (low..=high).contains(&found) {
                Ok(())
            } else {
                Err(format!("{what} is {found}, which is not between {low} and {high}"))
            }
        };
        between("the number of threads", threads, 1, MANY)?;
        match self {
            Self::Pair(pair) if pair.held && pair.lock != Locked::Recursive => {
                Err("`held` is for `lock = \"recursive\"` only: a thread cannot have another lock again"
                    .to_owned())
            }
            Self::Pair(_) => between("the number of threads of a pair", threads, 1, 1),
            Self::Section(section) => {
                between("`locks`", section.locks, 1, MANY)?;
                if section.beside {
                    return between("`lines` of data around the lock", section.lines, 1, 1);
                }
                between("`lines`", section.lines, 1, MAX_LINES)
            }
            Self::Shared(shared) if shared.one_writer && threads < 2 => {
                between("the number of threads with one that writes", threads, 2, MANY)
            }
            Self::Shared(shared) if shared.writes_per_thousand.is_some() => {
                between("`writes_per_thousand`", shared.per_thousand().into(), 0, 1000)
            }
            Self::Shared(shared) => between("`percent_writes`", shared.percent_writes.into(), 0, 100),
            Self::PingPong(_) => between("the number of threads of a ping-pong", threads, 2, 2),
            Self::Broadcast(_) => between("the number of threads of a broadcast", threads, 2, MANY),
            Self::Queue(queue) => {
                between("the number of threads of a queue", threads, 2, MANY)?;
                between("`producers`", queue.producers_of(threads), 1, threads - 1)?;
                between("`capacity`", queue.capacity, 1, 1 << 20)
            }
            Self::Pool(pool) => {
                between("the number of threads of a pool", threads, 2, MANY)?;
                between("`batch`", pool.batch, 1, 1 << 20)
            }
            Self::Barrier(_) => between("the number of threads of a barrier", threads, 2, MANY),
            Self::Pipeline(pipeline) => {
                between("the number of stages of a pipeline", threads, 2, MANY)?;
                between("`capacity`", pipeline.capacity, 1, 1 << 20)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of earlier versions can be read, and what is not new is written as they have it.
    #[test]
    fn what_was_there_is_written_as_before() {
        for text in [
            r#"{"section":{"locks":1,"lines":1,"inside":0,"outside":16}}"#,
            r#"{"shared":{"percent_writes":10,"inside":0,"outside":0}}"#,
            r#"{"queue":{"capacity":16}}"#,
        ] {
            let load: Load = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&load).unwrap(), text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let section = |section| Load::Section(section);
        assert_eq!(section(Section::default()).check(256), Ok(()));
        assert!(
            section(Section { lines: 99, ..Section::default() })
                .check(2)
                .unwrap_err()
                .contains("`lines` is 99")
        );
        let beside = Section { lines: 2, beside: true, ..Section::default() };
        assert!(section(beside).check(2).unwrap_err().contains("around the lock is 2"));
        assert!(section(Section::default()).check(0).unwrap_err().contains("threads is 0"));
        let writes = Load::Shared(Shared { percent_writes: 101, ..Shared::default() });
        assert!(writes.check(2).unwrap_err().contains("`percent_writes` is 101"));
        let pair = |lock, held| Load::Pair(Pair { lock, threaded: true, held });
        assert!(pair(Locked::Mutex, false).check(2).is_err() && pair(Locked::Mutex, false).check(1).is_ok());
        assert!(pair(Locked::Mutex, true).check(1).unwrap_err().contains("`held`"));
        assert!(pair(Locked::Recursive, true).check(1).is_ok());
        let queue = |text: &str| serde_json::from_str::<Queue>(text).map(Load::Queue).unwrap();
        assert!(queue(r#"{"capacity":0}"#).check(2).is_err());
        assert!(queue(r#"{"capacity":1}"#).check(2).is_ok());
        assert!(queue(r#"{"capacity":1,"producers":2}"#).check(2).is_err());
    }
}
