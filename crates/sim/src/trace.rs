//! What is recorded of a run: who ran where, for a timeline, and the last steps, for a failure.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spinpark_platform::Event;

use crate::engine::thread::{State, ThreadId};
use crate::engine::time::{PS_PER_NS, Ps};
use crate::engine::world::World;
use crate::memory::Access;

/// How much is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// This many of the last steps (memory accesses, calls, events of locks).
    pub last_steps: usize,
    /// This many slices: who ran where, from when to when.
    pub slices: usize,
}

/// A thread ran on a CPU, or a thing that a thread marked: see [`crate::here::mark`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The CPU; none for a mark.
    pub cpu: Option<u32>,
    /// The thread.
    pub thread: u32,
    /// What; none for running.
    pub name: Option<Arc<str>>,
    /// From when, ns.
    pub from_ns: u64,
    /// Until when, ns.
    pub to_ns: u64,
}

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Did {
    Accessed(Access, usize),
    Saw(u64),
    Wrote(u64, u64),
    Failed(u64, u64),
    Slept(usize),
    Woke(usize, u32),
    Returned(spinpark_platform::Wait),
    Lock(Event),
    Said(&'static str),
}

/// The record.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    record: Record,
    steps: VecDeque<(Ps, ThreadId, Did)>,
    pub(crate) slices: Vec<Slice>,
    /// How many there was no room for.
    pub(crate) cut: u64,
}

impl Trace {
    pub(crate) fn new(record: Record) -> Self {
        Self { record, ..Self::default() }
    }

    /// Whether a timeline is recorded at all.
    #[inline]
    pub(crate) fn has_slices(&self) -> bool {
        self.record.slices > 0
    }

    /// Keeps the slice, if there is room.
    pub(crate) fn keep(&mut self, slice: Slice) {
        if self.slices.len() < self.record.slices {
            self.slices.push(slice);
        } else {
            self.cut += 1;
        }
    }
}

impl World {
    /// Notes a step of the running thread.
    #[inline]
    pub(crate) fn note(&mut self, did: Did) {
        if self.trace.record.last_steps > 0 {
            self.note_step(did);
        }
    }

    fn note_step(&mut self, did: Did) {
        let trace = &mut self.trace;
        if trace.steps.len() == trace.record.last_steps {
            trace.steps.pop_front();
        }
        trace.steps.push_back((self.now, self.running, did));
    }

    /// The thread leaves its CPU.
    pub(crate) fn trace_slice(&mut self, thread: ThreadId, _: State) {
        if self.trace.has_slices() {
            let left = &self.threads[thread];
            let slice = Slice {
                cpu: Some(left.cpu.0),
                thread: thread.0,
                name: None,
                from_ns: left.on_since / PS_PER_NS,
                to_ns: self.now / PS_PER_NS,
            };
            self.trace.keep(slice);
        }
    }

    /// The last steps, a line each. Words are named by the number of their line, and their place in it.
    pub(crate) fn interleaving(&mut self) -> Vec<String> {
        let steps = std::mem::take(&mut self.trace.steps);
        steps
            .into_iter()
            .map(|(at, thread, did)| {
                let mut word = |address: usize| Word(self.memory.of(address).0, address % 64);
                let what = match did {
                    Did::Accessed(access, address) => format!("{access:?} {}", word(address)),
                    Did::Saw(value) => format!("  = {value:#x}"),
                    Did::Wrote(old, new) => format!("  {old:#x} -> {new:#x}"),
                    Did::Failed(seen, expected) => format!("  fails: {seen:#x}, not {expected:#x}"),
                    Did::Slept(address) => format!("sleeps on {}", word(address)),
                    Did::Woke(address, count) => format!("wakes {count} on {}", word(address)),
                    Did::Returned(outcome) => format!("wait returns: {outcome:?}"),
                    Did::Lock(event) => format!("lock: {event:?}"),
                    Did::Said(words) => words.to_owned(),
                };
                format!("{:>12.3} µs  thread {:>3}  {what}", at as f64 / 1e6, thread.0)
            })
            .collect()
    }
}

/// A word's name.
struct Word(u32, usize);

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{}+{}", self.0, self.1)
    }
}
