//! Recording a run, and telling its last steps in words.

use crate::slice::Slice;
use crate::time::{PS_PER_NS, Ps};
use crate::world::memory::{Access, Value, Write};
use crate::world::platform::MOVED;
use crate::world::{Did, State, Thread, ThreadId, World};

impl World {
    /// Notes a step of the running thread.
    #[inline]
    pub(crate) fn note(&mut self, did: Did) {
        if self.trace.record.last_steps > 0 {
            self.note_step(did);
        }
    }

    fn note_step(&mut self, did: Did) {
        self.note_of(self.running, did);
    }

    /// Notes a step of `thread`, which need not run.
    pub(crate) fn note_of(&mut self, thread: ThreadId, did: Did) {
        let trace = &mut self.trace;
        if trace.record.last_steps == 0 {
            return;
        }
        if trace.steps.len() == trace.record.last_steps {
            trace.steps.pop_front();
        }
        trace.steps.push_back((self.now, thread, did));
    }

    /// The thread leaves its CPU.
    pub(crate) fn trace_slice(&mut self, thread: ThreadId, _: State) {
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

    /// The last steps, a line each. Words have the names that the simulated program gave them; else that of the stack that
    /// they are on, or the number of their line, and their place in it.
    pub(crate) fn interleaving(&mut self) -> Vec<String> {
        let steps = std::mem::take(&mut self.trace.steps);
        let line = |(at, thread, did): (Ps, ThreadId, Did)| {
            let what = self.tell(did);
            format!("{:>12.3} µs  thread {:>3}  {what}", at as f64 / 1e6, thread.0)
        };
        steps.into_iter().map(line).collect()
    }

    fn tell(&mut self, did: Did) -> String {
        match did {
            Did::Accessed(access, address) => {
                let verb = match access {
                    Access::Load => "reads",
                    Access::Store => "writes",
                    Access::Update => "updates",
                };
                format!("{verb} {}", self.name_of(address))
            }
            Did::Loaded(address, value) => {
                format!("{} is {}", self.name_of(address), self.value_of(address, value))
            }
            Did::Wrote(address, old, new) => {
                let (old, new) = (self.value_of(address, old), self.value_of(address, new));
                format!("{}: {old} -> {new}", self.name_of(address))
            }
            Did::Failed(address, seen, expected) => {
                let (seen, expected) = (self.value_of(address, seen), self.value_of(address, expected));
                format!("{} is {seen}, not {expected}: no exchange", self.name_of(address))
            }
            Did::Pointer(address, None, new) => {
                format!("{} is {}", self.name_of(address), self.name_of(new))
            }
            Did::Pointer(address, Some(old), new) => {
                format!("{}: {} -> {}", self.name_of(address), self.name_of(old), self.name_of(new))
            }
            Did::Buffered(Write { address, value }) => {
                let value = match value {
                    Value::Unknown => "something".to_owned(),
                    Value::Word(_, value) => self.value_of(address, value),
                    Value::Pointer(_, value) => self.name_of(value.addr()),
                    // The lock that it names, not where that is: a story is the same elsewhere in memory.
                    Value::Slot(_, value) => match self.name_of(value & !MOVED) {
                        name if value & MOVED != 0 => format!("{name}, moved"),
                        name => name,
                    },
                };
                format!("{}: {value} is in the store buffer", self.name_of(address))
            }
            Did::Slept(address) => format!("sleeps on {}", self.name_of(address)),
            Did::Woke(address, count) => format!("wakes {count} on {}", self.name_of(address)),
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
    pub(crate) fn name_of(&mut self, address: usize) -> String {
        if address == 0 {
            return "null".to_owned();
        }
        if let Some(name) = self.checks.as_ref().and_then(|checks| checks.name(address)) {
            return name;
        }
        let on_stack = |thread: &Thread| thread.stack.contains(&address);
        if let Some(owner) = self.threads.0.iter().rposition(on_stack) {
            return format!("stack {owner} -{:#x}", self.threads.0[owner].stack.end - address);
        }
        format!("L{}+{}", self.memory.of(address).0, address % 64)
    }
}
