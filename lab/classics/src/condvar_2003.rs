//! The condition variable that glibc had from 2003 to 2017: an internal lock, counters under it, and one
//! futex.
//!
//! Origin: NPTL, as document 003 describes it, with the three ways to signal that it measures ([`Orig`],
//! [`Requeue`], [`WakeByOp`]). The broadcast moves waiters to the mutex, as glibc's did.
//!
//! Gives: no lost wake-up; waits never end for no reason. Does not give: order (a thread that starts to wait
//! after a signal can take that signal from one that waited before: glibc bug 13165, for which the design was
//! given up in 2.25); destruction right after a broadcast: the woken waiters use the variable once more.
//!
//! # State
//!
//! The internal lock `lock` is a [`Mutex`]; `futex` is what waiters sleep on. Under the lock:
//!
//! | counter      | counts                                                            | added to by                             |
//! |--------------|-------------------------------------------------------------------|-----------------------------------------|
//! | `started`    | waits that have begun (`total_seq`)                               | a waiter                                |
//! | `released`   | waits that may end (`wakeup_seq`)                                 | a signal; a broadcast, all; a timeout   |
//! | `ended`      | those of them that have ended (`woken_seq`)                       | a waiter; a broadcast, all              |
//! | `broadcasts` | broadcasts that released at least one waiter                      | a broadcast                             |
//! | `mutex`      | the word of the last waiter's mutex, as a key                     | a waiter                                |
//!
//! # Transitions
//!
//! ```text
//! out --W1 count--> asleep --W2 released and not all ended--> ended
//!                     |  ^ \--W3 a broadcast since W1-------> ended
//!                     +--+  \-W4 deadline: releases itself--> ended
//!                     W5 woken for nothing
//! S1 signal: one more released, and one woken                 B1 broadcast: all released and ended, one woken, all others
//!                                                                moved to the mutex
//! ```
//!
//! # Invariants
//!
//! - **N1** The counters are touched, and `futex` is changed, only under the internal lock.
//! - **N2** `ended` ≤ `released` ≤ `started`. A waiter that finds `ended` < `released`, and a release since
//!   its own W1, ends.
//! - **N3** `futex` = `started` + `released`, in 32 bits. So each W1, S1 and B1 changes it, and a waiter that
//!   read it under the lock falls asleep only if nothing has happened since.
//! - **N4** A waiter holds the internal lock from before it gives up its mutex until it is counted. So a
//!   thread that signals with the mutex, or after it has held the mutex, finds the wait.
//! - **N5** Only [`Requeue`]: a signal moves its waiter to the internal lock, unmarked, and wakes one there
//!   as it unlocks. A thread that comes from a sleep takes the lock with the mark (M3), so each of them wakes
//!   the next one: as long as a thread sleeps there unmarked, another thread is on its way to wake it.
//! - **N6** A broadcast wakes one and moves the others to the mutex, unmarked. A thread that comes from a
//!   wait takes the mutex with the mark (M3), with the same consequence.
//!
//! # Orderings
//!
//! | operation                  | order   | pairs with   | because                                                    |
//! |----------------------------|---------|--------------|------------------------------------------------------------|
//! | counters                   | –       | –            | N1: plain memory under the internal lock                   |
//! | `futex`: add, store, load  | Relaxed | –            | N1; the sleeper's comparison is one step with its sleep, and |
//! |                            |         |              | what it means is read again under the lock                 |
//! | internal lock              | see [`Mutex`]   |       | the unlock by the kernel ([`WakeByOp`]) is AcqRel          |
//!
//! Counters have 64 bits and never wrap. `futex` does: a waiter that is off its CPU between reading it and
//! falling asleep while exactly 2^32 waits and signals come misses them all, as in the original.
//!
//! Checked by: `verify` (loom, with the mutant that document 003 draws), native stress; `linux` tests the
//! kernel calls.

use core::marker::PhantomData;

use spinpark_platform::{
    AtomicU32, Cell, Comparison, Deadline, Event, Operand, Ordering::Relaxed, Platform, Wait, WakeOp, WordOp,
};

