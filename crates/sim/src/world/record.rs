//! What is recorded of a run: which threads ran where, for a timeline, and the last steps, for a failure.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use spinpark_platform::Event;

use super::memory::{Access, Write};
use crate::slice::Slice;

/// How much is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// This many of the last steps (memory accesses, calls, events of locks).
    pub last_steps: usize,
    /// This many slices: which threads ran where, from when to when.
    pub slices: usize,
    /// How many operations ended in each span of so many ns; 0: not recorded.
    pub span_ns: u64,
}

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Did {
    /// It accessed memory whose contents say nothing to a reader.
    Accessed(Access, usize),
    /// A load of a word, and what it held.
    Loaded(usize, u32),
    /// A word changed from … to.
    Wrote(usize, u32, u32),
    /// A compare-exchange found something else than it expected.
    Failed(usize, u32, u32),
    /// A pointer was loaded, or stored to; the latter from … to, if that is known.
    Pointer(usize, Option<usize>, usize),
    /// A store waits in its core's buffer.
    Buffered(Write),
    Slept(usize),
    Woke(usize, u32),
    Returned(spinpark_platform::Wait),
    Lock(Event),
    Said(&'static str),
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
