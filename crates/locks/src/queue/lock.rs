//! The queue lock.
//!
//! A three-state futex lock (Drepper, "Futexes Are Tricky", mutex 3) that is held for a few dozen
//! instructions, by a first waiter also for the barrier of A1. It spins a little and then sleeps, so a preempted or low-priority holder never makes others
//! burn their slice. A real-time thread lends its priority to the holder, where the platform can do that
//! ([`wait_for_queue`](spinpark_platform::Futex::wait_for_queue)). A thread that can do without the queue
//! gives up after a time: its holder may be stopped.
//!
//! # State
//!
//! | value of bits 0–1 | name         | held? | sleepers? | left by                                          |
//! |-------------------|--------------|-------|-----------|--------------------------------------------------|
//! | 0                 | –            | no    | no        | any thread, to `LOCKED`; to 3 if it has slept    |
//! | 1                 | `LOCKED`     | yes   | no        | the holder; any thread, to 3                     |
//! | 3                 | + `SLEEPERS` | yes   | perhaps   | the holder, which then wakes one                 |
//!
//! Bit 2, `CONTENDED`, belongs to the lock that has the queue, which sets it as the queue's guard is dropped;
//! the lock's holder also sets it alone (`begin_contended`, `restore_contended`). Locking the queue clears
//! it, while `LOCKED` has the same effect, and `was_contended` remembers it. See A1 in [`core`](crate::core).
//!
//! Bit 3, `SERVED`: a wake pass has woken a waiter of this queue lately, so others are soon to rely on such a
//! one: a waiter that queues sets its timer at once (L3 in [`core`](crate::core)). Locking the queue clears
//! the bit, and `was_served` remembers it.
//!
//! Bit 4, `ASKED`, bits 5–9, `PINS`, and bit 10, `PINS_SLEEPERS`, are set only while the queue is locked, all but
//! the last by threads that do not wait for the holder:
//!
//! - `ASKED`: the holder makes a wake pass once more before it unlocks.
//! - `PINS`: the number of threads that have asked and are about to change the owner's word. The holder waits
//!   for them before it makes a wake pass and unlocks; until then it keeps the memory alive for them (V1 in
//!   [`core`](crate::core)). One thread more than can be counted sleeps until the last of them has unpinned, or the
//!   holder unlocks. In a condition variable's queue: the number of signals that are left to the holder, and `ASKED` is
//!   a broadcast.
//! - `PINS_SLEEPERS`: threads sleep until the last pin has gone, among those that want the queue.
//!
//! Bits 11–31 are the process generation of the last holder. A thread that finds another one lives in a
//! forked child: holder and waiters are threads of the parent, so it takes the lock over and empties the
//! list.
//!
//! # Orderings
//!
//! | operation            | order   | pairs with       | because                                                     |
//! |----------------------|---------|------------------|-------------------------------------------------------------|
//! | lock: CAS            | Acquire | unlock           | the list as the last holder left it                         |
//! | set `SLEEPERS`: CAS  | Relaxed | –                | only tells the holder to wake; the sleeper checks the value |
//! | set `PINS_SLEEPERS`  | Relaxed | –                | only tells the last that unpins, as above                   |
//! | unlock: CAS          | Release | lock, is current | publishes the list, and the word that goes with it          |
//! | ask, pin: CAS        | Release | is asked         | the holder's wake pass sees what the asking thread wrote    |
//! | ask for nothing: CAS | Relaxed | –                | writes nothing; only proves that the queue is still locked  |
//! | unpin: sub           | Release | is asked         | as above, and the release that was made meanwhile           |
//! | is asked: CAS        | Acquire | ask, unpin       | as above                                                    |
//! | is current: load     | Acquire | unlock           | flags set after it must not be wiped by the adoption        |
//! | set `CONTENDED`: CAS | Relaxed | –                | read by the same thread, or through a CAS of this word      |
//! | clear it: CAS        | Acquire | unlock           | the queue's last holder comes before the caller's check     |
//!
//! Checked by: `verify` (every model of a lock runs through it; its own model has the mutant that re-locks
//! with `LOCKED` after a sleep; the last pin that wakes no thread is a mutant of the simulator's), native stress with 256 threads.

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use spinpark_platform::{
    AtomicU32, Clock, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform,
};

use super::WaitQueue;

