//! What a thread has: its table in the file, and memory of its own for what it holds and what it has seen
//! lately.
//!
//! Other threads read what it holds (`id`, `published`), as a hint: so a waiter finds where its lock was
//! taken. They write there only that an entry is out of date. The thread has two copies of what they read,
//! and reads its own while it holds a lock: a cache line that others read has to be fetched back. The memory
//! is never given back, since others may be reading; a thread that starts takes over the table and the memory
//! of one that has ended.
//!
//! | operation                              | order            | pairs with | because                          |
//! |----------------------------------------|------------------|------------|----------------------------------|
//! | `PublishedHold::address`: store; load  | Release, Acquire | each other | the stack is that of this entry  |
//! | `PublishedHold::stack`: store; load    | Release, Acquire | each other | a reader of a later stack sees   |
//! |                                        |                  |            | another address or 0: it rereads |
//! | `PublishedHold::address`: 0, `GONE`    | Relaxed          | –          | nothing follows but the stack    |
//! | `PublishedHold::address`: others' CAS  | Relaxed          | –          | nothing follows: it is outdated  |
//! | `Busy::releasing`: store of an address | Release          | the lock   | the lock's next owner sees it    |
//! | `Busy::releasing`: store of 0; load    | Release, Acquire | each other | at 0 the entry is seen removed   |

mod adopt;

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{compiler_fence, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};

use super::governor::Governor;
use super::index::Index;
use super::sampling::Gaps;
use super::site_cache::{CachedSite, Known};
use super::stack_bounds::Bounds;
use super::unwind::Trace;
use super::{presence, Recorder};
use crate::format::{LockStats, Role, SiteStats, Thread, HOLDS, NONE, TAKEN};

/// A thread's poll. All zero is none.
pub(crate) struct Poll {
    /// The lock, or 0.
    pub(super) address: Cell<usize>,
    pub(super) role: Cell<u32>,
    /// Ticks.
    pub(super) start: Cell<u64>,
    pub(super) last: Cell<u64>,
    pub(super) tries: Cell<u32>,
    /// 1: the thread has slept or yielded since the last try.
    pub(super) has_slept: Cell<u32>,
    /// As [`HolderId`] has it.
    pub(super) holder: Cell<u32>,
    /// From the second try on.
    pub(super) lock: Cell<u32>,
    pub(super) stack: Cell<u32>,
    pub(super) stats: Cell<*const LockStats>,
}

impl Poll {
    /// The table has another thread.
    pub(crate) fn forget(&self) {
        self.address.set(0);
    }
}

/// A thread's loop of `sched_yield`. All zero is none.
pub(crate) struct Yields {
    /// When the last call ended, ticks.
    pub(super) last: Cell<u64>,
    pub(super) calls: Cell<u32>,
    /// Ticks.
    pub(super) time: Cell<u64>,
    /// The time of earlier loops that is not written down yet, ticks.
    pub(super) earlier: Cell<u64>,
}

/// Semaphores that a thread has taken, and not posted since ([`super::semaphore`]). All zero is none.
pub(crate) struct Taken {
    pub(super) addresses: [Cell<usize>; TAKEN],
    pub(super) count: Cell<usize>,
    /// The thread is changing the list: a handler of a signal that comes meanwhile leaves it as it is.
    pub(super) changes: Cell<bool>,
}

/// Locks that a thread is known to hold at a time; the holds of others are not measured.
const HELD: usize = 32;