use crate::mutex_2003::Mutex;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitResult {
    /// By a signal or a broadcast.
    Signalled,
    /// By its deadline; no signal was used up.
    TimedOut,
}

/// What the internal lock protects.
#[derive(Clone, Copy, Default)]
struct Counters {
    started: u64,
    released: u64,
    ended: u64,
    broadcasts: u64,
}

/// A condition variable with signals of the kind `S`, for mutexes of the kind [`Mutex`].
pub struct Condvar<P: Platform, S: Signalling = WakeByOp> {
    lock: Mutex<P>,
    futex: P::AtomicU32,
    counters: P::Cell<Counters>,
    mutex: P::Cell<*const P::AtomicU32>,
    signalling: PhantomData<S>,
}

// SAFETY: N1: the counters are touched only under the internal lock; `mutex` is a key that is never
// dereferenced.
unsafe impl<P: Platform, S: Signalling> Send for Condvar<P, S> {}
// SAFETY: as for `Send`.
unsafe impl<P: Platform, S: Signalling> Sync for Condvar<P, S> {}

impl<P: Platform, S: Signalling> Condvar<P, S> {
    /// A condition variable without waiters.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lock: Mutex::new(),
            futex: AtomicU32::new(0),
            counters: Cell::new(Counters::default()),
            mutex: Cell::new(core::ptr::null()),
            signalling: PhantomData,
        }
    }

    /// The counters; the caller holds the internal lock (N1).
    fn read(&self) -> Counters {
        // SAFETY: N1: the caller holds the internal lock.
        self.counters.with(|counters| unsafe { *counters })
    }

    /// Changes the counters and sets `futex` accordingly (N3); the caller holds the internal lock (N1).
    fn write(&self, counters: Counters) {
        debug_assert!(counters.ended <= counters.released && counters.released <= counters.started, "N2");
        // SAFETY: N1: the caller holds the internal lock.
        self.counters.with_mut(|place| unsafe { *place = counters });
        self.futex.store(counters.started.wrapping_add(counters.released) as u32, Relaxed);
    }

    /// Waits for a signal, with `mutex` (held) given up meanwhile; returns with it held. Only ever use one
    /// mutex at a time.
    pub fn wait(&self, mutex: &Mutex<P>, deadline: Option<Deadline>) -> WaitResult {
        self.lock.lock(); // N4
        mutex.unlock();
        let mut at_start = self.read();
        at_start.started += 1;
        self.write(at_start); // W1
        // SAFETY: N1: this thread holds the internal lock.
        self.mutex.with_mut(|key| unsafe { *key = mutex.word() });
        let result = self.sleep(&at_start, deadline);
        self.lock.unlock();
        mutex.lock_marked(); // N6
        result
    }

    /// Sleeps until the wait ends; the caller holds the internal lock before and after.
    fn sleep(&self, at_start: &Counters, deadline: Option<Deadline>) -> WaitResult {
        loop {
            let value = self.futex.load(Relaxed);
            self.lock.unlock();
            P::event(Event::Parked);
            let woken = P::futex_wait(&self.futex, value, deadline); // N3
            S::relock(&self.lock); // N5
            let mut now = self.read();
            if now.broadcasts != at_start.broadcasts {
                return WaitResult::Signalled; // W3: the broadcast has counted this end
            }
            let result = if now.released != at_start.released && now.ended != now.released {
                WaitResult::Signalled // W2
            } else if woken == Wait::TimedOut {
                P::event(Event::TimedOut);
                now.released += 1; // W4
                WaitResult::TimedOut
            } else {
                continue; // W5
            };
            now.ended += 1;
            self.write(now);
            return result;
        }
    }

    /// Ends one wait, if there is any (S1).
    pub fn signal(&self) {
        self.lock.lock();
        let mut now = self.read();
        if now.started > now.released {
            now.released += 1;
            self.write(now);
            S::wake_and_unlock(&self.futex, &self.lock);
        } else {
            self.lock.unlock();
        }
    }

    /// Ends all waits (B1): wakes one waiter and moves the others to the mutex.
    pub fn broadcast(&self) {
        self.lock.lock();
        let mut now = self.read();
        if now.started == now.released {
            self.lock.unlock();
            return;
        }
        now.released = now.started;
        now.ended = now.started;
        now.broadcasts += 1;
        self.write(now);
        let value = self.futex.load(Relaxed);
        // SAFETY: N1: this thread holds the internal lock.
        let mutex = self.mutex.with(|key| unsafe { *key });
        self.lock.unlock();
        // A thread that starts to wait now changes the futex, and must not be moved: then all are woken, and
        // it sleeps again (W5).
        match P::futex_requeue(&self.futex, Some(value), 1, mutex, u32::MAX) {
            None => {
                P::futex_wake(&self.futex, u32::MAX);
            }
            Some(count) if count > 1 => P::event(Event::MovedWaiter),
            Some(_) => {}
        }
    }
}

