//! Names of locks.
//!
//! The name that the program gave them; otherwise what they are [known](crate::known_locks) as; otherwise
//! their variable; otherwise the function that created or first used them. Locks with equal names are
//! numbered in the order of their records.
//!
//! Locks that are elements of one array are `shard[2]` instead of `shard+0x78`. Without types, the size of
//! the variable and the distances between its locks say how long an element is, as a rule.

use std::collections::{BTreeMap, HashMap};

use super::Maps;
use crate::function_names::without_arguments;
use crate::known_locks::{Known, known};
use crate::model::{CallSite, Kind, Lock};
use crate::names::{Names, uses};
use crate::symbols::{Part, Symbols};

/// Gives each lock its label. `locks` are in the order in which they were first used; `snapshots` has the
/// number of the snapshot of the maps of each first use.
pub(super) fn label(
    locks: &mut [Lock],
    snapshots: &HashMap<u32, u32>,
    call_sites: &[CallSite],
    maps: &Maps,
    symbols: &mut Symbols,
) {
    let names = Names::of_uses(call_sites, uses(locks));
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
    // Where types are known, nothing is to be inferred.
    let is_inferred = |part: &(Part, Kind)| part.0.member.is_none();
    let arrays: Vec<Option<(Part, Kind)>> = arrays.into_iter().map(|part| part.filter(is_inferred)).collect();
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
    let made: BTreeMap<u64, usize> =
        (0..locks.len()).filter(|at| locks[*at].is_made).map(|at| (locks[at].address, at)).collect();
    let mut counts: HashMap<(String, Kind), u32> = HashMap::new();
    for (index, lock) in locks.iter_mut().enumerate() {
        lock.place = parts[index].as_ref().map(|(part, _)| part.place());
        lock.label = match (&parts[index], elements.get(&index)) {
            _ if known[index].is_some() => {
                known[index].map_or("", |known| known.name(place(index).unwrap_or(0))).to_owned()
            }
            // The lock that the program made of it has the variable's name.
            (Some((part, _)), _) if !lock.is_made && made.contains_key(&lock.address) => {
                format!("{}'s mutex", part.variable)
            }
            (Some((part, _)), _) if part.member.is_some() && !lock.is_made => part.label(),
            (Some((part, _)), Some(number)) => format!("{}[{number}]", part.variable),
            // The whole of it is the lock, as a rule.
            (Some((part, _)), None) if lock.is_made => part.variable.clone(),
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

/// This many locks at equal distances are an array, even if its elements could be smaller.
const MANY: usize = 8;

/// The numbers of the elements: by the index of each lock's `Part`. None of what may not be an element.
fn elements(parts: &[Option<(Part, Kind)>]) -> BTreeMap<usize, u64> {
    type Locks = Vec<(usize, u64)>;
    let mut variables: BTreeMap<(&str, u64, Kind), Locks> = BTreeMap::new();
    for (index, part) in parts.iter().enumerate() {
        if let Some((part, kind)) = part {
            let locks = variables.entry((&part.variable, part.bytes, *kind)).or_default();
            locks.push((index, part.offset));
        }
    }
    let mut found = BTreeMap::new();
    for ((_, bytes, kind), locks) in variables {
        let offsets: Vec<u64> = locks.iter().map(|(_, offset)| *offset).collect();
        if let Some(length) = element(&offsets, bytes, bytes_of(kind)) {
            found.extend(locks.iter().map(|(index, offset)| (*index, offset / length)));
        }
    }
    found
}

/// How long an element of an array of `bytes` is that has locks at these places. None if that is not certain.
fn element(offsets: &[u64], bytes: u64, lock: u64) -> Option<u64> {
    let first = offsets.iter().min()?;
    let length = offsets.iter().fold(0, |length, offset| gcd(length, offset - first));
    let fits =
        |length: u64| length >= lock && bytes.is_multiple_of(length) && first % length + lock <= length;
    if length == 0 || !fits(length) {
        return None;
    }
    // Of a few locks that are far from each other the distances may be several elements.
    let mut different = offsets.to_vec();
    different.sort_unstable();
    different.dedup();
    let are_most = different.len() >= MANY && 2 * different.len() as u64 > bytes / length;
    let may_be_shorter =
        (2..=length / lock).any(|parts| length.is_multiple_of(8 * parts) && fits(length / parts));
    (are_most || !may_be_shorter).then_some(length)
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Of glibc on x86-64.
fn bytes_of(kind: Kind) -> u64 {
    match kind {
        Kind::RwLock => 56,
        Kind::Condvar => 48,
        _ => 40,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_arrays() {
        let all: Vec<u64> = (0..16).map(|number| 8 + 56 * number).collect();
        assert_eq!(element(&all, 16 * 56, 40), Some(56));
        assert_eq!(element(&all[2..5], 16 * 56, 40), Some(56), "nothing shorter fits");
        assert_eq!(element(&[3 * 40, 131 * 40, 4 * 40], 256 * 40, 40), Some(40));
        assert_eq!(element(&[0, 256], 16 * 64, 40), None, "four elements of 64, or one of 256");
        assert_eq!(element(&[0, 64, 128], 4 * 64, 40), Some(64));
        let memcached = [3, 67, 131].map(|number| number * 40);
        assert_eq!(element(&memcached, 256 * 40, 40), None, "256 elements of 40, or 4 of 2560");
        let large: Vec<u64> = (0..9).map(|number| 128 * number).collect();
        assert_eq!(element(&large, 16 * 128, 40), Some(128));
        assert_eq!(element(&[0, 40], 120, 56), None, "locks in each other");
        assert_eq!(element(&[0, 48], 100, 40), None, "a struct");
        assert_eq!(element(&[8], 64, 40), None, "one lock");
    }
}