/// The recorder's thread-local memory. All zero in a new thread.
#[repr(C)]
pub(crate) struct Local {
    /// Null before the first use.
    pub(crate) own: Cell<*const ThreadState>,
    /// The recorder is at work in this thread.
    pub(crate) is_busy: Cell<u32>,
    /// The events of the locks, a bit each.
    pub(crate) events: Cell<u32>,
    /// The lock that the thread is releasing, or 0.
    pub(crate) releasing: Cell<usize>,
    /// There was no table for this thread: after this number of calls it asks again.
    pub(crate) refused: Cell<u32>,
    /// The number of acquisitions of contended mutexes to leave out from now on; the thread has noted no
    /// lock. A part of the governor's gap. Below 0 counts as 0: a signal handler came between the check and
    /// the decrement.
    pub(crate) skips: Cell<i32>,
    /// The mutex whose acquisition was left out last, until its release; or 0.
    pub(crate) passed: Cell<usize>,
    /// Uses of contended locks until the thread reads the clock ([`super::spans`]).
    pub(crate) turns: Cell<i32>,
    /// Its waits.
    pub(crate) waits: Cell<u32>,
    pub(crate) others: Cell<u32>,
    /// The recording of `refused` ([`Recorder::epoch`]).
    pub(crate) refused_in: Cell<u32>,
    pub(crate) yields: Yields,
    pub(crate) semaphores: Taken,
    /// In a process with delays ([`super::delay`]): locks that the thread holds, and delays that it owes.
    pub(crate) held: Cell<u32>,
    pub(crate) owed: Cell<u32>,
}

spinpark_linux::thread_block!(pub(crate) fn local() -> *mut Local = "spinpark_recorder_0_1_local");

/// The calling thread's.
#[inline(always)]
pub(crate) fn here<'a>() -> &'a Local {
    // SAFETY: the block belongs to this thread, and stays as long as it runs.
    unsafe { &*local() }
}

/// The address of no lock: the note was out of date ([`ThreadState::forget_stale`]).
const GONE: usize = 1;

/// A lock that a thread holds, as others see it.
#[repr(C)]
struct PublishedHold {
    /// 0: there are no more; or [`GONE`].
    address: AtomicUsize,
    stack: AtomicU32,
    /// A [`Role`].
    role: AtomicU32,
}

/// A lock that a thread holds.
#[repr(C)]
pub(crate) struct Held {
    address: Cell<usize>,
    /// How often it was taken again by its owner.
    pub(crate) again: Cell<u32>,
    /// The longest call that the thread made since ([`super::call`]).
    pub(crate) call: Cell<Called>,
    pub(crate) facts: Cell<Facts>,
}

/// What is known of an acquisition; written down after the release.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    /// The number of the lock.
    pub(crate) lock: u32,
    pub(crate) role: Role,
    pub(crate) stack: u32,
    /// How many acquisitions it stands for.
    pub(crate) weight: u32,
    /// How many holds its hold stands for ([`super::spans`]).
    pub(crate) times: u32,
    /// When it was taken, ticks; 0 if that is not measured.
    pub(crate) since: u64,
    /// The non-critical section before it, ticks; 0: the thread held another lock, or that is not measured.
    pub(crate) non_critical: u64,
    /// Null if the file or the memory was full.
    pub(crate) stats: *const LockStats,
    /// Null if it is not known yet.
    pub(crate) site: *const SiteStats,
    pub(crate) wait: Option<WaitRecord>,
}

/// A wait that has ended.
#[derive(Clone, Copy)]
pub(crate) struct WaitRecord {
    /// Ticks.
    pub(crate) ticks: u64,
    /// When it ended, ticks.
    pub(crate) end: u64,
    /// The holder when it began, as [`HolderId`](crate::format::HolderId) has it.
    pub(crate) holder: u32,
    /// The holder that released the lock last before its end.
    pub(crate) last: u32,
    /// When that was, as a slot has it (`hand_off`); 0 if it was not seen.
    pub(crate) ended: u64,
    /// Of `ticks`, the lock was free.
    pub(crate) free: u64,
    /// Whether `free` is known.
    pub(crate) is_split: bool,
    /// What the thread held meanwhile.
    pub(crate) outer: Outer,
    /// The longest call of the holder that ended it ([`super::call`]).
    pub(crate) call: Called,
    /// How many threads waited.
    pub(crate) queue: u32,
    /// A bit per [`crate::format::WaitOutcome`].
    pub(crate) outcomes: u32,
}

impl WaitRecord {
    pub(crate) const NOTHING: Self = Self {
        ticks: 0,
        end: 0,
        holder: NONE,
        last: NONE,
        ended: 0,
        free: 0,
        is_split: false,
        outer: Outer::NOTHING,
        call: 0,
        queue: 0,
        outcomes: 0,
    };
}