impl<P: Platform, S: Signalling> Default for Condvar<P, S> {
    fn default() -> Self {
        Self::new()
    }
}

/// How a signal wakes its waiter and gives up the internal lock.
pub trait Signalling: Send + Sync + 'static {
    /// Ends the sleep of one thread on `futex`, and unlocks `lock`, which the caller holds.
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>);

    /// Takes `lock` after a sleep on the condition variable's futex.
    fn relock<P: Platform>(lock: &Mutex<P>);
}

/// A wake, then an unlock: glibc from September 2003 to September 2005 ("nptl-orig" in document 003).
///
/// A waiter that runs at once finds the lock held, sleeps again, and has slept there, so it leaves with a
/// wake as well (mutex_2003.M2): five system calls for a signal, and the waiter is switched to twice.
#[derive(Clone, Copy, Debug)]
pub enum Orig {}

impl Signalling for Orig {
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>) {
        P::futex_wake(futex, 1);
        lock.unlock();
    }

    fn relock<P: Platform>(lock: &Mutex<P>) {
        lock.lock();
    }
}

/// The waiter is moved to the lock, and the unlock wakes it: "nptl-requeue" in document 003.
///
/// The waiter is switched to once, but there are still four system calls: the signal's unlock always wakes,
/// and so does that of a thread that comes back from a sleep, since it takes the lock with the mark (M3 of
/// the [mutex](Mutex)). Without that mark a wake-up is lost, as the document shows.
#[derive(Clone, Copy, Debug)]
pub enum Requeue {}

impl Signalling for Requeue {
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>) {
        match P::futex_requeue(futex, None, 0, lock.word(), 1) {
            Some(moved) => {
                if moved > 0 {
                    P::event(Event::MovedWaiter);
                }
                lock.unlock_and_wake();
            }
            None => Orig::wake_and_unlock(futex, lock),
        }
    }

    fn relock<P: Platform>(lock: &Mutex<P>) {
        lock.lock_marked();
    }
}

/// The kernel unlocks before any woken thread runs: glibc from September 2005 to 2017 ("nptl-wake_op" in
/// document 003).
///
/// Two system calls, the signaller's and the waiter's, and the waiter is switched to once.
#[derive(Clone, Copy, Debug)]
pub enum WakeByOp {}

/// T3 and T4 of the mutex, by the kernel: the word becomes 0, and one who sleeps there is woken if it was 2.
const UNLOCK: WakeOp = match WakeOp::new(WordOp::Set, Operand::Value(0), Comparison::Greater, 1) {
    Some(op) => op,
    None => panic!("small numbers fit"),
};

impl Signalling for WakeByOp {
    fn wake_and_unlock<P: Platform>(futex: &P::AtomicU32, lock: &Mutex<P>) {
        if P::futex_wake_op(futex, 1, lock.word(), UNLOCK, 1).is_none() {
            Orig::wake_and_unlock(futex, lock);
        }
    }

    fn relock<P: Platform>(lock: &Mutex<P>) {
        lock.lock();
    }
}