/// A thread has the queue locked.
pub const LOCKED: u32 = 1;
/// Along with `LOCKED`: threads sleep until it is unlocked, perhaps.
pub const SLEEPERS: u32 = 2;
/// The lock of the queue is or was contended: its releases are read-modify-writes (A4 in `core`).
pub const CONTENDED: u32 = 4;
/// A wake pass has woken a waiter lately.
pub const SERVED: u32 = 8;
/// The holder makes a wake pass once more.
pub const ASKED: u32 = 16;
/// One thread that is about to change the owner's word (V1 in `core`).
pub const PIN: u32 = 32;
/// How many of those there are.
pub const PINS: u32 = 0x1f * PIN;
/// Threads sleep until the last pin has gone.
pub const PINS_SLEEPERS: u32 = 1 << 10;
const GENERATION_SHIFT: u32 = 11;
const STATE: u32 = (1 << GENERATION_SHIFT) - 1;
/// Either says that the queue is or may be contended.
pub(crate) const LOCKED_OR_CONTENDED: u32 = LOCKED | CONTENDED;

/// What a thread that finds the queue locked leaves to the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Nothing: the caller does without.
    Nothing,
    /// To make a wake pass; of a condition variable: to broadcast.
    WakePass,
    /// To make a wake pass, not before the calling thread [unpins](WaitQueue::unpin) it.
    PinnedWakePass,
    /// Of a condition variable: to signal.
    Signal,
}

/// What other threads have asked the holder for.
#[derive(Clone, Copy)]
pub(crate) struct Asked(u32);

impl Asked {
    /// Of a condition variable: how many signals, or `u32::MAX` for a broadcast.
    pub(crate) fn signals(self) -> u32 {
        if self.0 & ASKED != 0 {
            u32::MAX
        } else {
            (self.0 & PINS) / PIN
        }
    }
}

/// The locked queue, for its holder. A [`QueueGuard`] unlocks it.
#[must_use = "the queue stays locked"]
pub(crate) struct LockedQueue<'a, P: Platform> {
    pub(super) queue: &'a WaitQueue<P>,
    inherited: bool,
    /// Whether the holder keeps the owner of the queue alive until it has unlocked that: it waits for a lock,
    /// or holds it.
    keeps_alive: bool,
    /// Whether `CONTENDED` was set when the queue was locked, or counts as set then
    /// ([`LockedQueue::force_slow_release`]).
    was_contended: bool,
    /// Whether a wake pass has woken a waiter lately: `SERVED` when the queue is unlocked.
    served: bool,
    /// Whether the list has only got longer: a waiter that came has joined it.
    joined: bool,
    /// The holder stays on its thread.
    not_send: PhantomData<*const ()>,
}