/// A lock that a thread has while it waits for another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outer {
    /// Its number, or [`NONE`].
    pub(crate) lock: u32,
    /// As in [`HeldWaitStats`](crate::format::HeldWaitStats).
    pub(crate) how: u32,
    /// How many threads wait for it.
    pub(crate) queue: u32,
    /// At the end: for how long others waited for it meanwhile, ticks.
    pub(crate) blocked: u64,
}

impl Outer {
    pub(crate) const NOTHING: Self = Self { lock: NONE, how: 0, queue: 0, blocked: 0 };
}

/// See above. All zero is a new one.
#[repr(C, align(64))]
pub struct ThreadState {
    /// The thread, in the lower half; 0: none yet. In the upper one, how often it was taken over: so of
    /// several threads that want to, one does.
    user: AtomicU64,
    /// The recording that it is of ([`Recorder::epoch`]).
    epoch: AtomicU32,
    /// 1: its thread is in the recorder, and may use the recording's memory ([`presence`]).
    at_work: AtomicU32,
    /// The memory of a thread that was mapped before this.
    older: AtomicPtr<ThreadState>,
    number: Cell<u32>,
    table: Cell<*const Thread>,
    /// Where this thread's stack lies.
    low: Cell<usize>,
    high: Cell<usize>,
    busy: Busy,
    held: [Held; HELD],
    /// The same, for others.
    published: [PublishedHold; HELD],
    pub(crate) gaps: Gaps,
    pub(crate) governor: Governor,
    pub(crate) index: Index,
    slow: SlowWaits,
    poll: Poll,
    /// The number + 1 of a lock's record that another thread was faster with (see `registry`), or 0.
    spare_lock: Cell<u32>,
    pub(crate) recent: [super::site_cache::Recent; super::site_cache::RECENT],
    pub(crate) cached_sites: [CachedSite; super::site_cache::CACHED_SITES],
    pub(crate) known: [Known; super::site_cache::KNOWN],
    trace: UnsafeCell<Trace>,
}

/// Where the longest waits of a thread are kept ([`super::slow`]). All zero is nowhere.
pub(crate) struct SlowWaits {
    /// The first record + 1; 0: there are none.
    pub(crate) first: Cell<u32>,
    /// The shortest of them, ticks; 0 while one is free.
    pub(crate) least: Cell<u64>,
    pub(crate) lengths: [Cell<u64>; crate::format::LONGEST as usize],
}

impl SlowWaits {
    /// Those that there are stay: they are of another thread.
    pub(crate) fn forget(&self) {
        self.first.set(0);
        self.least.set(0);
    }
}

/// What a thread often writes, and others read only at a release: not in one cache line with what they read
/// often.
#[repr(C, align(64))]
struct Busy {
    /// The lock that the thread is releasing, or 0: it may be another's already, and is still noted.
    releasing: AtomicUsize,
    /// How many locks are noted, from the first on.
    depth: Cell<usize>,
    /// Time that this thread has spent on new stacks, ticks; meaningful to a caller that has set it to 0
    /// before.
    aside: Cell<u64>,
    /// Time that this thread has spent on unwinding, ticks.
    unwinding: Cell<u64>,
    /// When the thread left a release behind, ticks (`hand_off`).
    handed_off: Cell<u64>,
    /// A lock that counted as free when the thread took it and left that out, and when, ticks (`hand_off`).
    barged: Cell<(usize, u64)>,
    /// When the thread asked whether a holder has a CPU, ticks (`watch`).
    watched: Cell<u64>,
    /// Counts what replaces something that was known.
    way: Cell<usize>,
    /// Counts stacks that were followed.
    walks: Cell<u32>,
    /// The detail was changed last before these notes ([`Recorder::forget_older`]).
    changed: Cell<u64>,
}

/// A call, as slots have it ([`super::call`]); 0: none.
pub(crate) type Called = u64;

impl ThreadState {
    #[inline(always)]
    pub(crate) fn table(&self) -> &Thread {
        // SAFETY: set before any thread gets this; the file stays mapped.
        unsafe { &*self.table.get() }
    }

    #[inline(always)]
    pub(crate) fn number(&self) -> u32 {
        self.number.get()
    }

