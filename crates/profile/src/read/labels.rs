//! Names of locks.
//!
//! The name that the program gave them; otherwise what they are [known](crate::known_locks) as; otherwise
//! their variable; otherwise the function that created or first used them. Locks with equal names are
//! numbered in the order of their records.

use std::collections::HashMap;

use super::Maps;
use super::arrays::elements;
use crate::known_locks::{Known, known};
use crate::model::{CallSite, Kind, Lock};
use crate::names::{Names, without_arguments};
use crate::symbols::{Part, Symbols};

/// Gives each lock its label. `locks` are in the order in which they were met; `snapshots` has the number of
/// the snapshot of the maps in which each was met.
pub(super) fn label(
    locks: &mut [Lock],
    snapshots: &HashMap<u32, u32>,
    call_sites: &[CallSite],
    maps: &Maps,
    symbols: &mut Symbols,
) {
    let names = Names::of(call_sites);
    let mut part = |lock: &Lock| {
        let is_named = lock.name.as_ref().is_some_and(|name| !name.is_empty());
        let number = snapshots.get(&lock.id).copied().unwrap_or(u32::MAX);
        let is_one = !is_named && !lock.is_several;
        let mut part = is_one.then(|| symbols.part(maps, number, lock.address)).flatten()?;
        part.variable = without_arguments(&part.variable);
        Some(part)
    };
    let parts: Vec<Option<(Part, Kind)>> = locks.iter().map(|lock| Some((part(lock)?, lock.kind))).collect();
    // The sizes of other libraries' locks are not known.
    let is_libcs = |at: &usize| locks[*at].type_name.is_none();
    let arrays: Vec<Option<(Part, Kind)>> =
        parts.iter().enumerate().map(|(at, part)| part.clone().filter(|_| is_libcs(&at))).collect();
    let elements = elements(&arrays);
    let known: Vec<Option<&Known>> = locks
        .iter()
        .zip(&parts)
        .map(|(lock, part)| {
            let is_named = lock.name.as_ref().is_some_and(|name| !name.is_empty());
            known(lock, part.as_ref().map(|(part, _)| part), call_sites).filter(|_| !is_named)
        })
        .collect();
    // Its place among the locks of its kind in the same variable.
    let place = |index: usize| {
        let (part, kind) = parts[index].as_ref()?;
        let is_before = |other: &&Option<(Part, Kind)>| {
            other.as_ref().is_some_and(|(other, other_kind)| {
                (&other.variable, &other.module, other_kind) == (&part.variable, &part.module, kind)
                    && other.offset < part.offset
            })
        };
        Some(parts.iter().filter(is_before).count())
    };
    let mut counts: HashMap<(String, Kind), u32> = HashMap::new();
    for (index, lock) in locks.iter_mut().enumerate() {
        lock.label = match (&parts[index], elements.get(&index)) {
            _ if known[index].is_some() => {
                known[index].map_or("", |known| known.name(place(index).unwrap_or(0))).to_owned()
            }
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
    let noun = lock.noun();
    match lock.user() {
        Some(call_site) if lock.is_created => format!("{noun} of {}", names.label_without_wrapper(call_site)),
        Some(call_site) => format!("{noun} in {}", names.label_without_wrapper(call_site)),
        None => format!("{noun} at {:#x}", lock.address),
    }
}
