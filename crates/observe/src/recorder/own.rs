//! What a thread has: its table in the file, and memory of its own for what it holds and what it has seen lately.
//!
//! Only the thread writes here. Others read what it holds (`id`, `held`), as a hint: a thread that waits finds out so where
//! the lock that it wants was taken. The memory is never given back, since others may be reading; a thread that starts takes
//! over the table and the memory of one that has ended.

mod adopt;

use core::cell::Cell;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{compiler_fence, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};

use super::bounds::Bounds;
use super::index::Index;
use super::place::{Known, Place};
use super::sample::Gaps;
use super::Recorder;
use crate::format::{Hold, LockStats, Role, SiteStats, Thread, HOLDS};

/// Locks that a thread is known to hold at a time; the holds of others are not measured.
const HELD: usize = 32;

/// The recorder's thread-local memory. All zero in a new thread.
#[repr(C)]
pub(crate) struct Local {
    /// Null before the first use.
    pub(crate) own: Cell<*const Own>,
    /// The recorder is at work in this thread.
    pub(crate) is_busy: Cell<u32>,
    /// What the locks say they did: a bit per event.
    pub(crate) events: Cell<u32>,
    /// The lock that the thread is letting go, or 0.
    pub(crate) letting: Cell<usize>,
    /// There was no table for this thread: so many calls later it asks again.
    pub(crate) refused: Cell<u32>,
}

spinpark_linux::thread_block!(pub(crate) fn local() -> *mut Local = "spinpark_observe_0_1_local");

/// The calling thread's.
#[inline(always)]
pub(crate) fn here<'a>() -> &'a Local {
    // SAFETY: the block belongs to this thread, and stays as long as it runs.
    unsafe { &*local() }
}

/// A lock that a thread holds.
#[repr(C)]
pub(crate) struct Held {
    pub(crate) address: AtomicUsize,
    pub(crate) stack: AtomicU32,
    /// How often it was taken again by its owner.
    pub(crate) again: Cell<u32>,
    pub(crate) facts: Cell<Facts>,
}

/// What is known of an acquisition; written down after the release.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    /// The number of the lock.
    pub(crate) lock: u32,
    pub(crate) role: Role,
    pub(crate) stack: u32,
    /// When it was taken, ticks; 0 if that is not measured.
    pub(crate) since: u64,
    /// Null if there was no room.
    pub(crate) stats: *const LockStats,
    /// Null if it is not known yet.
    pub(crate) site: *const SiteStats,
    pub(crate) wait: Option<Waited>,
}

/// A wait that has ended.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    /// Ticks.
    pub(crate) ticks: u64,
    /// When it ended, ticks.
    pub(crate) end: u64,
    /// The holder's stack, or [`NONE`].
    pub(crate) holder: u32,
    /// So many waited.
    pub(crate) queue: u32,
    /// A bit per [`crate::format::Outcome`].
    pub(crate) outcomes: u32,
}

/// See above. All zero is a new one.
#[repr(C)]
pub struct Own {
    /// The thread, in the lower half; 0: none yet. In the upper one, how often it was taken over: so of those who want to,
    /// one does.
    user: AtomicU64,
    number: Cell<u32>,
    table: Cell<*const Thread>,
    depth: AtomicU32,
    /// Time that this thread has spent on new stacks, ticks; for who sets it to 0 before.
    pub(crate) aside: Cell<u64>,
    /// Counts what replaces something that was known.
    way: Cell<usize>,
    /// Where this thread's stack lies.
    low: Cell<usize>,
    high: Cell<usize>,
    held: [Held; HELD],
    pub(crate) gaps: Gaps,
    pub(crate) index: Index,
    pub(crate) recent: [super::place::Recent; super::place::RECENT],
    pub(crate) places: [Place; super::place::PLACES],
    pub(crate) known: [Known; super::place::KNOWN],
}

impl Own {
    #[inline(always)]
    pub(crate) fn table(&self) -> &Thread {
        // SAFETY: set before anybody gets this; the file stays mapped.
        unsafe { &*self.table.get() }
    }

    #[inline(always)]
    pub(crate) fn number(&self) -> u32 {
        self.number.get()
    }

    pub(crate) fn next_way(&self) -> usize {
        self.way.replace(self.way.get().wrapping_add(1))
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { low: self.low.get(), high: self.high.get() }
    }

    /// The thread.
    pub(crate) fn id(&self) -> u32 {
        self.user.load(Relaxed) as u32
    }

    /// What it knows of a lock with this hash.
    #[inline(always)]
    pub(crate) fn recent_at(&self, hash: usize) -> &super::place::Recent {
        &self.recent[hash % super::place::RECENT]
    }

    #[inline(always)]
    pub(crate) fn holds_anything(&self) -> bool {
        self.depth.load(Relaxed) != 0
    }

    fn held(&self) -> &[Held] {
        &self.held[..(self.depth.load(Relaxed) as usize).min(HELD)]
    }

