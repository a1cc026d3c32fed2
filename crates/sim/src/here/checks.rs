//! What a program that is checked says of itself and asks for, and what it is told of locks.

use std::ops::Range;

use spinpark_platform::Event;

use crate::check::Checks;
use crate::engine::run::{is_inside, world};

/// Does `act` to what a run that checks a lock keeps, with the number of the running thread; in another run,
/// nothing.
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
    checks(|checks, _| has = checks.has_realtime());
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
    checks(|checks, running| place = checks.place_in_order(running));
    place
}

/// `value` is swapped into the word at `address` now.
#[inline]
pub(crate) fn note_order(address: usize, value: usize) {
    checks(|checks, running| checks.swaps(running, address, value));
}

/// A lock has done something.
pub(crate) fn note_event(event: Event) {
    let mut told = None;
    checks(|checks, running| told = checks.listener().map(|act| (act, running)));
    if let Some((act, running)) = told {
        act(running, event);
    }
}
