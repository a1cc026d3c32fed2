//! Names of locks.
//!
//! The name that the program gave them; otherwise their variable; otherwise the function that created or first used them. Locks
//! with equal names are numbered in the order of their records.

use std::collections::HashMap;

use super::Maps;
use super::arrays::elements;
use crate::model::{CallSite, Kind, Lock};
use crate::names::{Names, without_arguments};
use crate::symbols::{Part, Symbols};

/// Gives each lock its label. `locks` are in the order in which they were met.
pub(super) fn label(locks: &mut [Lock], call_sites: &[CallSite], maps: &Maps, symbols: &mut Symbols) {
    let names = Names::of(call_sites);
    let mut part = |lock: &Lock| {
        let is_named = lock.name.as_ref().is_some_and(|name| !name.is_empty());
        let mut part = (!is_named).then(|| symbols.part(maps, lock.address)).flatten()?;
        part.variable = without_arguments(&part.variable);
        Some(part)
    };
    let parts: Vec<Option<(Part, Kind)>> = locks.iter().map(|lock| Some((part(lock)?, lock.kind))).collect();
    let elements = elements(&parts);
    let mut counts: HashMap<(String, Kind), u32> = HashMap::new();
    for (index, lock) in locks.iter_mut().enumerate() {
        lock.label = match (&parts[index], elements.get(&index)) {
            (Some((part, _)), Some(number)) => format!("{}[{number}]", part.variable),
            (Some((part, _)), None) => part.label(),
            (None, _) => base(lock, &names),
        };
        *counts.entry((lock.label.clone(), lock.kind)).or_default() += 1;
    }
    let mut numbers: HashMap<(String, Kind), u32> = HashMap::new();
    for lock in locks {
        let key = (lock.label.clone(), lock.kind);
        if counts.get(&key).is_some_and(|count| *count > 1) {
            let number = numbers.entry(key).or_default();
            *number += 1;
            lock.label = format!("{} #{number}", lock.label);
        }
    }
}

/// Of a lock that is no variable.
fn base(lock: &Lock, names: &Names<'_>) -> String {
    if let Some(name) = lock.name.as_ref().filter(|name| !name.is_empty()) {
        return name.clone();
    }
    let noun = lock.kind.noun();
    match lock.user() {
        Some(call_site) if lock.is_created => format!("{noun} of {}", names.label_without_wrapper(call_site)),
        Some(call_site) => format!("{noun} in {}", names.label_without_wrapper(call_site)),
        None => format!("{noun} at {:#x}", lock.address),
    }
}
