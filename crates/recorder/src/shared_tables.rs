//! The recorder's own memory, which is not in the file: tables for lookups, and what threads tell each other.
//!
//! | array       | says                                              | written by                                        |
//! |-------------|---------------------------------------------------|---------------------------------------------------|
//! | `locks`     | address → lock                                    | the first thread that meets it (`registry.rs`)    |
//! | `created`   | address → the stack that created it               | the thread that creates it                        |
//! | `stacks`    | hash → stack                                      | the first thread with that stack                  |
//! | `owners`    | table → the memory of its thread                  | the thread that claims the table                  |
//! | `steps`     | return address → how far the next one is          | a thread that has unwound it                      |
//! | `tables`    | thread id → table                                 | a thread that takes it over, or has looked for it |
//! | `slots`     | lock → what its users tell each other             | see [`Slot`]                                      |
//! | `uncounted` | condition variable → number of waiters that `queue` leaves out | such a waiter                        |
//! | `rings`     | lock → its latest releases to waiters             | the releasing thread, after it (see [`super::releases`]) |
//! | `writers`   | read-write lock → its latest release by a writer  | that writer, before it                            |
//!
//! | in a slot   | says                                              | written by                                        |
//! |-------------|---------------------------------------------------|---------------------------------------------------|
//! | `queue`     | number of waiters                                 | a waiter                                          |
//! | `holder`    | table of the latest thread that waited for it     | that thread                                       |
//! | `handed`    | it was handed over                                | a release; cleared by the new owner               |
//! | `held_since` | since when it is held while others wait           | the first waiter; the next acquisition; a release |
//! | `is_free`, `free`, `ended` | see [`super::hand_off`]            | a release to waiters, and the next acquisition    |
//! | `release`   | the holder that released it to a waiter           | a release to waiters                              |
//! | `signal`    | time of the latest signal                         | a thread that signals                             |
//! | `disturbed` | since when holds of it may have ended unrecorded  | a waiter that gives up                            |
//! | `call`      | the longest call that its holder made             | a release to waiters                              |
//!
//! `disturbed` is for the library's locks ([`super::library`]). A slot is found by a hash of the address, and
//! is right as long as no two busy locks share one. It is one cache line: a waiter takes it once before and
//! once after, and a thread that releases to waiters once. A thread that neither waits nor releases to a
//! waiter writes nothing here.

use core::mem::{offset_of, size_of};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicU8, AtomicUsize};

use spinpark_linux::raw;

use super::hash::{hash, HASHES};
use super::releases::{release, Past, Remembered, Rings};
use super::steps::Steps;
use super::thread_state::ThreadState;
use crate::format::{RegionId, NONE, REGIONS};

const TABLES: usize = REGIONS[RegionId::Threads as usize].0;
pub(crate) const LOCK_SLOTS: usize = 2 * REGIONS[RegionId::Locks as usize].0;
pub(crate) const STACK_SLOTS: usize = 2 * REGIONS[RegionId::Stacks as usize].0;
const CREATED: usize = 1 << 15;

/// Places for the releases of contended locks; locks that share one have fewer that are remembered.
const RINGS: usize = 1 << 12;

/// See above. All zero at the start.
#[repr(C)]
pub(crate) struct SharedTables {
    pub(crate) locks: [AtomicU32; LOCK_SLOTS],
    pub(crate) stacks: [AtomicU32; STACK_SLOTS],
    pub(crate) owners: [AtomicPtr<ThreadState>; TABLES],
    /// Table + 1.
    pub(crate) tables: [AtomicU16; HASHES],
    slots: [Slot; HASHES],
    uncounted: [AtomicU32; HASHES],
    pub(crate) steps: Steps,
    rings: [Rings; RINGS],
    writers: [Remembered; HASHES],
    created: [Created; CREATED],
    /// Code that the latest snapshot of the maps has.
    pub(crate) code: super::maps::Code,
}

/// See above. All relaxed: hints, of which a wrong one costs a column.
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) queue: AtomicU32,
    /// Table + 1.
    pub(crate) holder: AtomicU16,
    pub(crate) handed: AtomicU8,
    pub(crate) is_free: AtomicU8,
    pub(crate) free: AtomicU64,
    pub(crate) ended: AtomicU64,
    pub(crate) held_since: AtomicU64,
    /// The lower half of address / 8 of the lock, and holder + 1.
    pub(crate) release: AtomicU64,
    pub(crate) signal: AtomicU64,
    pub(crate) disturbed: AtomicU64,
    pub(crate) call: AtomicU64,
}

/// A release of a lock that others wait for.
#[derive(Clone, Copy)]
pub struct HandOff {
    /// As in a [`Slot`].
    pub(super) ended: u64,
    /// As [`HolderId`](crate::format::HolderId) has it.
    pub(super) holder: u32,
    /// Since when the lock was held and others waited, ticks; 0: not known.
    pub(super) held_since: u64,
    /// As in [`Past`].
    pub(super) held: u64,
}