    pub(crate) fn next_way(&self) -> usize {
        self.busy.way.replace(self.busy.way.get().wrapping_add(1))
    }

    pub(crate) fn next_walk(&self) -> u32 {
        self.busy.walks.set(self.busy.walks.get().wrapping_add(1));
        self.busy.walks.get()
    }

    /// A buffer for a stack.
    pub(crate) fn trace(&self) -> &UnsafeCell<Trace> {
        &self.trace
    }

    /// Time that this thread has spent on unwinding, ticks.
    pub(crate) fn unwinding(&self) -> &Cell<u64> {
        &self.busy.unwinding
    }

    /// Time that this thread has spent on new stacks, ticks; meaningful to a caller that has set it to 0
    /// before.
    pub(crate) fn aside(&self) -> &Cell<u64> {
        &self.busy.aside
    }

    /// A lock that counted as free when the thread took it and left that out, and when, ticks
    /// ([`super::hand_off`]).
    pub(crate) fn barged(&self) -> &Cell<(usize, u64)> {
        &self.busy.barged
    }

    /// When the thread last left a release behind, ticks ([`super::hand_off`]).
    pub(crate) fn handed_off(&self) -> &Cell<u64> {
        &self.busy.handed_off
    }

    /// When the thread last asked whether a holder has a CPU, ticks ([`super::watch`]).
    pub(crate) fn watched(&self) -> &Cell<u64> {
        &self.busy.watched
    }

    /// Where its longest waits are kept.
    pub(crate) fn slow(&self) -> &SlowWaits {
        &self.slow
    }

    /// The thread has made a call while it held the locks that are noted.
    pub(crate) fn called(&self, longer: impl Fn(Called) -> Called) {
        self.held().iter().for_each(|held| held.call.set(longer(held.call.get())));
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { low: self.low.get(), high: self.high.get() }
    }