impl<P: Platform> WaitQueue<P> {
    /// Whether the queue is known to be this process' own, not its parent's from before a fork.
    ///
    /// In a forked child a locked queue is not known to be: its holder may be the thread that is about to
    /// make the owner's word right. `false` is always safe; a caller that gets it locks the queue once.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        let generation = P::generation();
        let seen = self.lock.load(Acquire);
        seen >> GENERATION_SHIFT == generation && (generation == 0 || seen & LOCKED == 0)
    }

    /// The word whose bits [`LOCKED_OR_CONTENDED`] say that the queue is or may be contended.
    #[inline]
    pub(crate) fn guard_word(&self) -> &P::AtomicU32 {
        &self.lock
    }

    /// Whether the queue is uncontended; a hint.
    #[inline]
    pub(crate) fn is_uncontended(&self) -> bool {
        self.lock.load(Relaxed) & LOCKED_OR_CONTENDED == 0
    }

    /// Sees to it that `CONTENDED` is set, for the holder of the lock, whose release can be no plain store
    /// under way. Returns whether it was not set before. `None`: nothing was done, because the queue is
    /// locked just now, or because it was not set and `may_set` is false.
    pub(crate) fn begin_contended(&self, may_set: bool) -> Option<bool> {
        let seen = self.lock.load(Relaxed);
        if seen & LOCKED != 0 {
            return None;
        }
        if seen & CONTENDED != 0 {
            return Some(false);
        }
        if !may_set {
            return None;
        }
        // Relaxed: this thread's own release reads it; a holder of the queue learns it from the
        // compare-exchange that locks.
        self.lock.compare_exchange(seen, seen | CONTENDED, Relaxed, Relaxed).ok().map(|_| true)
    }

    /// Clears `CONTENDED`, if the queue is not locked. The caller then checks (with a read-modify-write)
    /// whether what it stood for has really ended.
    pub(crate) fn end_contended(&self) {
        let seen = self.lock.load(Relaxed);
        if seen & LOCKED_OR_CONTENDED == CONTENDED {
            // Acquire: what the last holder of the queue wrote comes before that check.
            let _ = self.lock.compare_exchange(seen, seen & !(CONTENDED | SERVED), Acquire, Relaxed);
        }
    }

    /// Restores `CONTENDED`, for the holder of the lock that has cleared it too early. A thread that has the
    /// queue locked does so as it unlocks.
    #[cold]
    pub(crate) fn restore_contended(&self) {
        let mut seen = self.lock.load(Relaxed);
        while seen & LOCKED_OR_CONTENDED == 0 {
            // Relaxed: as in `begin_contended`.
            match self.lock.compare_exchange(seen, seen | CONTENDED, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Locks the queue, or, if another thread has it locked, leaves `ask` to that thread, in one step, and
    /// returns `None`. Does not wait for it.
    #[inline(never)] // for the drop-in's size
    pub(crate) fn lock_or(&self, ask: Ask) -> Option<LockedQueue<'_, P>> {
        let generation = P::generation() << GENERATION_SHIFT;
        let mut seen = self.lock.load(Relaxed);
        let mut slept = 0;
        loop {
            let inherited = seen & !STATE != generation;
            let is_free = seen & LOCKED == 0 || inherited;
            let (new, order) = match ask {
                _ if is_free => (generation | LOCKED, Acquire),
                Ask::Nothing => (seen, Relaxed),
                Ask::Signal if seen & PINS != PINS => (seen + PIN, Release),
                Ask::WakePass | Ask::Signal => (seen | ASKED, Release),
                // More threads than can be counted are in the middle of a release, and may wait for this
                // one's CPU: it sleeps until the last of them has unpinned. Others may sleep alongside it, as
                // in `lock`.
                Ask::PinnedWakePass if seen & PINS == PINS => {
                    seen = self.sleep(seen, SLEEPERS | PINS_SLEEPERS, u64::MAX);
                    slept = SLEEPERS;
                    continue;
                }
                Ask::PinnedWakePass => ((seen | ASKED) + PIN, Release),
            };
            // Also where it changes nothing: it sees to it that the holder has not unlocked.
            match self.lock.compare_exchange(seen, new | slept, order, Relaxed) {
                Ok(_) => return is_free.then(|| self.enter(seen, inherited, false)),
                Err(now) => seen = now,
            }
        }
    }

    /// Lets the holder go on for which [`Ask::PinnedWakePass`] was left. The caller's last access to the
    /// queue.
    pub(crate) fn unpin(&self) {
        let key: *const P::AtomicU32 = &self.lock; // taken before: the queue may die after it
        let seen = self.lock.fetch_sub(PIN, Release);
        // Else none sleeps for this: releases that find the queue locked by a thread that does not run are
        // frequent, and so are sleepers for the queue then.
        if seen & (PINS | PINS_SLEEPERS) == PIN | PINS_SLEEPERS {
            P::futex_wake(key, u32::MAX); // the holder, say, among those that want the queue
        }
    }

    /// Locks the queue.
    pub(crate) fn lock(&self) -> LockedQueue<'_, P> {
        loop {
            if let Some(locked) = self.lock_within(&|| u64::MAX) {
                return locked;
            }
        }
    }

    /// Locks the queue, or gives up `span` ns after it would first sleep. `span` is called at that time; 0
    /// means that the thread does not sleep, `u64::MAX` that it waits for as long as it takes.
    #[inline(never)] // for the drop-in's size
    pub(crate) fn lock_within(&self, span: &dyn Fn() -> u64) -> Option<LockedQueue<'_, P>> {
        let generation = P::generation() << GENERATION_SHIFT;
        let mut mine = generation | LOCKED;
        let mut polls = P::TUNING.queue_polls;
        let mut end = None;
        let mut gives_up = false;
        let mut seen = self.lock.load(Relaxed);
        loop {
            let inherited = seen & !STATE != generation;
            if seen & LOCKED == 0 || inherited {
                P::locks_queue(&self.lock);
                match self.lock.compare_exchange_weak(seen, mine, Acquire, Relaxed) {
                    Ok(_) => return Some(self.enter(seen, inherited, true)),
                    Err(now) => seen = now,
                }
                P::unlocked_queue(&self.lock);
            } else if polls > 0 {
                polls -= 1;
                P::spin_hint();
                seen = self.lock.load(Relaxed);
            } else if gives_up {
                // The wake-up of a thread that has slept, and gives up, may have been meant for one that
                // sleeps still.
                let with_sleepers = mine & SLEEPERS | seen;
                if seen == with_sleepers
                    || self.lock.compare_exchange(seen, with_sleepers, Relaxed, Relaxed).is_ok()
                {
                    return None;
                }
                seen = self.lock.load(Relaxed);
            } else {
                let end = *end.get_or_insert_with(|| match span() {
                    span @ (0 | u64::MAX) => span,
                    span => P::now(Clock::Monotonic).saturating_add(span),
                });
                let left = match end {
                    0 | u64::MAX => end,
                    end => end.saturating_sub(P::now(Clock::Monotonic)),
                };
                if left == 0 {
                    gives_up = true;
                    continue;
                }
                seen = self.sleep(seen, SLEEPERS, left);
                // Others may sleep alongside us: a thread that has slept owes them a wake (a woken waiter
                // that re-locks with the uncontended value loses one).
                mine = generation | LOCKED | SLEEPERS;
            }
        }
    }

    /// Sleeps until the holder has unlocked, or, if `sleepers` says so, the last pin has gone, or for `span` ns;
    /// returns the value to go on with.
    #[cold]
    #[inline(never)]
    fn sleep(&self, seen: u32, sleepers: u32, span: u64) -> u32 {
        let with_sleepers = seen | sleepers;
        if seen == with_sleepers || self.lock.compare_exchange(seen, with_sleepers, Relaxed, Relaxed).is_ok()
        {
            P::wait_for_queue(&self.lock, with_sleepers, span);
        }
        self.lock.load(Relaxed)
    }

    /// The locked queue whose lock word held `seen` before it was locked.
    fn enter(&self, seen: u32, inherited: bool, keeps_alive: bool) -> LockedQueue<'_, P> {
        let was_contended = seen & CONTENDED != 0 && !inherited;
        let served = seen & SERVED != 0 && !inherited;
        P::locks_queue(&self.lock);
        let locked = LockedQueue {
            queue: self,
            inherited,
            keeps_alive,
            was_contended,
            served,
            joined: false,
            not_send: PhantomData,
        };
        if inherited {
            locked.set_head(core::ptr::null()); // Q5
        }
        locked
    }
}

