//! What a run that checks a lock adds to the machine: [`Fault`]s, memory that is gone, names of words, and
//! the order in which threads came ([`Checks`]).
//!
//! The programs that are checked, and what has to hold in them, are in `spinpark-verify`. What they call as
//! they run is in [`here`](crate::here).

mod applied;
mod breaks;

use std::ops::Range;
use std::rc::Rc;

use spinpark_platform::{Event, Ordering};

pub use applied::Applied;
pub use breaks::{Breaks, breaks, breaks_rule};

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
    /// Threads have real-time priorities, at random at each wait where constants guess: then nothing bounds a
    /// wait.
    pub realtime: bool,
    gone: Vec<Range<usize>>,
    /// Objects with names.
    pub named: Vec<Named>,
    /// Is told of what locks do.
    pub on_event: Option<OnEvent>,
    /// The object in which a swap for something that is not 0 is an arrival, and the threads in that order.
    ordered: Option<(Range<usize>, Vec<u32>)>,
}

impl Checks {
    /// On a machine with these faults.
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        Self { faults, ..Self::default() }
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

/// What an atomic operation does.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Load,
    Store,
    Swap,
    CompareExchange,
    CompareExchangeWeak,
    FetchAdd,
    FetchSub,
    FetchAnd,
    FetchOr,
}

/// An atomic operation, as a mutant sees it before it happens.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// What it does.
    pub kind: Kind,
    /// Its order; of a compare-exchange, that of success.
    pub order: Ordering,
    /// The value it writes, adds, takes or masks with; 0 for a load, the address for a pointer.
    pub value: u64,
    /// Whether it is on a pointer.
    pub pointer: bool,
}

impl Op {
    /// An operation of kind `kind` with `order`, on a number.
    pub fn is(&self, kind: Kind, order: Ordering) -> bool {
        self.kind == kind && self.order == order
    }

    /// Whether the value is `value`.
    pub fn writes(&self, value: u32) -> bool {
        self.value == u64::from(value)
    }

    /// The part of the value that is within `mask`.
    pub fn within(&self, mask: u32) -> u32 {
        self.value as u32 & mask
    }

    /// Whether the value has all of `bits`.
    pub fn has(&self, bits: u32) -> bool {
        self.within(bits) == bits
    }

    /// Whether the value has none of `bits`.
    pub fn lacks(&self, bits: u32) -> bool {
        self.within(bits) == 0
    }

    /// Either compare-exchange.
    pub fn is_compare_exchange(&self) -> bool {
        matches!(self.kind, Kind::CompareExchange | Kind::CompareExchangeWeak)
    }
}

/// What is wrong with the machine.
#[derive(Clone, Copy, Debug, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Atomic operations for which this holds are relaxed.
    Relaxed(fn(&Op) -> bool),
    /// Wakes are lost.
    NoWakes,
    /// A wait with a deadline sleeps as if it had none. (Only loom's machine has this one.)
    NoTimeouts,
    /// A wait for a span ends by the wall clock. (As above.)
    SpansByWall,
    /// A forked child is of the same generation as its parent. (Only on the simulated machine.)
    SameGeneration,
    /// The full fence does nothing.
    NoFullFence,
    /// A sleep without a deadline ends for no reason: after a millisecond, or, on loom's machine, as the clock
    /// moves.
    TimedSleeps,
    /// A thread that goes to sleep wakes no waiter that it has left asleep. (Only on the simulated machine.)
    NoSleepNotes,
    /// No thread has a real-time priority. (Only on loom's machine.)
    NoPriorities,
    /// A wake of all sleepers on a word is lost. (Only on the simulated machine.)
    NoCrowdWakes,
    /// A sleeper that is gathered on a word comes there one call too late: the last one after the wake of all
    /// sleepers on that word, whose thread goes on. (As above.)
    LateGathers,
    /// The machine has no futex calls for two words: what needs them falls back to what has one.
    OneWordOnly,
    /// The asymmetric barrier does nothing.
    NoFence,
    /// The barrier ends restartable steps, and does not wait for stores in store buffers. (Only on the
    /// simulated machine.)
    NoDrain,
    /// The barrier does nothing; it happens before the compare-exchanges for which this holds (of what
    /// they write).
    FenceBefore(fn(&Op) -> bool),
    /// A thread that looks after the barrier sees what this one wrote last, whatever has become of that.
    NoLook,
    /// A restartable step ignores these bits of its guard.
    Ignored(u32),
    /// A thread that leaves its call by unwinding does not do what the call has said is to be done first.
    /// (Only on the simulated machine.)
    LeavesAtOnce,
    /// A wait goes to sleep whatever its word holds.
    NoCompare,
    /// A compare-exchange for which this holds (of what it would write) reports success without having
    /// written.
    NoWrite(fn(&Op) -> bool),
    /// The same; it happens as its thread has next unlocked a queue, with a wake of that word. (Only on loom's
    /// machine.)
    AfterUnlock(fn(&Op) -> bool),
    /// A compare-exchange for which this holds fails.
    Refused(fn(&Op) -> bool),
    /// These bits are left out of what a compare-exchange writes, or, on loom's machine, a subtraction takes
    /// away.
    Without(fn(&Op) -> u32),
    /// A compare-exchange for which this holds stores without comparing.
    Blind(fn(&Op) -> bool),
    /// A swap or a compare-exchange for which this holds writes 0.
    Clears(fn(&Op) -> bool),
    /// A compare-exchange to acquire, which may fail for no reason, overlooks that these bits have changed.
    /// (Only on loom's machine.)
    Overlooked(u32),
    /// A swap that finds the first value reports the second. (Only on loom's machine.)
    SwapReports(u32, u32),
    /// A compare-exchange, or an AND, leaves these bits of what was there.
    Kept(u32),
    /// A compare-exchange for which this holds first takes bits away, and adds the others in a step of its
    /// own.
    InTwo(fn(&Op) -> bool),
    /// A compare-exchange that would change nothing adds these bits. (Only on the simulated machine.)
    Adds(fn(&Op) -> u32),
    /// Readers in slots are neither marked nor counted.
    NotMoved,
    /// Readers in slots are marked and settled, but not counted.
    NotCounted,
    /// Marked slots are not settled: their readers leave without a word.
    NotSettled,
    /// Slots of a lock that was at an address before are counted as those of the next one there.
    NotDisowned,
    /// A reader that leaves its slot is not told whether it is counted before it has the queue locked. (Only
    /// on loom's machine.)
    Unsure,
}

