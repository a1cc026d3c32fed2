//! How a thread comes to a table: that of a thread that has ended, or a new one.
//!
//! | operation                  | order   | pairs with            | because                                            |
//! |----------------------------|---------|-----------------------|----------------------------------------------------|
//! | take over: CAS of `user`   | AcqRel  | the one before        | the table as the latest user left it; one succeeds |
//! | `user`: load before it     | Acquire | take over             | whose table it is now                              |
//! | `owners`: store, load      | Release, Acquire | each other   | the memory is complete when it is found            |
//! | `used` of a region: load   | Relaxed | -                     | only how many there may be: `owners` says which are|
//! | `id` of a table: store     | Release | a reader's load       | it reads the table of this user, not the last one's |

use core::mem::{offset_of, size_of};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use spinpark_linux::raw;

use super::super::hash::HASHES;
use super::super::site_cache::{CachedSite, Known};
use super::super::stack_bounds;
use super::super::{presence, Recorder};
use super::{here, Facts, ThreadState};
use crate::format::{RegionId, Thread, NONE};

/// Below this number of tables, none is taken over from a thread that has ended with a lock: its waiters find
/// there where it took the lock.
const KEPT: u32 = 256;
/// Tables that a new thread looks at for one whose user has ended.
const CANDIDATES: u32 = 4;
/// Memory of threads of earlier recordings that a new thread looks at, in the worst case with a system call
/// each.
const LEFT_OVER: usize = 64;
/// Calls after which a thread without a table asks for one again.
const REFUSED: u32 = 4096;

impl ThreadState {
    /// Makes it new, but for what other threads read at any time: what comes before `number`.
    ///
    /// # Safety
    ///
    /// It is the calling thread's alone.
    unsafe fn renew(state: *mut Self) {
        let kept = offset_of!(Self, number);
        // SAFETY: the caller's promise; all zero is a new one.
        unsafe { state.cast::<u8>().wrapping_add(kept).write_bytes(0, size_of::<Self>() - kept) };
    }
}

/// What the calling thread has noted outside of its table is of an earlier recording, if there was one: what
/// it holds may not be true any more.
fn forget_before() {
    let local = here();
    local.skips.set(0);
    local.passed.set(0);
    local.waits.set(0);
    local.others.set(0);
    local.yields.calls.set(0);
    local.yields.time.set(0);
    local.yields.earlier.set(0);
    local.semaphores.count.set(0);
}

impl Recorder {
    #[cold]
    #[inline(never)]
    pub(super) fn first_entry(&self) -> Option<&ThreadState> {
        let local = here();
        // What was full in an earlier recording need not be so in this one.
        if local.refused.get() > 0 && local.refused_in.get() == self.epoch() {
            local.refused.set(local.refused.get() - 1);
            self.leave();
            return None;
        }
        let (start, cpu_time) = (self.now(), raw::cpu_time());
        // From here on, no other recording begins.
        let is_on = self.alive.enter_first(&self.entering);
        let epoch = self.epoch();
        let own = if is_on { self.adopt() } else { None };
        if let Some(own) = own {
            local.own.set(own);
        }
        presence::got_table(&self.entering, own.map(|own| &own.at_work));
        match own {
            Some(own) => {
                // While many threads begin, it also waits for their memory to be mapped: no work.
                let cost = self.ticks.ticks(raw::cpu_time().saturating_sub(cpu_time));
                self.note_rare(own, self.now().saturating_sub(start), cost);
            }
            None => {
                // What was not on may begin at any time, and then there is room.
                local.refused.set(if is_on { REFUSED } else { 0 });
                local.refused_in.set(epoch);
                self.leave();
            }
        }
        own
    }

    /// A table for the calling thread: that of a thread that has ended, or a new one.
    fn adopt(&self) -> Option<&ThreadState> {
        let (shared, header) = (self.shared.get()?, self.file.header()?);
        if self.is_dormant() {
            // This thread alone may have entered a sandbox, long before this recording: what follows might end
            // the process.
            if self.is_sandboxed() {
                return None;
            }
            forget_before();
        }
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
        // SAFETY: null, or memory that is never given back.
        let before = unsafe { here().own.get().as_ref() };
        let own = match before {
            // Its memory is of an earlier recording.
            Some(before) => self.new_table(id, Some(before))?,
            None => match mine.or_else(candidates) {
                Some(own) => own,
                None => self.new_table(id, None)?,
            },
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

    /// A new table, with the memory that this thread had in an earlier recording (`before`), or that of a
    /// thread that has ended since, or new memory.
    fn new_table<'a>(&'a self, id: u32, before: Option<&'a ThreadState>) -> Option<&'a ThreadState> {
        let shared = self.shared.get()?;
        // First: what is not claimed need not be given back.
        let (number, table) = self.file.claim::<Thread>(RegionId::Threads)?;
        let own = match before.or_else(|| self.left_over(id)) {
            Some(own) => own,
            None => self.map_state(id)?,
        };
        // SAFETY: as a pointer to the memory; of a recording that has ended, no other thread reads more than
        // what comes before `number` (`presence`), and this one has no other reference at work.
        unsafe { ThreadState::renew(ptr::from_ref(own).cast_mut()) };
        // SAFETY: claimed for this thread.
        unsafe { (*table).since = self.ticks.now() };
        // SAFETY: the same; atomic, and all that changes later is.
        unsafe { &(*table).segment }.store(NONE, Relaxed);
        own.number.set(number);
        own.table.set(table);
        own.epoch.store(self.epoch(), Relaxed);
        shared.owners[number as usize].store(ptr::from_ref(own).cast_mut(), Release);
        Some(own)
    }

    /// Memory for a thread, all zero.
    fn map_state(&self, id: u32) -> Option<&ThreadState> {
        let memory = raw::map_zero(size_of::<ThreadState>())?;
        // SAFETY: all zero is one; it is never given back.
        let own: &ThreadState = unsafe { memory.cast().as_ref() };
        own.user.store(u64::from(id), Relaxed);
        let mut older = self.newest.load(Relaxed);
        loop {
            own.older.store(older, Relaxed);
            match self.newest.compare_exchange_weak(older, memory.as_ptr().cast(), Release, Relaxed) {
                Ok(_) => return Some(own),
                Err(newer) => older = newer,
            }
        }
    }

    /// The memory of a thread that has ended, of an earlier recording.
    fn left_over(&self, id: u32) -> Option<&ThreadState> {
        let is_left = |own: &&ThreadState| {
            let user = own.user.load(Acquire);
            let is_free = own.epoch.load(Relaxed) != self.epoch()
                && !own.is_at_work()
                && (user as u32 == id || raw::has_ended(user as u32));
            is_free && own.take_over(user, id)
        };
        self.is_dormant().then(|| self.states().take(LEFT_OVER).find(is_left)).flatten()
    }

    /// The memory of all threads.
    pub(crate) fn states(&self) -> impl Iterator<Item = &ThreadState> {
        // SAFETY: null, or memory that is never given back.
        let newest = unsafe { self.newest.load(Acquire).as_ref() };
        core::iter::successors(newest, |state| state.older())
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
