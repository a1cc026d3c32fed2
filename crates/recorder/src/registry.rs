//! Locks by address. An object that is destroyed, or created again at the same address, is another lock from
//! then on.
//!
//! The table is one of [`crate::lock_free_table`]: no thread waits here for one that does not run. It cannot
//! be full before the file is: there are half as many records as slots, and each slot had one of its own.
//!
//! An object is found by its *key*, its address. Where each stack that waits has a record of its own
//! ([`Kind::is_by_stack`]), the number of the stack stands above it.
//!
//! A record gets its kind, by which readers of the file see it, once it is in the table: from the thread that
//! put it there, or from one that finds it earlier. A thread that lost the race keeps its record for its next
//! lock.

use core::ptr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, Release};

use spinpark_linux::raw;

use super::shared_tables::{SharedTables, LOCK_SLOTS};
use super::thread_state::ThreadState;
use super::Recorder;
use crate::format::{Kind, Lock, RegionId, NONE, REGIONS};
use crate::lock_free_table::{self, Claimed, SlotMatch};

/// A chain that is longer than this is a table that is full.
const LONGEST_CHAIN: usize = 256;

/// Where `scratch` has the kind, from the beginning.
const KIND: usize = 0;
/// Where `scratch` has whether the lock is in a module.
const IN_MODULE: usize = 1;

/// Bits that addresses have in a key; those of words have one more than others ([`word`](super::wake::word)).
const ADDRESS_BITS: u32 = 48;
const _: () = assert!(REGIONS[RegionId::Stacks as usize].0 < 1 << (usize::BITS - ADDRESS_BITS));

const ADDRESS: usize = (1 << ADDRESS_BITS) - 1;

impl Lock {
    /// The address by which a [`LockCall`](super::site_cache::LockCall) has this object.
    pub(super) fn call_address(&self) -> usize {
        self.key as usize & ADDRESS
    }
}

/// The key of the object at an address, for this stack.
#[inline(always)]
pub(super) fn key(address: usize, kind: Kind, stack: u32) -> usize {
    match kind.is_by_stack() {
        // Of addresses that are longer, names may be wrong.
        true => address & ADDRESS | (stack.wrapping_add(1) as usize) << ADDRESS_BITS,
        false => address,
    }
}

/// Where the object with this key is.
fn address_of(key: usize, kind: Kind) -> usize {
    match kind {
        Kind::Futex | Kind::Once | Kind::Spin => super::wake::address_of(key & ADDRESS),
        _ if kind.is_by_stack() => key & ADDRESS,
        _ => key,
    }
}

/// Lets readers of the file see a lock that is in the table.
fn show(lock: &Lock) {
    lock.kind.store(lock.scratch[KIND].load(Relaxed), Release); // they have the rest of the record by it
}