/// How many faults one machine has at most.
const MOST_FAULTS: usize = 2;

/// All that is wrong with one machine. A question whether it does something wrong is asked as it would do that: the
/// answer "yes" is counted ([`Applied`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults([Fault; MOST_FAULTS]);

impl Faults {
    const NONE: Self = Self([Fault::None; MOST_FAULTS]);

    /// One more.
    ///
    /// # Panics
    ///
    /// A mutant has two at most.
    pub fn add(&mut self, fault: Fault) {
        let free = self.0.iter_mut().find(|fault| matches!(fault, Fault::None));
        *free.expect("a mutant has two faults at most") = fault;
    }

    /// Whether one of them is such; not counted.
    pub fn has(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.0.iter().any(is)
    }

    /// Whether there is any; not counted.
    pub fn are_there(&self) -> bool {
        self.has(|fault| !matches!(fault, Fault::None))
    }

    /// Whether one of them is such: it is applied.
    pub fn any(&self, is: impl Fn(&Fault) -> bool) -> bool {
        let found = self.0.iter().position(is);
        found.is_some_and(|place| {
            Applied::note(place);
            true
        })
    }

    /// The order with which an operation happens.
    pub fn order(&self, op: Op) -> Ordering {
        let is_weakened = |fault: &Fault| matches!(fault, Fault::Relaxed(is_weakened) if is_weakened(&op));
        if op.order != Ordering::Relaxed && self.any(is_weakened) { Ordering::Relaxed } else { op.order }
    }

    /// All bits that `of` says of them: those faults are applied.
    fn bits(&self, of: impl Fn(&Fault) -> u32) -> u32 {
        self.0.iter().enumerate().fold(0, |bits, (place, fault)| {
            let more = of(fault);
            if more != 0 {
                Applied::note(place);
            }
            bits | more
        })
    }

    /// The bits that are left out of it.
    pub fn left_out(&self, op: Op) -> u32 {
        self.bits(|fault| if let Fault::Without(left_out) = fault { op.within(left_out(&op)) } else { 0 })
    }

    /// The bits that it adds, if it would change nothing.
    pub fn added(&self, op: Op) -> u32 {
        self.bits(|fault| if let Fault::Adds(added) = fault { added(&op) } else { 0 })
    }

    /// Whether who looks after an asymmetric barrier sees what it wrote last; not counted.
    pub fn looks_back(&self) -> bool {
        self.has(|fault| matches!(fault, Fault::NoLook))
    }

    /// What a thread that looks after an asymmetric barrier sees, if it has written `written` last.
    pub fn looked_back(&self, written: u32) -> u32 {
        self.any(|fault| matches!(fault, Fault::NoLook));
        written
    }

    /// What a swap that finds `found` reports.
    pub fn reported(&self, found: u32) -> u32 {
        let wrong = self.0.iter().enumerate().find_map(|(place, fault)| match *fault {
            Fault::SwapReports(from, to) if from == found => Some((place, to)),
            _ => None,
        });
        wrong.map_or(found, |(place, to)| {
            Applied::note(place);
            to
        })
    }

    /// Those of the bits `cleared` that an access leaves.
    pub fn kept(&self, cleared: u32) -> u32 {
        self.bits(|fault| if let Fault::Kept(bits) = fault { *bits & cleared } else { 0 })
    }

    /// Whether a compare-exchange overlooks that the bits `changed` have changed.
    pub fn overlooks(&self, changed: u32) -> bool {
        changed != 0 && self.any(|fault| matches!(fault, Fault::Overlooked(bits) if changed & !bits == 0))
    }

    /// Those of the bits `set` of its guard that a step looks at.
    pub fn seen(&self, set: u32) -> u32 {
        set & !self.bits(|fault| if let Fault::Ignored(bits) = fault { *bits & set } else { 0 })
    }
}

/// Declares what a machine may do wrong with an operation: the fault that says with which.
macro_rules! wrong_operations {
    ($($(#[$doc:meta])* $name:ident: $fault:ident;)*) => {
        impl Faults {
            $(
                $(#[$doc])*
                pub fn $name(&self, op: Op) -> bool {
                    self.any(|fault| matches!(fault, Fault::$fault(is_such) if is_such(&op)))
                }
            )*
        }
    };
}

wrong_operations! {
    /// Whether it reports success without having written.
    skips: NoWrite;
    /// Whether it reports success, and happens later.
    puts_off: AfterUnlock;
    /// Whether the asymmetric barrier happens before it.
    fences_before: FenceBefore;
    /// Whether it fails.
    refuses: Refused;
    /// Whether it stores without comparing.
    blinds: Blind;
    /// Whether it writes 0.
    clears: Clears;
    /// Whether it happens in two steps.
    halves: InTwo;
}
