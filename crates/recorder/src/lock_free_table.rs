//! A table of numbers by key, in which no thread waits for another: open addressing, changed by
//! compare-and-swap.
//!
//! Each slot has the number of a record; the caller knows its key and whether it lives. 0 is an empty slot. A
//! lock would do as well if its owner always ran. But when 200 new threads all look for their first key, the
//! owner may be off its CPU for some time slices, and these threads would wait for the recorder.
//!
//! # States of a slot
//!
//! | slot                        | set by                              | next                                      |
//! |-----------------------------|-------------------------------------|-------------------------------------------|
//! | empty                       | at the start                        | any key's, by [`claim`]                   |
//! | a key's, its record lives   | [`claim`]                           | the record is retired, by the caller      |
//! | a key's, its record is retired | the caller, in the record        | the same key's next record, by [`claim`]  |
//!
//! # Invariants
//!
//! - **T1, at most one slot is a key's.** A thread that adds a record of a key goes along the same chain as
//!   any other, to its first slot that is empty or that key's. A slot that is not empty never gets empty, and
//!   keeps its key: so a thread that loses the exchange finds what the winner wrote by looking at the same
//!   slot again, and not by following the chain.
//! - **T2, at most one record of a key lives.** It is the one in that slot: another takes its place only once
//!   it is retired.
//! - **T3, one thread may retire a record while another replaces it.** The exchange names the number that was
//!   read, so a record that another thread has put there meanwhile stays.
//!
//! # Orderings
//!
//! | op                   | order   | pairs with | because                                                            |
//! |----------------------|---------|------------|--------------------------------------------------------------------|
//! | read of a slot       | Acquire | exchange   | a thread that has a number reads its record                        |
//! | exchange, done       | Release | read       | the record is written before its number is there                   |
//! | exchange, failed     | Acquire | exchange   | the loser reads the winner's record                                |

use spinpark_platform::AtomicU32;
use spinpark_platform::Ordering::{Acquire, Release};

/// What a number that is not 0 means to the thread that looks for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotMatch<T> {
    /// The key's living record.
    Lives(T),
    /// A record of the key that is retired: its slot is to be used again.
    Retired,
    /// The record has another key.
    Other,
}

/// The result of adding a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed<T> {
    /// It is in the table.
    Added,
    /// The key had a living record, which another thread added just before.
    Lives(T),
    /// There is no slot for it in the chain.
    Full,
}

/// The living record of a key, whose slots may be those of `chain`.
#[inline]
pub fn find<'a, A: AtomicU32, T>(
    chain: impl Iterator<Item = &'a A>,
    matches: impl Fn(u32) -> SlotMatch<T>,
) -> Option<T> {
    for slot in chain {
        match slot.load(Acquire) {
            0 => return None,
            number => match matches(number) {
                SlotMatch::Lives(record) => return Some(record),
                SlotMatch::Retired => return None,
                SlotMatch::Other => {}
            },
        }
    }
    None
}

/// Adds `number`, not 0, whose record is written and was in no slot before, unless its key has a living
/// record.
pub fn claim<'a, A: AtomicU32, T>(
    chain: impl Iterator<Item = &'a A>,
    matches: impl Fn(u32) -> SlotMatch<T>,
    number: u32,
) -> Claimed<T> {
    for slot in chain {
        let mut found = slot.load(Acquire);
        loop {
            match if found == 0 { SlotMatch::Retired } else { matches(found) } {
                SlotMatch::Lives(record) => return Claimed::Lives(record),
                SlotMatch::Other => break,
                // T3.
                SlotMatch::Retired => match slot.compare_exchange(found, number, Release, Acquire) {
                    Ok(_) => return Claimed::Added,
                    // T1: this slot may be the key's now.
                    Err(other) => found = other,
                },
            }
        }
    }
    Claimed::Full
}
