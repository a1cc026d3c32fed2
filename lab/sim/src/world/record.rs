//! What is recorded of a run: which threads ran where, for a timeline, and the last steps, for a failure.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::outcome::Slice;
use crate::time::PS_PER_NS;
use crate::world::locals::{COUNTED, MARKED};
use crate::world::memory::{Access, LINE_BYTES, Place, Value, Write};
use crate::world::{Did, ThreadId, World};

/// How much is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// This many of the last steps (memory accesses, calls, events of locks).
    pub last_steps: usize,
    /// This many slices: which threads ran where, from when to when.
    pub slices: usize,
    /// How many operations ended in each span of this length, ns; 0: not recorded.
    pub span_ns: u64,
}

/// The record.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) record: Record,
    /// In words: where a word lies is not known any more when it has ended.
    pub(crate) steps: VecDeque<String>,
    pub(crate) slices: Vec<Slice>,
    /// How many there was no room for.
    pub(crate) cut: u64,
}

impl Trace {
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
        self.note_of(self.running, did);
    }

    /// Notes a step of `thread`, which need not run.
    #[inline]
    pub(crate) fn note_of(&mut self, thread: ThreadId, did: Did) {
        if self.trace.record.last_steps > 0 {
            self.keep_step(thread, did);
        }
    }

    fn keep_step(&mut self, thread: ThreadId, did: Did) {
        let line = format!("{:>12.3} µs  thread {:>3}  {}", self.now as f64 / 1e6, thread.0, self.tell(did));
        let trace = &mut self.trace;
        if trace.steps.len() == trace.record.last_steps {
            trace.steps.pop_front();
        }
        trace.steps.push_back(line);
    }

    /// The thread leaves its CPU.
    pub(crate) fn trace_slice(&mut self, thread: ThreadId) {
        if self.trace.has_slices() {
            let left = &self.threads[thread];
            let slice = Slice {
                cpu: Some(left.cpu.0),
                thread: thread.0,
                name: None,
                from_ns: left.on_since.min(self.now) / PS_PER_NS,
                to_ns: self.now / PS_PER_NS,
            };
            self.trace.keep(slice);
        }
    }

    /// The last steps, a line each. Words have the names that the simulated program gave them; else that of
    /// the stack that they are on, or the number of their line, and their place in it.
    pub(crate) fn interleaving(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace.steps).into()
    }

    fn tell(&self, did: Did) -> String {
        let name = |address| self.name_of(address);
        let value = |address, value| self.value_of(address, value);
        match did {
            Did::Accessed(Access::Load, address) => format!("reads {}", name(address)),
            Did::Accessed(Access::Store, address) => format!("writes {}", name(address)),
            Did::Accessed(Access::Update, address) => format!("updates {}", name(address)),
            Did::Loaded(address, seen) => format!("{} is {}", name(address), value(address, seen)),
            Did::Wrote(address, old, new) => {
                format!("{}: {} -> {}", name(address), value(address, old), value(address, new))
            }
            Did::Failed(address, seen, expected) => {
                let (seen, expected) = (value(address, seen), value(address, expected));
                format!("{} is {seen}, not {expected}: no exchange", name(address))
            }
            Did::Pointer(address, None, new) => format!("{} is {}", name(address), name(new)),
            Did::Pointer(address, Some(old), new) => {
                format!("{}: {} -> {}", name(address), name(old), name(new))
            }
            Did::Buffered(Write { address, value: stored }) => {
                let stored = match stored {
                    Value::Unknown => "something".to_owned(),
                    Value::Word(_, stored) => value(address, stored),
                    Value::Pointer(_, stored) => name(stored.addr()),
                    // The lock that it names, not where that is: a story is the same elsewhere in memory.
                    Value::Slot(_, stored) => name(stored & !(MARKED | COUNTED)),
                };
                format!("{}: {stored} is in the store buffer", name(address))
            }
            Did::Slept(address) => format!("sleeps on {}", name(address)),
            Did::Woke(address, count) => format!("wakes {count} on {}", name(address)),
            Did::Returned(outcome) => format!("wait returns: {outcome:?}"),
            Did::Lock(event) => format!("lock: {event:?}"),
            Did::Said(words) => words.to_owned(),
        }
    }

    fn value_of(&self, address: usize, value: u32) -> String {
        match self.checks.as_ref().and_then(|checks| checks.field(address)) {
            Some((_, field)) => (field.decode)(value),
            None => format!("{value:#x}"),
        }
    }

    /// What a word is called.
    pub(crate) fn name_of(&self, address: usize) -> String {
        if address == 0 {
            return "null".to_owned();
        }
        if let Some(name) = self.checks.as_ref().and_then(|checks| checks.name(address)) {
            return name;
        }
        let Some(Place { line, offset }) = self.memory.known(address) else {
            let stack = self.memory.stack_of(address).map(|thread| format!("stack {}", thread.0));
            return stack.unwrap_or_else(|| "a word that was not used".to_owned());
        };
        match self.memory.lines[line.0 as usize].on_stack {
            Some((thread, index)) => format!("stack {} +{:#x}", thread.0, index * LINE_BYTES as u32 + offset),
            None => format!("L{}+{offset}", line.0),
        }
    }
}
