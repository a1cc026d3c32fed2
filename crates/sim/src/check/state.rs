//! What a run that checks a lock keeps: what is wrong with the machine, which memory is gone, what words are
//! called, who came in which order.

use std::ops::Range;
use std::rc::Rc;

use spinpark_platform::Event;

use super::fault::Faults;

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

    /// Threads have real-time priorities, at random at each wait where constants guess: then nothing bounds a
    /// wait.
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

    /// Whether there was memory at `address` that has been given back.
    pub(crate) fn is_gone(&self, address: usize) -> bool {
        self.gone.iter().any(|gone| gone.contains(&address))
    }

    /// Whether threads have real-time priorities.
    pub(crate) fn has_realtime(&self) -> bool {
        self.realtime
    }

    /// What is told of what locks do.
    pub(crate) fn listener(&self) -> Option<OnEvent> {
        self.on_event.clone()
    }

    /// `thread` swaps `value` into the word at `address`.
    #[inline]
    pub(crate) fn swaps(&mut self, thread: u32, address: usize, value: usize) {
        if let Some((_, order)) =
            self.ordered.as_mut().filter(|(place, _)| value != 0 && place.contains(&address))
        {
            order.push(thread);
        }
    }

    /// The place of `thread` in the order of arrival: its latest one.
    pub(crate) fn place_in_order(&self, thread: u32) -> Option<usize> {
        let (_, order) = self.ordered.as_ref()?;
        order.iter().rposition(|&arrived| arrived == thread)
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
