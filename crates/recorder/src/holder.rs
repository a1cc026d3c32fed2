//! The holder of a lock: looked up by a waiter, in what the holder has noted in its own memory.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use spinpark_linux::raw;

use super::site_cache::LockCall;
use super::thread_state::ThreadState;
use super::Recorder;
use crate::format::{HolderId, OutOfSight, RegionId, NONE};

/// Tables that are searched at most for a lock's holder, or for a thread's own.
const LOOKED_AT: u32 = 128;

impl Recorder {
    /// The holder of the lock that is called for, as [`HolderId`] has it, and the number of its table if it
    /// has noted that it is; else [`NONE`]s. `owner`: the thread that has the lock, 0 if it is free just now;
    /// none if that is not known. `is_shared`: by processes.
    pub(super) fn noted_holder(
        &self,
        own: &ThreadState,
        call: &LockCall,
        owner: Option<u32>,
        is_shared: bool,
    ) -> (u32, u32) {
        const NO_HOLDER: (u32, u32) = (NONE, NONE);
        let address = call.address;
        let (Some(shared), Some(header)) = (self.shared.get(), self.file.header()) else { return NO_HOLDER };
        let held_by = |number: u32| {
            let other = self.own_of(number).filter(|other| !ptr::eq(*other, own))?;
            let stack = other.stack_of_holder(address, call.role)?;
            // A thread that is known to have the lock has it; other threads' notes may be out of date.
            (owner.is_some() || !other.is_letting_go(address)).then_some((stack, number))
        };
        let likely = |slot: u16| u32::from(slot).checked_sub(1);
        if let Some(owner @ 1..) = owner {
            if owner == own.id() {
                return NO_HOLDER;
            }
            let Some(table) = self.table_of(owner) else {
                let holder =
                    self.out_of_sight(owner, is_shared).map_or(HolderId::Unknown, HolderId::OutOfSight);
                return (holder.number(), NONE);
            };
            // It took it before the first wait for it, or is just taking it; it tells where it releases it.
            return held_by(table).unwrap_or((HolderId::Table(table).number(), NONE));
        }
        if let Some(holder) = likely(shared.slot(address).holder.load(Relaxed)).and_then(held_by) {
            return holder;
        }
        if owner.is_some() {
            return NO_HOLDER;
        }
        let count = header.regions[RegionId::Threads as usize].used.load(Relaxed);
        // Threads that started after this one come first: they often run the same code.
        let numbers = (1..=count.min(LOOKED_AT)).map(|step| (own.number() + step) % count);
        numbers.into_iter().find_map(held_by).unwrap_or(NO_HOLDER)
    }

    /// This thread, which has a lock, may have ended with it.
    #[cold]
    pub(super) fn note_end_of(&self, thread: u32) {
        let table = self.table_of(thread).and_then(|number| self.own_of(number));
        if let Some(own) = table.filter(|_| raw::has_ended(thread)) {
            own.table().ended.store(1, Relaxed);
        }
    }

    /// What a thread without a table is; none if that may not be asked.
    #[cold]
    fn out_of_sight(&self, thread: u32, is_shared: bool) -> Option<OutOfSight> {
        // A sandbox may kill for the question.
        if raw::sandbox() != self.sandbox.load(Relaxed) {
            return None;
        }
        Some(match raw::has_ended(thread) {
            // With less detail it may have taken the lock before any thread had waited for it.
            false if !self.is_full() => return None,
            false => OutOfSight::Unseen,
            true if is_shared => OutOfSight::Process,
            true if self.is_child() => OutOfSight::Parent,
            true => OutOfSight::Ended,
        })
    }

    /// The number of the table of this thread, if it has one.
    pub(super) fn table_of(&self, thread: u32) -> Option<u32> {
        let (shared, header) = (self.shared.get()?, self.file.header()?);
        let slot = &shared.tables[thread as usize % shared.tables.len()];
        let is_its = |number: &u32| self.own_of(*number).is_some_and(|other| other.id() == thread);
        let number = u32::from(slot.load(Relaxed)).checked_sub(1)?;
        if is_its(&number) {
            return Some(number);
        }
        // The slot has a thread whose id differs by a multiple of the slots. The tables are searched, so that
        // it is known which thread this one waits for.
        let count = header.regions[RegionId::Threads as usize].used.load(Relaxed);
        let number = (0..count.min(LOOKED_AT)).find(is_its)?;
        slot.store((number + 1) as u16, Relaxed);
        Some(number)
    }

    /// The memory of the thread with this table.
    pub(super) fn own_of(&self, number: u32) -> Option<&ThreadState> {
        // SAFETY: null, or memory of a thread, which is never given back.
        unsafe { self.shared.get()?.owners.get(number as usize)?.load(Acquire).as_ref() }
    }

    /// This thread has a lock for itself, so the noted holder does not hold it. Another thread has released
    /// it on its behalf, or the holder has ended with it, or the release was not seen.
    pub(super) fn drop_stale_note(&self, own: &ThreadState, address: usize, table: u32) {
        if let Some(other) = self.own_of(table).filter(|other| !ptr::eq(*other, own)) {
            other.forget_stale(address, false);
        }
    }

    /// This thread has released the lock at `address`, which `owner` had taken, and perhaps noted.
    pub fn let_go_for(&self, own: &ThreadState, address: usize, owner: u32) {
        if owner == 0 || owner == own.id() {
            return;
        }
        if let Some(number) = self.table_of(owner) {
            self.drop_stale_note(own, address, number);
        }
    }

    /// This thread has released the lock at `address`, which a reader held, without having noted it: it may
    /// have done so for any that has.
    pub fn let_go_for_readers(&self, own: &ThreadState, address: usize) {
        let Some(header) = self.file.header() else { return };
        let count = header.regions[RegionId::Threads as usize].used.load(Relaxed);
        let others = (1..=count.min(LOOKED_AT)).map(|step| (own.number() + step) % count);
        for other in others.filter_map(|number| self.own_of(number)).filter(|other| !ptr::eq(*other, own)) {
            other.forget_stale(address, true);
        }
    }
}
