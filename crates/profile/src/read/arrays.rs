//! Locks that are elements of one array: `shard[2]` instead of `shard+0x78`.
//!
//! Without types, the size of the variable and the distances between its locks say how long an element is, as
//! a rule.

use std::collections::BTreeMap;

use crate::model::Kind;
use crate::symbols::Part;

/// This many locks at equal distances are an array, even if its elements could be smaller.
const MANY: usize = 8;

/// The numbers of the elements: by the index of each lock's `Part`. None of what may not be an element.
pub(super) fn elements(parts: &[Option<(Part, Kind)>]) -> BTreeMap<usize, u64> {
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
