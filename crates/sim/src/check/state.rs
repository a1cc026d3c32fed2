//! What a run that checks a lock keeps: what is wrong with the machine, which memory is gone, what words are called, who came
//! in which order.

use std::ops::Range;
use std::rc::Rc;

use spinpark_platform::Event;

use super::fault::{Fault, Faults};
use crate::engine::run::{is_inside, world};
use crate::engine::thread::ThreadId;
use crate::engine::world::World;
use crate::failure::Failure;

/// A word of a lock: where it lies in the lock, what it is called, and how its values are told.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Where it begins, bytes.
    pub offset: usize,
    /// What it is called.
    pub name: &'static str,
    /// A value of it in words.
    pub decode: fn(u32) -> String,
}

/// An object with a name.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// Where it lies.
    pub place: Range<usize>,
    /// Its words.
    pub fields: &'static [Field],
}

/// Told of what locks do.
pub type OnEvent = Rc<dyn Fn(u32, Event)>;

/// See the module.
#[derive(Default)]
pub struct Checks {
    pub(crate) faults: Faults,
    realtime: bool,
    gone: Vec<Range<usize>>,
    named: Vec<Named>,
    on_event: Option<OnEvent>,
    /// The object in which a swap for something that is not 0 is an arrival, and the threads in that order.
    ordered: Option<(Range<usize>, Vec<u32>)>,
}

impl Checks {
    /// On a machine with these faults.
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        Self { faults, ..Self::default() }
    }

    /// Threads have real-time priorities, at random at each wait where constants guess: then nothing bounds a wait.
    pub fn set_realtime(&mut self, realtime: bool) {
        self.realtime = realtime;
    }

    /// Names an object.
    pub fn add_name(&mut self, named: Named) {
        self.named.push(named);
    }

    /// `act` is told of what locks do.
    pub fn on_event(&mut self, act: OnEvent) {
        self.on_event = Some(act);
    }

    /// A thread that swaps something that is not 0 into a word of the object at `place` arrives.
    pub fn watch_order(&mut self, place: Range<usize>) {
        self.ordered = Some((place, Vec::new()));
    }

    /// The same for a named object.
    pub fn watch_named(&mut self, name: &str) {
        let object = self.named.iter().find(|named| named.name == name);
        self.ordered = object.map(|object| (object.place.clone(), Vec::new()));
    }

    /// What lies within `memory` is there again.
    pub(crate) fn revive(&mut self, memory: Range<usize>) {
        if !self.gone.is_empty() {
            self.gone.retain(|gone| !memory.contains(&gone.start));
        }
    }

    /// This memory is gone.
    pub(crate) fn bury(&mut self, memory: Range<usize>) {
        self.gone.push(memory);
    }

    /// The object that lies at `address`, and the word of it.
    fn object(&self, address: usize) -> Option<&Named> {
        self.named.iter().find(|named| named.place.contains(&address))
    }

    pub(crate) fn field(&self, address: usize) -> Option<(&Named, &Field)> {
        let object = self.object(address)?;
        let is_there = |field: &&Field| object.place.start + field.offset == address;
        Some((object, object.fields.iter().find(is_there)?))
    }

    pub(crate) fn name(&self, address: usize) -> Option<String> {
        if let Some((object, field)) = self.field(address) {
            return Some(format!("{}.{}", object.name, field.name));
        }
        let object = self.object(address)?;
        Some(format!("{}+{}", object.name, address - object.place.start))
    }
}

impl World {
    /// Whether the machine has a fault for which this holds.
    pub(crate) fn has_fault(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.faults.any(is))
    }

    /// Whether there is memory at `address`, and it has not been given back; if not, the run fails.
    pub(crate) fn is_alive(&mut self, address: usize) -> bool {
        self.is_alive_for(self.running, address)
    }

    /// The same, of an access by `thread`.
    pub(crate) fn is_alive_for(&mut self, thread: ThreadId, address: usize) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let Some(checks) = &self.checks else { return true };
        let thread = thread.number();
        if checks.gone.iter().any(|gone| gone.contains(&address)) {
            let word = self.name_of(address);
            self.fail(Failure::UseAfterFree { thread, word });
        } else if !self.is_memory(checks, address) {
            self.fail(Failure::Wild { thread });
        }
        self.failure.is_none()
    }

    /// Whether a program that is checked has memory there: on a stack, in an object with a name, in a reader's slot.
    fn is_memory(&self, checks: &Checks, address: usize) -> bool {
        let is_on_stack = |thread: &crate::engine::thread::Thread| thread.stack.contains(&address);
        is_on_stack(&self.threads[self.running])
            || checks.object(address).is_some()
            || self.shared.has_line(address)
            || self.threads.0.iter().any(is_on_stack)
    }
}

fn checks(act: impl FnOnce(&mut Checks, u32)) {
    if is_inside() {
        world(|world| {
            let running = world.running.number();
            if let Some(checks) = &mut world.checks {
                act(checks, running);
            }
        });
    }
}

/// Whether threads have real-time priorities in this run.
#[must_use]
pub fn has_priorities() -> bool {
    let mut has = false;
    checks(|checks, _| has = checks.realtime);
    has
}

/// The running thread gives back this memory.
pub fn bury(memory: Range<usize>) {
    if is_inside() {
        world(|world| world.memory_ends(&memory));
    }
    checks(|checks, _| checks.bury(memory));
}

/// The place of the running thread in the order of arrival.
#[must_use]
pub fn place_in_order() -> Option<usize> {
    let mut place = None;
    checks(|checks, running| {
        let order = checks.ordered.iter().flat_map(|(_, order)| order);
        place = order.enumerate().filter(|(_, thread)| **thread == running).map(|(place, _)| place).last();
    });
    place
}

/// `value` is swapped into the word at `address` now.
#[inline]
pub(crate) fn note_order(address: usize, value: usize) {
    checks(|checks, running| {
        let ordered = checks.ordered.as_mut();
        if let Some((_, order)) = ordered.filter(|(place, _)| value != 0 && place.contains(&address)) {
            order.push(running);
        }
    });
}

/// A lock has done something.
pub(crate) fn note_event(event: Event) {
    let mut told = None;
    checks(|checks, running| told = checks.on_event.clone().map(|act| (act, running)));
    if let Some((act, running)) = told {
        act(running, event);
    }
}
