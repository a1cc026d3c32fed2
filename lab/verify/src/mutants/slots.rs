//! A table of `spinpark_recorder::lock_free_table` with records, and wrong ways to add to it.

use std::array;

use spinpark_platform::Ordering::{Acquire, Relaxed, Release};
use spinpark_platform::{AtomicU32 as _, Cell as _, Platform};
use spinpark_recorder::lock_free_table::{self, Claimed, SlotMatch};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Nothing: the recorder's own code.
    None,
    /// Nothing, in the copy that has the other errors.
    Copied,
    /// A thread that loses a slot looks at the winner's record without having it (no Acquire in a failed
    /// exchange).
    LosesBlindly,
    /// A thread that loses a slot goes on to the next one (lock_free_table.T1).
    GoesOn,
    /// A retired record's slot is used again for any key (lock_free_table.T1).
    TakesAnyRetired,
    /// A record is put over another one that lives (lock_free_table.T2, lock_free_table.T3).
    Overwrites,
}

struct Record<P: Platform> {
    key: P::Cell<u32>,
    retired: P::AtomicU32,
}

/// All keys have the same chain: the whole table.
pub struct Table<P: Platform, const SLOTS: usize, const RECORDS: usize> {
    slots: [P::AtomicU32; SLOTS],
    records: [Record<P>; RECORDS],
    used: P::AtomicU32,
    error: Error,
}

impl<P: Platform, const SLOTS: usize, const RECORDS: usize> Table<P, SLOTS, RECORDS> {
    /// Empty.
    pub fn new(error: Error) -> Self {
        let record = |_| Record { key: P::Cell::new(0), retired: P::AtomicU32::new(0) };
        Self {
            slots: array::from_fn(|_| P::AtomicU32::new(0)),
            records: array::from_fn(record),
            used: P::AtomicU32::new(0),
            error,
        }
    }

    fn record(&self, number: u32) -> &Record<P> {
        &self.records[number as usize - 1]
    }

    fn matches(&self, number: u32, key: u32) -> SlotMatch<u32> {
        let record = self.record(number);
        // SAFETY: a number is in a slot after its record was written, which is not done again: that is what
        // is checked.
        let is_it = record.key.with(|its| unsafe { *its }) == key;
        match (is_it, record.retired.load(Relaxed)) {
            (false, _) => SlotMatch::Other,
            (true, 0) => SlotMatch::Lives(number),
            (true, _) => SlotMatch::Retired,
        }
    }

    /// The number of the key's living record.
    pub fn find(&self, key: u32) -> Option<u32> {
        if self.error == Error::TakesAnyRetired {
            return self.find_everywhere(key);
        }
        lock_free_table::find(self.slots.iter(), |number| self.matches(number, key))
    }

    /// As [`Table::find`], where a key's records may have several slots.
    fn find_everywhere(&self, key: u32) -> Option<u32> {
        let found = self.slots.iter().map(|slot| slot.load(Acquire)).take_while(|number| *number != 0);
        found.filter(|number| self.matches(*number, key) == SlotMatch::Lives(*number)).last()
    }

    /// The number of the key's living record, found or added.
    pub fn meet(&self, key: u32) -> u32 {
        if let Some(number) = self.find(key) {
            return number;
        }
        let number = self.used.fetch_add(1, Relaxed) + 1;
        // SAFETY: this record is this thread's alone until its number is in a slot.
        self.record(number).key.with_mut(|its| unsafe { *its = key });
        let claimed = match self.error {
            Error::None => {
                lock_free_table::claim(self.slots.iter(), |other| self.matches(other, key), number)
            }
            _ => self.claim_copied(key, number),
        };
        match claimed {
            Claimed::Added => number,
            Claimed::Lives(other) => other,
            Claimed::Full => panic!("there is a slot for every record"),
        }
    }

    /// [`lock_free_table::claim`] with one line wrong, or none.
    fn claim_copied(&self, key: u32, number: u32) -> Claimed<u32> {
        for slot in &self.slots {
            let mut found = slot.load(Acquire);
            loop {
                match if found == 0 { SlotMatch::Retired } else { self.look_to_claim(found, key) } {
                    SlotMatch::Lives(record) => return Claimed::Lives(record),
                    SlotMatch::Other => break,
                    SlotMatch::Retired if self.error == Error::Overwrites => {
                        slot.store(number, Release);
                        return Claimed::Added;
                    }
                    SlotMatch::Retired => {
                        let failed = if self.error == Error::LosesBlindly { Relaxed } else { Acquire };
                        match slot.compare_exchange(found, number, Release, failed) {
                            Ok(_) => return Claimed::Added,
                            Err(_) if self.error == Error::GoesOn => break,
                            Err(other) => found = other,
                        }
                    }
                }
            }
        }
        Claimed::Full
    }

    fn look_to_claim(&self, number: u32, key: u32) -> SlotMatch<u32> {
        match self.matches(number, key) {
            SlotMatch::Other if self.error == Error::TakesAnyRetired => {
                if self.record(number).retired.load(Relaxed) == 0 {
                    SlotMatch::Other
                } else {
                    SlotMatch::Retired
                }
            }
            seen => seen,
        }
    }

    /// Retires the key's living record, if it has one.
    pub fn retire(&self, key: u32) {
        if let Some(number) = self.find(key) {
            self.record(number).retired.store(1, Release);
        }
    }

    /// All threads are done, and were told these numbers for these keys. What is wrong: a number that lives
    /// is what all threads find now, so no key has two.
    pub fn check(&self, told: &[(u32, u32)]) -> Result<(), String> {
        for (key, number) in told {
            if self.record(*number).retired.load(Relaxed) == 0 && self.find(*key) != Some(*number) {
                let found = self.find(*key);
                return Err(format!(
                    "key {key}: a thread was told {number}, which lives; found is {found:?}"
                ));
            }
        }
        Ok(())
    }
}