fn start(address: usize) -> usize {
    ((address as u64 >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % LOCK_SLOTS
}

fn chain(shared: &SharedTables, address: usize) -> impl Iterator<Item = &AtomicU32> {
    (0..LONGEST_CHAIN).map(move |step| &shared.locks[(start(address) + step) % LOCK_SLOTS])
}

impl Recorder {
    /// The record with a number that a slot has.
    fn lock_record(&self, number: u32) -> &Lock {
        // SAFETY: a slot has the number of a record that was claimed and written.
        unsafe { &*self.file.at::<Lock>(RegionId::Locks, number) }
    }

    /// What a slot means for a key.
    #[inline(always)]
    fn matches(&self, found: u32, key: usize) -> SlotMatch<(u32, &Lock)> {
        let number = found - 1;
        let lock = self.lock_record(number);
        // Relaxed: to use a lock while it is being destroyed is the program's error.
        match (lock.key == key as u64, lock.destroyed.load(Relaxed)) {
            (false, _) => SlotMatch::Other,
            (true, 0) => {
                if lock.kind.load(Relaxed) == 0 {
                    show(lock);
                }
                SlotMatch::Lives((number, lock))
            }
            (true, _) => SlotMatch::Retired,
        }
    }

    /// The living lock at `address`, if it is registered.
    pub(crate) fn find_lock(&self, address: usize) -> Option<(u32, &Lock)> {
        lock_free_table::find(chain(self.shared.get()?, address), |found| self.matches(found, address))
    }

    /// The living lock of a kind with this key, registered now or before; `None` if the file is full. One of
    /// another kind that was there is gone: its memory was used again without a destruction.
    pub(crate) fn find_or_register(
        &self,
        own: &ThreadState,
        key: usize,
        kind: Kind,
        stack: impl FnOnce() -> u32,
    ) -> Option<(u32, &Lock)> {
        let matches = |found| match self.matches(found, key) {
            SlotMatch::Lives((_, lock)) if lock.scratch[KIND].load(Relaxed) != kind as u32 => {
                lock.destroyed.store(1, Relaxed);
                SlotMatch::Retired
            }
            seen => seen,
        };
        let shared = self.shared.get()?;
        if let Some(found) = lock_free_table::find(chain(shared, key), matches) {
            return Some(found);
        }
        if kind.is_by_stack() && self.has_many_locks() {
            self.file.dropped(RegionId::Locks);
            return None;
        }
        let stack = shared.created(key).map_or_else(|| (stack(), false), |stack| (stack, true));
        let (number, new) = self.write_lock(own, key, kind, stack)?;
        let claimed = lock_free_table::claim(chain(shared, key), matches, number + 1);
        if !matches!(claimed, Claimed::Added) {
            own.spare_lock().set(number + 1);
        }
        match claimed {
            Claimed::Added => {
                show(new);
                Some((number, new))
            }
            Claimed::Lives(other) => Some(other),
            Claimed::Full => {
                self.file.dropped(RegionId::Locks);
                None
            }
        }
    }

    /// Whether half of the records are used: the rest is for locks, since the end of objects with a record
    /// for each stack is not seen.
    fn has_many_locks(&self) -> bool {
        let region = self.file.header().map(|header| &header.regions[RegionId::Locks as usize]);
        region.is_some_and(|region| region.used.load(Relaxed) >= region.capacity / 2)
    }

    /// Writes a record that no slot has yet; the stack is that of the lock's creator, or of its first user.
    fn write_lock(
        &self,
        own: &ThreadState,
        key: usize,
        kind: Kind,
        (stack, is_created): (u32, bool),
    ) -> Option<(u32, &Lock)> {
        let (number, record) = match own.spare_lock().take() {
            0 => self.file.claim::<Lock>(RegionId::Locks)?,
            spare => (spare - 1, self.file.at(RegionId::Locks, spare - 1)),
        };
        let lock = Lock {
            kind: AtomicU32::new(0),
            destroyed: AtomicU32::new(0),
            address: address_of(key, kind) as u64,
            key: key as u64,
            since: self.ticks.now(),
            stack: AtomicU32::new(stack),
            is_created: u32::from(is_created),
            thread: raw::thread_id(),
            name: AtomicU32::new(NONE),
            mutex: Default::default(),
            scratch: Default::default(),
        };
        lock.scratch[KIND].store(kind as u32, Relaxed);
        lock.scratch[IN_MODULE].store(u32::from(self.unwinder.module(lock.address).is_some()), Relaxed);
        // SAFETY: this thread's alone; a whole record is there.
        unsafe { ptr::write(record, lock) };
        // SAFETY: written just now, and never moved.
        Some((number, unsafe { &*record }))
    }

    /// The lock with this number is gone if it was in a module, and is in none now.
    pub(crate) fn forget_unloaded(&self, number: u32, is_in_module: impl FnOnce(u64) -> bool) {
        let lock = self.lock_record(number);
        if lock.scratch[IN_MODULE].load(Relaxed) != 0 && !is_in_module(lock.address) {
            lock.destroyed.store(1, Relaxed);
        }
    }

    /// The object at `address` is created now, by `stack`: what was there is gone.
    pub fn created(&self, address: usize, stack: u32) {
        self.destroyed(address);
        if let Some(shared) = self.shared.get().filter(|_| stack != NONE) {
            shared.note_created(address, stack);
        }
    }

    /// The object at `address` is destroyed.
    pub fn destroyed(&self, address: usize) {
        if let Some((_, lock)) = self.find_lock(address) {
            lock.destroyed.store(1, Relaxed);
        }
        if let Some(shared) = self.shared.get() {
            shared.forget_created(address);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::sync::atomic::AtomicUsize;
    use std::collections::HashMap;
    use std::sync::Barrier;
    use std::vec::Vec;

    use super::*;
    use crate::format::Detail;
    use crate::test_recorder::started;

    const THREADS: usize = 8;
    const ADDRESSES: usize = 16;
    const ROUNDS: usize = 300;

    /// Addresses whose chains start at one slot.
    fn neighbours() -> Vec<usize> {
        (1..).map(|number| number * 8).filter(|address| start(*address) == start(8)).take(ADDRESSES).collect()
    }

    /// Threads that register the same locks at once, and destroy them: all that register one have the same
    /// number (T1, T2), and none is sent away.
    #[test]
    fn a_lock_has_one_number() {
        let recorder = started(Detail::Full);
        let addresses = neighbours();
        let (round, turn) = (Barrier::new(THREADS), AtomicUsize::new(0));
        let find_or_register = |thread: usize| {
            let mut found = Vec::new();
            let own = recorder.enter().expect("a table");
            for number in 0..ROUNDS {
                round.wait();
                // Each in another order.
                for step in 0..ADDRESSES {
                    let address = addresses[(step * (2 * thread + 1) + number) % ADDRESSES];
                    let (lock, record) =
                        recorder.find_or_register(own, address, Kind::Mutex, || NONE).expect("room");
                    assert_eq!(record.address, address as u64);
                    found.push(((number, address), lock));
                }
                round.wait();
                if turn.fetch_add(1, Relaxed) % THREADS == 0 {
                    addresses.iter().skip(number % 2).step_by(2).for_each(|it| recorder.destroyed(*it));
                }
            }
            found
        };
        let found: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn({
                        let find_or_register = &find_or_register;
                        move || find_or_register(thread)
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("its end")).collect()
        });
        let mut numbers: HashMap<_, u32> = HashMap::new();
        for (when, lock) in found {
            assert_eq!(*numbers.entry(when).or_insert(lock), lock, "{when:?}");
        }
        let before = |(round, address): &(usize, usize)| round.checked_sub(1).map(|round| (round, *address));
        for (when, lock) in &numbers {
            let Some(earlier) = before(when) else { continue };
            let at = addresses.iter().position(|address| *address == when.1).expect("one of them");
            // Every other one was destroyed in between.
            let is_new = at % 2 == earlier.0 % 2;
            assert_eq!(numbers[&earlier] != *lock, is_new, "{when:?}");
        }
        let header = recorder.file.header().expect("a file");
        let region = &header.regions[RegionId::Locks as usize];
        assert_eq!(region.dropped.load(Relaxed), 0);
        // A thread that was too slow has one record that it did not need, however often.
        let most = ADDRESSES + ROUNDS * ADDRESSES / 2 + THREADS;
        assert!(region.used.load(Relaxed) as usize <= most, "{region:?}");
    }

    /// One of another kind at the same address is another lock; the first one is gone.
    #[test]
    fn memory_that_is_used_again_has_another_lock() {
        let recorder = started(Detail::Full);
        let own = recorder.enter().expect("a table");
        let find_or_register = |kind| recorder.find_or_register(own, 64, kind, || NONE).expect("room").0;
        let mutex = find_or_register(Kind::Mutex);
        let rwlock = find_or_register(Kind::RwLock);
        assert_ne!(mutex, rwlock);
        assert_eq!((find_or_register(Kind::RwLock), recorder.find_lock(64).expect("it").0), (rwlock, rwlock));
        assert_eq!(recorder.lock_record(mutex).destroyed.load(Relaxed), 1);
        recorder.destroyed(64);
        assert!(recorder.find_lock(64).is_none());
        assert!(![mutex, rwlock].contains(&find_or_register(Kind::Mutex)));
    }
}
