//! Locks by address. An object that is destroyed, or created again at the same address, is another lock from then on.
//!
//! A table of numbers of records, open addressing, changed by compare-and-swap: nobody waits here for a thread that does not
//! run, as it would behind a lock when 200 threads that were just started meet their first one.
//!
//! **R1, at most one slot has records of an address.** Everybody who adds one goes along the same chain, and takes its first
//! slot that is empty or has that address. A slot that is not empty never gets empty and keeps its address, so who loses the
//! exchange finds what the winner wrote by looking at the same slot again.
//!
//! **R2, at most one record of an address lives.** It is the one in that slot: another takes its place only once it is
//! destroyed.
//!
//! **R3, the table has room.** Each slot has had a record of its own, and there are half as many records as slots.
//!
//! | op                      | order   | pairs with            | because                                                      |
//! |-------------------------|---------|-----------------------|--------------------------------------------------------------|
//! | exchange of a slot      | AcqRel  | look at a slot        | who has the number reads the record; and the loser does, too |
//! | look at a slot          | Acquire | exchange              | as above                                                     |
//! | `kind`, set             | Release | readers of the file   | it is set last: who sees it sees the record                  |
//! | `destroyed`, set        | Release | readers of the file   | a profile that is read meanwhile sees what was counted       |
//! | `destroyed`, look       | Relaxed |                       | who uses a lock that is being destroyed does so at its risk  |

use core::ptr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use spinpark_linux::raw;

use super::side::LOCK_SLOTS;
use super::Recorder;
use crate::format::{Kind, Lock, RegionId, NONE};

/// A chain that is longer than this is a table that is full.
const LONGEST_CHAIN: usize = 256;

