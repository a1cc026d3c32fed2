//! What locks are called.
//!
//! By the name that the program gave them, or else by the variable that they are, or else by what created or first used
//! them. Where that is the same for several, they are numbered in the order in which they were met.

use std::collections::HashMap;

use super::Maps;
use crate::model::{Lock, Place};
use crate::symbols::Symbols;

/// Gives each lock its label. `locks` are in the order in which they were met.
pub(super) fn label(locks: &mut [Lock], places: &[Place], maps: &Maps, symbols: &mut Symbols) {
    let mut counts: HashMap<String, u32> = HashMap::new();
    for lock in &mut *locks {
        lock.label = base(lock, places, maps, symbols);
        *counts.entry(lock.label.clone()).or_default() += 1;
    }
    let mut numbers: HashMap<String, u32> = HashMap::new();
    for lock in locks {
        if counts.get(&lock.label).is_some_and(|count| *count > 1) {
            let number = numbers.entry(lock.label.clone()).or_default();
            *number += 1;
            lock.label = format!("{} #{number}", lock.label);
        }
    }
}

fn base(lock: &Lock, places: &[Place], maps: &Maps, symbols: &mut Symbols) -> String {
    if let Some(name) = lock.name.as_ref().filter(|name| !name.is_empty()) {
        return name.clone();
    }
    if let Some(variable) = symbols.variable(maps, lock.address) {
        return variable;
    }
    let noun = lock.kind.noun();
    match lock.place.and_then(|place| places.get(place)) {
        Some(place) if lock.is_created => format!("{noun} of {}", place.label()),
        Some(place) => format!("{noun} in {}", place.label()),
        None => format!("{noun} at {:#x}", lock.address),
    }
}