#[cold]
#[inline(never)]
fn wake_one<P: Platform>(key: *const P::AtomicU32) {
    P::futex_wake(key, 1);
}

impl<P: Platform> LockedQueue<'_, P> {
    /// Whether this process found the queue as its parent had left it at the fork: the list was emptied just
    /// now, and what the owner's word says about waiters is wrong.
    pub(crate) fn was_inherited(&self) -> bool {
        self.inherited
    }

    /// Whether `CONTENDED` was set when the queue was locked: no release by a plain store has begun since
    /// (A1).
    pub(crate) fn was_contended(&self) -> bool {
        self.was_contended
    }

    /// Whether the list has only got longer since the queue was locked: no waiter that kept others out has left
    /// it, or has ended its part.
    pub(crate) fn has_joined(&self) -> bool {
        self.joined
    }

    /// See [`LockedQueue::has_joined`]. Not so: other threads have asked for a wake pass.
    pub(crate) fn set_joined(&mut self, joined: bool) {
        self.joined = joined;
    }

    /// Whether a wake pass has woken a waiter of the queue lately.
    pub(crate) fn was_served(&self) -> bool {
        self.served
    }

    /// A wake pass has woken a waiter; or a waiter has found, long after that, that no other is owed to come.
    pub(crate) fn set_served(&mut self, served: bool) {
        self.served = served;
    }

    /// Whether the holder, which may have released the lock meanwhile, keeps that alive.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.keeps_alive
    }

    /// The holder is about to release the lock.
    pub(crate) fn releases(&mut self) {
        self.keeps_alive = false;
    }

    /// The calling thread holds the lock whose queue this is for writing: as if it had set `CONTENDED` before
    /// it locked the queue. Its own release is no plain store from now on.
    pub(crate) fn force_slow_release(&mut self) {
        self.was_contended = true;
    }

    /// Unlocks, with or without `CONTENDED`, and returns `None`; the holder then lets go of it. Or, with the
    /// queue still locked, returns what other threads have asked the holder for: it does that, and tries
    /// again. `waits`: pins are to be waited for.
    pub(crate) fn unlock(&self, contended: bool, waits: bool) -> Option<Asked> {
        let queue = self.queue;
        let key: *const P::AtomicU32 = &queue.lock; // taken before the unlock: the queue may die after it
        let generation = P::generation() << GENERATION_SHIFT;
        let contended = if contended { CONTENDED } else { 0 };
        let free = generation | contended | if self.served { SERVED } else { 0 };
        let mut polls = P::TUNING.queue_polls;
        let mut seen = generation | LOCKED; // the usual value: no load is needed
        loop {
            // In a forked child, threads of the parent may have asked.
            let asked = seen & (ASKED | PINS) != 0 && seen & !STATE == generation;
            if asked && waits && seen & PINS != 0 {
                if polls > 0 {
                    polls -= 1;
                    P::spin_hint();
                    seen = queue.lock.load(Relaxed);
                } else {
                    seen = queue.sleep(seen, SLEEPERS | PINS_SLEEPERS, u64::MAX);
                }
                continue;
            }
            let (new, order) =
                if asked { (seen & !(ASKED | PINS | PINS_SLEEPERS), Acquire) } else { (free, Release) };
            match queue.lock.compare_exchange(seen, new, order, Relaxed) {
                Ok(_) if asked => return Some(Asked(seen)),
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        P::unlocked_queue(key);
        if seen & SLEEPERS != 0 {
            wake_one::<P>(key);
        }
        None
    }
}

// ---- the guard: whatever the queue belongs to, dropping it does what other threads have asked for, and
// unlocks

/// What a wait queue belongs to, with the word that says something about its waiters: a lock, or a condition
/// variable.
pub(crate) trait HasQueue<P: Platform>: Sized {
    fn queue(&self) -> &WaitQueue<P>;

    /// Q5: makes the word say that there are no waiters. The queue, which is locked, was the parent's.
    fn forget_waiters(&self);

    /// Does what other threads have asked for, and unlocks.
    fn unlock_queue(&self, queue: &mut LockedQueue<'_, P>);

    /// Locks the queue, and makes the word agree with it if it was the parent's.
    fn lock_queue(&self) -> QueueGuard<'_, P, Self> {
        QueueGuard::new(self, self.queue().lock())
    }

    /// As [`HasQueue::lock_queue`], unless another thread has the queue locked while this one sleeps for
    /// `span` ns: [`WaitQueue::lock_within`].
    fn lock_queue_within(&self, span: &dyn Fn() -> u64) -> Option<QueueGuard<'_, P, Self>> {
        self.queue().lock_within(span).map(|queue| QueueGuard::new(self, queue))
    }

    /// As [`HasQueue::lock_queue`], unless another thread has the queue locked.
    fn try_lock_queue(&self) -> Option<QueueGuard<'_, P, Self>> {
        self.lock_queue_or(Ask::Nothing)
    }

    /// As [`HasQueue::lock_queue`]; or leaves `ask` to the thread that has the queue locked.
    fn lock_queue_or(&self, ask: Ask) -> Option<QueueGuard<'_, P, Self>> {
        self.queue().lock_or(ask).map(|queue| QueueGuard::new(self, queue))
    }
}

