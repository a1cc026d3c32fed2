//! How a run fails.

use serde::{Deserialize, Serialize};

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Nothing is left to happen, and threads sleep: a lost wake-up, or a deadlock.
    #[error(
        "deadlock: nothing is left to happen, and threads sleep for ever: {threads:?} (a lost wake-up, if the lock is free)"
    )]
    Deadlock {
        /// Their numbers.
        threads: Vec<u32>,
    },
    /// Two threads were in a critical section at a time.
    #[error("mutual exclusion: thread {second} entered a critical section in which thread {first} was")]
    Exclusion {
        /// The threads that were there first.
        first: u32,
        /// The thread that came in.
        second: u32,
    },
    /// A thread waited for longer than the check allows.
    #[error(
        "starvation: thread {thread} waited for {waited_ns} ns, while others acquired the lock {others} times"
    )]
    Starvation {
        /// Who.
        thread: u32,
        /// For how long, ns.
        waited_ns: u64,
        /// How often others got it meanwhile.
        others: u64,
    },
    /// The run took more steps than it should.
    #[error(
        "no end: after {steps} steps, or by polling for what does not come, these threads have not ended: {threads:?}"
    )]
    Endless {
        /// How many.
        steps: u64,
        /// The threads that have not ended.
        threads: Vec<u32>,
    },
    /// See [`stop`](crate::stop).
    #[error("stopped before its end")]
    Stopped,
    /// A thread accessed memory that had been given back.
    #[error("use after free: thread {thread} accesses {word}, which was given back")]
    UseAfterFree {
        /// Who.
        thread: u32,
        /// What.
        word: String,
    },
    /// A thread followed a pointer to where no memory is.
    #[error("thread {thread} accesses memory that is neither on a simulated stack nor in an `Object`")]
    Wild {
        /// Who.
        thread: u32,
    },
    /// The simulated program panicked.
    #[error("thread {thread} panicked: {message}")]
    Panic {
        /// Which thread.
        thread: u32,
        /// What it said.
        message: String,
    },
    /// A check of the workload failed.
    #[error("{0}")]
    Check(String),
}