fn chain(address: usize) -> impl Iterator<Item = usize> {
    let start = (address as u64 >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    (0..LONGEST_CHAIN).map(move |step| (start as usize + step) % LOCK_SLOTS)
}

/// What a slot says about an address.
enum Look<'a> {
    /// Its living lock.
    Lives(u32, &'a Lock),
    /// Nothing yet, or a lock that was destroyed.
    Free,
    /// The slot is another address's.
    Other,
}

impl Recorder {
    /// The record with a number that a slot has.
    fn lock_record(&self, number: u32) -> &Lock {
        // SAFETY: a slot has the number of a record that was claimed and written.
        unsafe { &*self.file.at::<Lock>(RegionId::Locks, number) }
    }

    fn look(&self, found: u32, address: usize) -> Look<'_> {
        let Some(number) = found.checked_sub(1) else { return Look::Free };
        let lock = self.lock_record(number);
        match (lock.address == address as u64, lock.destroyed.load(Relaxed)) {
            (false, _) => Look::Other,
            (true, 0) => Look::Lives(number, lock),
            (true, _) => Look::Free,
        }
    }

    /// The living lock at `address`, if it has been met.
    pub(crate) fn find_lock(&self, address: usize) -> Option<(u32, &Lock)> {
        let side = self.side.get()?;
        for slot in chain(address) {
            match self.look(side.locks[slot].load(Acquire), address) {
                Look::Lives(number, lock) => return Some((number, lock)),
                Look::Free => return None,
                Look::Other => {}
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
        let is_it = |lock: &Lock| lock.kind.load(Relaxed) == kind as u32;
        match self.find_lock(address) {
            Some((number, lock)) if is_it(lock) => return Some((number, lock)),
            Some((_, other)) => other.destroyed.store(1, Release),
            None => {}
        }
        let side = self.side.get()?;
        let stack = side.created(address).map_or_else(|| (stack(), false), |stack| (stack, true));
        let (number, new) = self.write_lock(address, kind, stack)?;
        for slot in chain(address).map(|slot| &side.locks[slot]) {
            let mut found = slot.load(Acquire);
            loop {
                match self.look(found, address) {
                    Look::Lives(number, lock) if is_it(lock) => {
                        // Somebody else met it at the same time: what was written here is no lock.
                        new.kind.store(0, Relaxed);
                        return Some((number, lock));
                    }
                    Look::Lives(_, other) => other.destroyed.store(1, Release),
                    Look::Other => break,
                    Look::Free => match slot.compare_exchange(found, number + 1, AcqRel, Acquire) {
                        Ok(_) => return Some((number, new)),
                        Err(other) => found = other,
                    },
                }
            }
        }
        new.kind.store(0, Relaxed);
        self.file.dropped(RegionId::Locks);
        None
    }

    /// Writes a record that no slot has yet; the stack is that of who created the lock, or of who is the first to use it.
    fn write_lock(
        &self,
        address: usize,
        kind: Kind,
        (stack, is_created): (u32, bool),
    ) -> Option<(u32, &Lock)> {
        let (number, record) = self.file.claim::<Lock>(RegionId::Locks)?;
        let lock = Lock {
            kind: AtomicU32::new(0),
            destroyed: AtomicU32::new(0),
            address: address as u64,
            since: self.ticks.now(),
            stack: AtomicU32::new(stack),
            is_created: u32::from(is_created),
            thread: raw::thread_id(),
            name: AtomicU32::new(NONE),
            scratch: Default::default(),
        };
        // SAFETY: claimed for this thread; a whole record is there.
        unsafe { ptr::write(record, lock) };
        // SAFETY: written just now, and never moved.
        let lock = unsafe { &*record };
        lock.kind.store(kind as u32, Release);
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

#[cfg(test)]
mod tests {
    extern crate std;

    use core::sync::atomic::AtomicUsize;
    use std::collections::HashMap;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::sync::Barrier;
    use std::vec::Vec;

    use super::*;
    use crate::format::{Detail, Locks};
    use crate::recorder::Settings;

    const THREADS: usize = 8;
    const ADDRESSES: usize = 16;
    const ROUNDS: usize = 300;

    /// Addresses whose chains start at one slot.
    fn neighbours() -> Vec<usize> {
        let start = |address| chain(address).next();
        (1..).map(|number| number * 8).filter(|address| start(*address) == start(8)).take(ADDRESSES).collect()
    }

    fn started() -> &'static Recorder {
        let recorder: &Recorder = std::boxed::Box::leak(std::boxed::Box::new(Recorder::new()));
        let directory = tempfile::tempdir().expect("a directory");
        let path = CString::new(directory.path().as_os_str().as_bytes()).expect("a path");
        recorder.prepare();
        let settings =
            Settings { directory: &path, detail: Detail::Full, locks: Locks::Glibc, sample_every: 1 };
        recorder.start(&settings).expect("a recording");
        recorder
    }

    /// Threads that meet the same locks at once, and destroy them: whoever meets one has the same number (R1, R2), and
    /// nobody is sent away.
    #[test]
    fn a_lock_has_one_number() {
        let recorder = started();
        let addresses = neighbours();
        let (round, turn) = (Barrier::new(THREADS), AtomicUsize::new(0));
        let meet = |thread: usize| {
            let mut met = Vec::new();
            for number in 0..ROUNDS {
                round.wait();
                // Each in another order.
                for step in 0..ADDRESSES {
                    let address = addresses[(step * (2 * thread + 1) + number) % ADDRESSES];
                    let (lock, record) = recorder.meet(address, Kind::Mutex, || NONE).expect("room");
                    assert_eq!(record.address, address as u64);
                    met.push(((number, address), lock));
                }
                round.wait();
                if turn.fetch_add(1, Relaxed) % THREADS == 0 {
                    addresses.iter().skip(number % 2).step_by(2).for_each(|it| recorder.destroyed(*it));
                }
            }
            met
        };
        let met: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn({
                        let meet = &meet;
                        move || meet(thread)
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("its end")).collect()
        });
        let mut numbers: HashMap<_, u32> = HashMap::new();
        for (when, lock) in met {
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
        assert_eq!(header.regions[RegionId::Locks as usize].dropped.load(Relaxed), 0);
    }

    /// One of another kind at the same address is another lock; the first one is gone.
    #[test]
    fn memory_that_is_used_again_has_another_lock() {
        let recorder = started();
        let meet = |kind| recorder.meet(64, kind, || NONE).expect("room").0;
        let mutex = meet(Kind::Mutex);
        let rwlock = meet(Kind::RwLock);
        assert_ne!(mutex, rwlock);
        assert_eq!((meet(Kind::RwLock), recorder.find_lock(64).expect("it").0), (rwlock, rwlock));
        assert_eq!(recorder.lock_record(mutex).destroyed.load(Relaxed), 1);
        recorder.destroyed(64);
        assert!(recorder.find_lock(64).is_none());
        assert!(![mutex, rwlock].contains(&meet(Kind::Mutex)));
    }
}