/// The locked queue of `owner`.
pub(crate) struct QueueGuard<'a, P: Platform, O: HasQueue<P>> {
    owner: &'a O,
    queue: LockedQueue<'a, P>,
}

impl<'a, P: Platform, O: HasQueue<P>> QueueGuard<'a, P, O> {
    /// The guard again, for a thread that has left its call by unwinding with the queue locked.
    ///
    /// # Safety
    ///
    /// `self` is not used again, and not dropped.
    #[allow(unsafe_code)] // the frame that owns the guard does not go on
    pub(crate) unsafe fn taken_over(&self) -> Self {
        // SAFETY: the caller vouches for there being one guard in use.
        unsafe { core::ptr::read(self) }
    }

    fn new(owner: &'a O, queue: LockedQueue<'a, P>) -> Self {
        if queue.was_inherited() {
            owner.forget_waiters();
        }
        Self { owner, queue }
    }
}

impl<'a, P: Platform, O: HasQueue<P>> Deref for QueueGuard<'a, P, O> {
    type Target = LockedQueue<'a, P>;

    fn deref(&self) -> &Self::Target {
        &self.queue
    }
}

impl<P: Platform, O: HasQueue<P>> DerefMut for QueueGuard<'_, P, O> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.queue
    }
}

impl<P: Platform, O: HasQueue<P>> Drop for QueueGuard<'_, P, O> {
    fn drop(&mut self) {
        self.owner.unlock_queue(&mut self.queue);
    }
}