    /// What it holds: what it took last, as much as readers are told.
    pub(crate) fn latest_held(&self) -> impl Iterator<Item = Hold> + '_ {
        let held = self.held();
        let is_true = |held: &&Held| held.address.load(Relaxed) != 0;
        held[held.len().saturating_sub(HOLDS)..].iter().filter(is_true).map(|held| {
            let facts = held.facts.get();
            Hold { lock: facts.lock, stack: facts.stack }
        })
    }

    /// What this thread holds at `address`.
    #[inline(always)]
    pub(crate) fn find(&self, address: usize) -> Option<usize> {
        self.held().iter().rposition(|held| held.address.load(Relaxed) == address)
    }

    #[inline(always)]
    pub(crate) fn at(&self, held: usize) -> &Held {
        &self.held[held]
    }

    /// Notes a lock that this thread has now; whether there was room.
    #[inline(always)]
    pub(crate) fn push(&self, address: usize, facts: Facts) -> bool {
        if self.depth.load(Relaxed) as usize == HELD {
            self.remove_stale();
        }
        let depth = self.depth.load(Relaxed);
        let Some(held) = self.held.get(depth as usize) else { return false };
        held.stack.store(facts.stack, Relaxed);
        held.again.set(0);
        held.facts.set(facts);
        held.address.store(address, Relaxed);
        self.depth.store(depth + 1, Release);
        true
    }

    /// Takes a note away: that at the end takes its place.
    #[inline(always)]
    pub(crate) fn remove(&self, at: usize) -> Facts {
        let facts = self.held[at].facts.get();
        let Some(last) = self.held().len().checked_sub(1) else { return facts };
        if at != last {
            let (to, from) = (&self.held[at], &self.held[last]);
            to.address.store(0, Relaxed);
            to.stack.store(from.stack.load(Relaxed), Relaxed);
            to.again.set(from.again.get());
            to.facts.set(from.facts.get());
            to.address.store(from.address.load(Relaxed), Relaxed);
        }
        self.depth.store(last as u32, Relaxed);
        facts
    }

    /// Takes those away of which another thread has found out that they are not true ([`Own::forget_stale`]).
    #[cold]
    #[inline(never)]
    fn remove_stale(&self) {
        while let Some(at) = self.find(0) {
            self.remove(at);
        }
    }

    /// For a thread that has the lock at `address` for itself: that this one holds it is not true.
    pub(crate) fn forget_stale(&self, address: usize) {
        let depth = (self.depth.load(Acquire) as usize).min(HELD);
        for held in &self.held[..depth] {
            // Its thread may be moving notes: then this does nothing, or finds the same note in its new place.
            let _ = held.address.compare_exchange(address, 0, Relaxed, Relaxed);
        }
    }

    /// Takes all notes away.
    pub(crate) fn take_all(&self, mut with: impl FnMut(Facts)) {
        let held = self.held();
        self.depth.store(0, Relaxed);
        held.iter().for_each(|held| with(held.facts.get()));
    }

    /// For other threads: the stack with which this thread took the lock at `address`, if it holds it.
    pub(crate) fn stack_of_holder(&self, address: usize) -> Option<u32> {
        let depth = (self.depth.load(Acquire) as usize).min(HELD);
        let held = self.held[..depth].iter().find(|held| held.address.load(Relaxed) == address)?;
        Some(held.stack.load(Relaxed))
    }

    /// Takes it over for `thread`, if nobody has since `user` was read.
    fn take_over(&self, user: u64, thread: u32) -> bool {
        let next = ((user >> 32).wrapping_add(1) << 32) | u64::from(thread);
        self.user.compare_exchange(user, next, AcqRel, Relaxed).is_ok()
    }
}

impl Recorder {
    /// The calling thread's own, if the recorder is not at work in it already; and it is from now on, until
    /// [`Recorder::leave`].
    #[inline(always)]
    pub fn enter(&self) -> Option<&Own> {
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
        if own.is_null() {
            return self.first_entry();
        }
        // SAFETY: such memory is never given back.
        Some(unsafe { &*own })
    }

    /// As [`Recorder::enter`], if that needs no more than a look.
    #[inline(always)]
    pub fn enter_fast(&self) -> Option<&Own> {
        let local = here();
        let own = local.own.get();
        if local.is_busy.get() != 0 || own.is_null() || !self.alive.get() {
            return None;
        }
        local.is_busy.set(1);
        compiler_fence(SeqCst);
        // SAFETY: such memory is never given back.
        Some(unsafe { &*own })
    }

    /// The recorder is not at work in this thread any more.
    #[inline(always)]
    pub fn leave(&self) {
        compiler_fence(SeqCst);
        here().is_busy.set(0);
    }

    #[cold]
    #[inline(never)]
    fn count_nested(&self) {
        if let Some(header) = self.file.header().filter(|_| self.alive.get()) {
            header.nested.fetch_add(1, Relaxed);
        }
    }
}