    /// The thread.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.user.load(Relaxed) as u32
    }

    /// What it knows of a lock with this hash.
    #[inline(always)]
    pub(crate) fn recent_at(&self, hash: usize) -> &super::site_cache::Recent {
        &self.recent[hash % super::site_cache::RECENT]
    }

    #[inline(always)]
    pub(crate) fn holds_anything(&self) -> bool {
        self.busy.depth.get() != 0
    }

    /// The number + 1 of a lock's record that this thread may write, or 0.
    pub(crate) fn spare_lock(&self) -> &Cell<u32> {
        &self.spare_lock
    }

    pub(crate) fn poll(&self) -> &Poll {
        &self.poll
    }

    /// See [`Recorder::forget_older`].
    #[inline(always)]
    pub(crate) fn changed(&self) -> &Cell<u64> {
        &self.busy.changed
    }

    fn held(&self) -> &[Held] {
        &self.held[..self.busy.depth.get().min(HELD)]
    }

    /// The locks that it holds, by address: what it took last, as far as readers see it.
    pub(crate) fn latest_held(&self) -> impl Iterator<Item = (usize, Facts)> + '_ {
        let first = self.held().len().saturating_sub(HOLDS);
        let held = self.held().iter().enumerate().skip(first).filter(|(at, _)| !self.is_gone(*at));
        held.map(|(_, held)| (held.address.get(), held.facts.get()))
    }

    /// Where what this thread holds at `address` is noted.
    #[inline(always)]
    pub(crate) fn find(&self, address: usize) -> Option<usize> {
        self.held().iter().rposition(|held| held.address.get() == address)
    }

    /// The lock that this thread held when it took the one noted there, if it still holds it: its number,
    /// and how it has it.
    #[inline(always)]
    pub(crate) fn around(&self, at: usize) -> Option<(u32, Role)> {
        let (outer, inner) = (self.held.get(at.checked_sub(1)?)?.facts.get(), self.held[at].facts.get());
        // A note that has moved may be of a lock that was taken later.
        (outer.since != 0 && outer.since <= inner.since).then_some((outer.lock, outer.role))
    }

    /// What is noted there.
    #[inline(always)]
    pub(crate) fn at(&self, at: usize) -> &Held {
        &self.held[at]
    }

    /// Whether another thread has found out that what is noted there is not true
    /// ([`ThreadState::forget_stale`]).
    #[inline(always)]
    pub(crate) fn is_gone(&self, at: usize) -> bool {
        self.published[at].address.load(Relaxed) == GONE
    }

    /// Notes a lock that this thread has now; whether a note was free.
    #[inline(always)]
    pub(crate) fn push(&self, address: usize, facts: Facts) -> bool {
        let depth = self.busy.depth.get();
        let (Some(held), Some(note)) = (self.held.get(depth), self.published.get(depth)) else {
            return false;
        };
        note.role.store(facts.role as u32, Relaxed);
        note.stack.store(facts.stack, Release);
        note.address.store(address, Release);
        held.address.set(address);
        held.again.set(0);
        held.call.set(0);
        held.facts.set(facts);
        self.busy.depth.set(depth + 1);
        true
    }

    /// Takes a note away: that at the end takes its place.
    #[inline(always)]
    pub(crate) fn remove(&self, at: usize) {
        let Some(last) = self.held().len().checked_sub(1) else { return };
        if at != last {
            let (to, from) = (&self.held[at], &self.held[last]);
            to.address.set(from.address.get());
            to.again.set(from.again.get());
            to.call.set(from.call.get());
            to.facts.set(from.facts.get());
            let (to, from) = (&self.published[at], &self.published[last]);
            to.address.store(GONE, Relaxed);
            to.role.store(from.role.load(Relaxed), Relaxed);
            to.stack.store(from.stack.load(Relaxed), Release);
            to.address.store(from.address.load(Relaxed), Release);
        }
        self.published[last].address.store(0, Relaxed);
        self.busy.depth.set(last);
    }

    /// One of those that are not true.
    pub(crate) fn stale(&self) -> Option<usize> {
        (0..self.held().len()).find(|at| self.is_gone(*at))
    }

    /// For other threads: the notes that this one has.
    fn seen(&self) -> impl Iterator<Item = (&PublishedHold, usize)> {
        let all = self.published.iter().map(|note| (note, note.address.load(Acquire)));
        all.take_while(|(_, address)| *address != 0)
    }

    /// For other threads: whether it has noted a lock that it may have still.
    pub(crate) fn has_notes(&self) -> bool {
        self.seen().any(|(_, address)| address != GONE)
    }

    /// The thread is releasing the lock at `address`, or (0) has done so, and taken its note away.
    #[inline(always)]
    pub(crate) fn let_go(&self, address: usize) {
        self.busy.releasing.store(address, Release);
    }

    /// For other threads: that this one holds the lock at `address` is not true; if `only_reads`, for
    /// reading.
    pub(crate) fn forget_stale(&self, address: usize, only_reads: bool) {
        if self.is_letting_go(address) {
            return; // its note is about to be taken away
        }
        let is_it = |note: &PublishedHold| !only_reads || note.role.load(Relaxed) == Role::Read as u32;
        for (note, _) in self.seen().filter(|(note, noted)| *noted == address && is_it(note)) {
            // Its thread may be moving notes: then this does nothing, or finds the same note in its new
            // place.
            let _ = note.address.compare_exchange(address, GONE, Relaxed, Relaxed);
        }
    }

    /// Takes all notes away.
    pub(crate) fn take_all(&self, mut with: impl FnMut(Facts)) {
        let held = self.held();
        self.busy.depth.set(0);
        for (held, note) in held.iter().zip(&self.published) {
            note.address.store(0, Relaxed);
            with(held.facts.get());
        }
    }

    /// Counts the locks that it holds, which stay noted: once each.
    pub(crate) fn count_held(&self, with: impl Fn(Facts)) {
        for held in self.held() {
            with(held.facts.get());
            held.facts.set(Facts { stats: core::ptr::null(), ..held.facts.get() });
        }
    }

    /// For other threads: the stack with which this thread took the lock at `address`, if it holds it and a
    /// thread that wants it in `role` has to wait for that.
    pub(crate) fn stack_of_holder(&self, address: usize, role: Role) -> Option<u32> {
        let (note, _) = self.seen().find(|(_, noted)| *noted == address)?;
        let stack = note.stack.load(Acquire);
        if role == Role::Read && note.role.load(Relaxed) == Role::Read as u32 {
            return None;
        }
        (note.address.load(Relaxed) == address).then_some(stack)
    }

    /// For other threads: whether this one is releasing the lock at `address`; another may have it already.
    pub(crate) fn is_letting_go(&self, address: usize) -> bool {
        self.busy.releasing.load(Acquire) == address
    }

    /// Its thread enters the recorder: whether this is of the present recording, which stays then until
    /// [`ThreadState::end_work`] ([`presence`]).
    #[inline(always)]
    fn begin_work(&self, recorder: &Recorder) -> bool {
        presence::enter(&self.at_work, &self.epoch, &recorder.epoch, || compiler_fence(SeqCst))
    }

    #[inline(always)]
    fn end_work(&self) {
        presence::leave(&self.at_work);
    }

    /// Whether it is of the recording with this number.
    pub(crate) fn is_of(&self, epoch: u32) -> bool {
        self.epoch.load(Relaxed) == epoch
    }

    /// For a thread that has ended all recordings before: whether this one's thread is in the recorder.
    pub(crate) fn is_at_work(&self) -> bool {
        !presence::is_out(&self.at_work)
    }

    /// What was mapped before this.
    pub(crate) fn older(&self) -> Option<&Self> {
        // SAFETY: null, or memory that is never given back.
        unsafe { self.older.load(Acquire).as_ref() }
    }

    /// Takes it over for `thread`, if no other thread has since `user` was read.
    fn take_over(&self, user: u64, thread: u32) -> bool {
        let next = ((user >> 32).wrapping_add(1) << 32) | u64::from(thread);
        self.user.compare_exchange(user, next, AcqRel, Relaxed).is_ok()
    }

    /// After [`ThreadState::take_over`]: it is `thread`'s again. Release, for the next thread that takes it
    /// over.
    fn give_back(&self, thread: u32) {
        let next = ((self.user.load(Relaxed) >> 32).wrapping_add(1) << 32) | u64::from(thread);
        self.user.store(next, Release);
    }
}

