//! How a thread comes to a table: that of a thread that has ended, or a new one.
//!
//! | operation                  | order   | pairs with            | because                                            |
//! |----------------------------|---------|-----------------------|----------------------------------------------------|
//! | take over: CAS of `user`   | AcqRel  | the one before        | the table as the latest user left it; one succeeds |
//! | `user`: load before it     | Acquire | take over             | whose table it is now                              |
//! | `owners`: store, load      | Release, Acquire | each other   | the memory is complete when it is found            |
//! | `used` of a region: load   | Relaxed | -                     | only how many there may be: `owners` says which are|
//! | `id` of a table: store     | Release | a reader's load       | it reads the table of this user, not the last one's |

use core::mem::size_of;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use spinpark_linux::raw;

use super::super::hash::HASHES;
use super::super::site_cache::{CachedSite, Known};
use super::super::stack_bounds;
use super::super::Recorder;
use super::{here, Facts, ThreadState};
use crate::format::{RegionId, Thread, NONE};

/// Below this number of tables, none is taken over from a thread that has ended with a lock: its waiters find
/// there where it took the lock.
const KEPT: u32 = 256;
/// Tables that a new thread looks at for one whose user has ended.
const CANDIDATES: u32 = 4;
/// Calls after which a thread without a table asks for one again.
const REFUSED: u32 = 4096;

impl Recorder {
    #[cold]
    #[inline(never)]
    pub(super) fn first_entry(&self) -> Option<&ThreadState> {
        let local = here();
        if local.refused.get() > 0 {
            local.refused.set(local.refused.get() - 1);
            self.leave();
            return None;
        }
        let (start, cpu_time) = (self.now(), raw::cpu_time());
        let own = self.adopt();
        match own {
            Some(own) => {
                local.own.set(own);
                // While many threads begin, it also waits for their memory to be mapped: no work.
                let cost = self.ticks.ticks(raw::cpu_time().saturating_sub(cpu_time));
                self.note_rare(own, self.now().saturating_sub(start), cost);
            }
            None => {
                local.refused.set(REFUSED);
                self.leave();
            }
        }
        own
    }

    /// A table for the calling thread: that of a thread that has ended, or a new one.
    fn adopt(&self) -> Option<&ThreadState> {
        let (shared, header) = (self.shared.get()?, self.file.header()?);
        let id = raw::thread_id();
        let count = header.regions[RegionId::Threads as usize].used.load(Relaxed);
        // A thread with this id used this one, so it has ended.
        let mine = u32::from(shared.tables[id as usize % HASHES].load(Relaxed)).checked_sub(1);
        let is_mine = |own: &&ThreadState| {
            let user = own.user.load(Acquire);
            user as u32 == id && own.take_over(user, id)
        };
        let mine = mine.and_then(|number| self.own_of(number)).filter(is_mine);
        // Round and round, however their number grows; two threads may look at the same ones.
        let first = self.candidate.load(Relaxed);
        self.candidate.store(first.wrapping_add(CANDIDATES) % count.max(1), Relaxed);
        let has_ended = |own: &&ThreadState| {
            let user = own.user.load(Acquire);
            let before = user as u32;
            if before == 0 || !raw::has_ended(before) {
                return false;
            }
            let is_needed = count < KEPT && own.has_notes();
            let is_taken = own.take_over(user, id);
            if is_taken && is_needed {
                // The recording may end before it is taken over: what it holds is counted now, and stays noted.
                own.count_held(|facts| self.write(own, &Facts { since: 0, ..facts }, 0));
                own.give_back(before);
            }
            is_taken && !is_needed
        };
        let candidates = || {
            let numbers = (0..CANDIDATES.min(count)).map(|step| first.wrapping_add(step) % count);
            numbers.filter_map(|number| self.own_of(number)).find(has_ended)
        };
        let own = match mine.or_else(candidates) {
            Some(own) => own,
            None => self.new_table(id)?,
        };
        // What the one before held when it ended.
        own.take_all(|facts| self.write(own, &Facts { since: 0, ..facts }, 0));
        own.let_go(0);
        own.slow().forget();
        own.poll().forget();
        let table = own.table();
        table.waiting.end();
        table.ended.store(0, Relaxed);
        table.unseen_release.store(0, Relaxed);
        if table.users.load(Relaxed) != 0 {
            // It was there until its latest event, as far as is known.
            let before = table.latest.load(Relaxed).saturating_sub(table.since);
            table.past.store(table.past.load(Relaxed) + before, Relaxed);
            table.latest.store(0, Relaxed);
            // SAFETY: its own table. A reader of a living program may see the time before.
            unsafe { (*self.file.at::<Thread>(RegionId::Threads, own.number())).since = self.ticks.now() };
        }
        table.users.store(table.users.load(Relaxed) + 1, Relaxed);
        table.id.store(id, Release);
        let bounds = stack_bounds::of_this_thread(&self.main_stack);
        own.low.set(bounds.low);
        own.high.set(bounds.high);
        own.cached_sites.iter().for_each(CachedSite::clear);
        own.known.iter().for_each(Known::clear);
        own.unwinding().set(0);
        own.gaps.start(id, self.sample_every());
        own.governor.start(id);
        self.note_name(own);
        shared.tables[id as usize % HASHES].store((own.number() + 1) as u16, Relaxed);
        Some(own)
    }

    fn new_table(&self, id: u32) -> Option<&ThreadState> {
        let shared = self.shared.get()?;
        let memory = raw::map_zero(size_of::<ThreadState>())?;
        let Some((number, table)) = self.file.claim::<Thread>(RegionId::Threads) else {
            // SAFETY: no other thread knows of it.
            unsafe { raw::unmap(memory, size_of::<ThreadState>()) };
            return None;
        };
        // SAFETY: claimed for this thread.
        unsafe { (*table).since = self.ticks.now() };
        // SAFETY: the same; atomic, and all that changes later is.
        unsafe { &(*table).segment }.store(NONE, Relaxed);
        // SAFETY: all zero is one; it is never given back.
        let own: &ThreadState = unsafe { memory.cast().as_ref() };
        own.number.set(number);
        own.table.set(table);
        own.user.store(u64::from(id), Relaxed);
        shared.owners[number as usize].store(memory.as_ptr().cast(), Release);
        Some(own)
    }

    /// Marks the tables of threads that have ended.
    pub(crate) fn mark_ended(&self) {
        let Some(header) = self.file.header() else { return };
        let count = header.regions[RegionId::Threads as usize].used.load(Relaxed);
        for own in (0..count).filter_map(|number| self.own_of(number)) {
            if own.id() != 0 && raw::has_ended(own.id()) {
                own.table().ended.store(1, Relaxed);
            }
        }
    }

    /// Writes down what the thread is called now: threads are named after they start.
    pub(crate) fn note_name(&self, own: &ThreadState) {
        let name = raw::thread_name();
        // SAFETY: its own table. A reader of a living program may see half of a new name.
        unsafe { (*self.file.at::<Thread>(RegionId::Threads, own.number())).name = name };
    }
}
