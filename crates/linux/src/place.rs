//! The CPU to which the calling thread is bound. It asks as it goes to sleep, and not with a lock held.

use crate::{cpu, single, thread};

/// The only CPU that the calling thread could use when it last slept, from 1 on; [`cpu::ANY`] if several, or
/// if it has not slept since it first wanted to know.
pub(crate) fn only_cpu() -> u32 {
    let place = thread::place();
    if place.look == 0 {
        place.look = WANTED;
        place.cpu = cpu::ANY;
    }
    place.cpu
}

/// In `look`: the next sleep asks.
const WANTED: u32 = u32::MAX;

/// Asks, before the calling thread sleeps, the questions that must not be asked with a lock held.
#[inline(never)] // for the drop-in's size
pub(crate) fn before_sleep() {
    /// One sleep in 16 reads the clock.
    const FEW: u32 = 16;
    let place = thread::place();
    place.sleeps = place.sleeps.wrapping_add(1);
    if place.sleeps % FEW == 0 {
        cpu::look_again();
    }
    let look = cpu::looks();
    if place.look != 0 && place.look != look && !single::is_alone() {
        place.look = look;
        place.cpu = cpu::ask_place();
    }
}