#[repr(C)]
struct Created {
    address: AtomicUsize,
    /// Stack + 1.
    stack: AtomicU32,
}

impl SharedTables {
    /// See [`Recorder::IS_FREE_AT`](super::Recorder::IS_FREE_AT).
    pub(super) const IS_FREE_AT: usize = offset_of!(Self, slots) + offset_of!(Slot, is_free);

    /// What users of the lock at `address` tell each other.
    #[inline(always)]
    pub(crate) fn slot(&self, address: usize) -> &Slot {
        &self.slots[hash(address)]
    }

    /// The number of waiters at the condition variable at `address` whose waits began in light spans.
    #[inline(always)]
    pub(crate) fn uncounted(&self, address: usize) -> &AtomicU32 {
        &self.uncounted[hash(address)]
    }

    /// Notes the stack that created the lock at `address`.
    pub(crate) fn note_created(&self, address: usize, stack: u32) {
        let slot = &self.created[hash(address) % CREATED];
        slot.stack.store(0, Relaxed);
        slot.address.store(address, Relaxed);
        slot.stack.store(stack.wrapping_add(1), Release);
    }

    /// The stack that created the lock at `address`, if that is remembered.
    pub(crate) fn created(&self, address: usize) -> Option<u32> {
        let slot = &self.created[hash(address) % CREATED];
        let stack = slot.stack.load(Acquire);
        (slot.address.load(Relaxed) == address).then(|| stack.checked_sub(1)).flatten()
    }

    pub(crate) fn forget_created(&self, address: usize) {
        let slot = &self.created[hash(address) % CREATED];
        if slot.address.load(Relaxed) == address {
            slot.stack.store(0, Relaxed);
        }
    }
}

impl SharedTables {
    /// The releases of the lock at `address` to waiters.
    pub(super) fn rings(&self, address: usize) -> &Rings {
        &self.rings[hash(address) % RINGS]
    }

    /// Remembers the release of a read-write lock by a writer, before it.
    pub(super) fn remember_writer(&self, address: usize, past: Past) {
        self.writers[hash(address)].set(address, past);
    }

    /// The writer that released the read-write lock at `address` then is this one, as is known now.
    pub(crate) fn name_writer(&self, address: usize, ended: u64, holder: u32) {
        let writer = &self.writers[hash(address)];
        let noted = writer.release.load(Relaxed);
        if writer.ended.load(Acquire) == ended {
            // Not if another writer is just writing it.
            let new = release(address, holder.wrapping_add(1));
            let _ = writer.release.compare_exchange(noted, new, Release, Relaxed);
        }
    }

    /// The latest writer that released the read-write lock at `address` to waiters.
    pub(super) fn latest_writer(&self, address: usize) -> Option<Past> {
        self.writers[hash(address)].get(address)
    }
}

impl Slot {
    /// Notes the holder that releases the lock at `address`.
    pub(crate) fn note_release(&self, address: usize, holder: u32) {
        self.release.store(release(address, holder.wrapping_add(1)), Relaxed);
    }

    /// That holder, or [`NONE`].
    pub(crate) fn released_by(&self, address: usize) -> u32 {
        let noted = self.release.load(Relaxed);
        if noted >> 32 == release(address, 0) >> 32 {
            (noted as u32).wrapping_sub(1)
        } else {
            NONE
        }
    }
}

/// Where a [`SharedTables`] is, if there is one.
pub(crate) struct SharedTablesPointer(AtomicPtr<SharedTables>);

impl SharedTablesPointer {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Makes an empty one; whether there was memory.
    pub(crate) fn renew(&self) -> bool {
        let new = raw::map_zero(size_of::<SharedTables>());
        let old = self.0.swap(new.map_or(ptr::null_mut(), |new| new.as_ptr().cast()), Release);
        if let Some(old) = ptr::NonNull::new(old) {
            // SAFETY: from `map_zero`, with this length; only one thread renews it.
            unsafe { raw::unmap(old.cast(), size_of::<SharedTables>()) };
        }
        new.is_some()
    }

    /// Empties it. Its memory stays, and threads may read and write it meanwhile: those that are not in the
    /// recorder look for hints there, which may be wrong.
    pub(crate) fn clear(&self) {
        if let Some(tables) = ptr::NonNull::new(self.0.load(Acquire)) {
            // SAFETY: from `map_zero`, with this length; all zero is an empty one, and all of it atomic.
            if unsafe { !raw::wipe(tables.as_ptr().cast(), size_of::<SharedTables>()) } {
                // SAFETY: the same. The memory is locked, so its pages are there.
                unsafe { tables.as_ptr().write_bytes(0, 1) };
            }
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&SharedTables> {
        // SAFETY: null, or memory that is a side by being all zero, and that stays.
        unsafe { self.0.load(Acquire).as_ref() }
    }
}