impl Recorder {
    /// The calling thread's own, if the recorder is not at work in it already; and it is from now on, until
    /// [`Recorder::leave`].
    #[inline(always)]
    pub fn enter(&self) -> Option<&ThreadState> {
        let local = here();
        if local.is_busy.get() != 0 {
            self.count_nested();
            return None;
        }
        if !self.alive.get() {
            return None;
        }
        local.is_busy.set(1);
        // A signal handler of this thread sees this in order.
        compiler_fence(SeqCst);
        let own = local.own.get();
        // SAFETY: null, or memory that is never given back.
        match unsafe { own.as_ref() } {
            Some(own) if own.begin_work(self) => Some(own),
            _ => self.first_entry(),
        }
    }

    /// Whether the recorder is at work in this thread: what it calls itself, the unwinder's initialisation
    /// say, is not the program's.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        here().is_busy.get() != 0
    }

    /// As [`Recorder::enter`], if the thread's memory is known already.
    #[inline(always)]
    pub fn enter_fast(&self) -> Option<&ThreadState> {
        let local = here();
        let own = local.own.get();
        if local.is_busy.get() != 0 || own.is_null() || !self.alive.get() {
            return None;
        }
        local.is_busy.set(1);
        compiler_fence(SeqCst);
        // SAFETY: such memory is never given back.
        let own = unsafe { &*own };
        if !own.begin_work(self) {
            self.leave();
            return None;
        }
        Some(own)
    }

    /// The recorder is not at work in this thread any more.
    #[inline(always)]
    pub fn leave(&self) {
        compiler_fence(SeqCst);
        let local = here();
        // SAFETY: null, or memory that is never given back.
        if let Some(own) = unsafe { local.own.get().as_ref() } {
            own.end_work();
        }
        local.is_busy.set(0);
    }

    #[cold]
    #[inline(never)]
    fn count_nested(&self) {
        if let Some(header) = self.file.header().filter(|_| self.alive.get()) {
            header.nested.fetch_add(1, Relaxed);
        }
    }
}
