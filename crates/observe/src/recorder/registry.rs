//! Locks by address. An object that is destroyed, or created again at the same address, is another lock from then on.
//!
//! Looked up without a lock; changed under one, so that no address has two numbers. A slot whose lock is destroyed is used
//! again, so chains stay short.

use core::ptr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use spinpark_linux::raw;

use super::lock::Spin;
use super::side::{Side, LOCK_SLOTS};
use super::Recorder;
use crate::format::{Kind, Lock, RegionId, NONE};

/// The registry's lock. Its own type, since the memory of the side arrays is replaced in a forked child.
pub(crate) struct Registry {
    pub(crate) lock: Spin,
}

/// What is asked when a lock is met for the first time.
struct Met {
    address: usize,
    kind: Kind,
    stack: u32,
}

fn chain(address: usize) -> impl Iterator<Item = usize> {
    let start = (address as u64 >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    // A chain that is longer than this is a table that is full.
    (0..256).map(move |step| (start as usize + step) % LOCK_SLOTS)
}

impl Recorder {
    /// The record with a number that a slot has.
    fn lock_record(&self, number: u32) -> &Lock {
        // SAFETY: a slot has the number of a record that was claimed and written.
        unsafe { &*self.file.at::<Lock>(RegionId::Locks, number) }
    }

    /// The living lock at `address`, if it has been met.
    pub(crate) fn find_lock(&self, address: usize) -> Option<(u32, &Lock)> {
        let side = self.side.get()?;
        for slot in chain(address) {
            let number = side.locks[slot].load(Acquire).checked_sub(1)?;
            let lock = self.lock_record(number);
            if lock.address == address as u64 && lock.destroyed.load(Relaxed) == 0 {
                return Some((number, lock));
            }
        }
        None
    }

    /// The living lock of a kind at `address`, met now or before; `None` if there is no room. One of another kind that was
    /// there is gone: its memory was used again, and nobody destroyed it.
    pub(crate) fn meet(
        &self,
        address: usize,
        kind: Kind,
        stack: impl FnOnce() -> u32,
    ) -> Option<(u32, &Lock)> {
        let find = || self.find_lock(address).filter(|(_, lock)| lock.kind.load(Relaxed) == kind as u32);
        if let Some(found) = find() {
            return Some(found);
        }
        let side = self.side.get()?;
        let met = Met { address, kind, stack: stack() }; // before the lock: it may capture a stack
        let Some(found) = side.registry.lock.with(|| {
            if let Some(found) = find() {
                return Some(found);
            }
            if let Some((_, other)) = self.find_lock(address) {
                other.destroyed.store(1, Release);
            }
            self.add_lock(side, &met)
        }) else {
            self.file.dropped(RegionId::Locks);
            return None;
        };
        found
    }

    fn add_lock(&self, side: &Side, met: &Met) -> Option<(u32, &Lock)> {
        let is_free = |slot: &usize| match side.locks[*slot].load(Relaxed).checked_sub(1) {
            None => true,
            Some(number) => self.lock_record(number).destroyed.load(Relaxed) != 0,
        };
        let slot = chain(met.address).find(is_free)?;
        let (number, record) = self.file.claim::<Lock>(RegionId::Locks)?;
        let created = side.created(met.address);
        let lock = Lock {
            kind: AtomicU32::new(0),
            destroyed: AtomicU32::new(0),
            address: met.address as u64,
            since: self.ticks.now(),
            stack: AtomicU32::new(created.unwrap_or(met.stack)),
            is_created: u32::from(created.is_some()),
            thread: raw::thread_id(),
            name: AtomicU32::new(NONE),
            scratch: Default::default(),
        };
        // SAFETY: claimed for this thread; a whole record is there.
        unsafe { ptr::write(record, lock) };
        // SAFETY: written just now, and never moved.
        let lock = unsafe { &*record };
        lock.kind.store(met.kind as u32, Release);
        side.locks[slot].store(number + 1, Release);
        Some((number, lock))
    }

    /// The object at `address` is created now, by `stack`: what was there is gone.
    pub fn created(&self, address: usize, stack: u32) {
        self.destroyed(address);
        if let Some(side) = self.side.get().filter(|_| stack != NONE) {
            side.note_created(address, stack);
        }
    }

    /// The object at `address` is destroyed.
    pub fn destroyed(&self, address: usize) {
        if let Some((_, lock)) = self.find_lock(address) {
            lock.destroyed.store(1, Release);
        }
        if let Some(side) = self.side.get() {
            side.forget_created(address);
        }
    }
}
