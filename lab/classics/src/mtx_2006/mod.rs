//! FreeBSD's mutex of 2006: an owner and a flag in one word, a turnstile, spinning while the owner runs.
//!
//! Origin: `kern_mutex.c` of April 2006, the subject of document 004, with its profiling ([`profiling`]).
//! Gives: mutual exclusion; sleeping. A running thread may take a released lock before the waiter that was
//! woken for it, which then queues again as the youngest. Does not give: recursion (the original does).
//!
//! # State
//!
//! | word                 | name        | meaning                                      | left by                                |
//! |----------------------|-------------|----------------------------------------------|----------------------------------------|
//! | 0                    | `UNOWNED`   | free                                         | any thread, by CAS                     |
//! | token × 2            |             | held, turnstile empty                        | its owner, by CAS                      |
//! | token × 2 + 1        | `CONTESTED` | held, perhaps waiters in the turnstile       | its owner, under the chain's lock      |
//! | 1                    | `CONTESTED` | free, waiters in the turnstile               | the holder of the chain's lock         |
//!
//! # In memory
//!
//! A mutex is its word and what its profile adds, aligned as words are, wherever its owner puts it: the
//! original's `unp` lies among the data that it protects. Its turnstile is the waiters for its address in a
//! [`Chain`], which all mutexes share ([`Globals`]). So the size and the alignment of the mutex say on which
//! cache lines its neighbours lie, as they did there; [`profiling`] has the figures.
//!
//! # Invariants
//!
//! - **F1** A thread in the turnstile entered it while the word had an owner and `CONTESTED`, under the
//!   chain's lock; so that owner releases under the lock, and finds it.
//! - **F2** The word is `UNOWNED` only if the turnstile is empty, or will be when the release that holds its
//!   lock is over.
//! - **F3** All calls on a mutex are made with the same [`Globals`], and no thread waits for it while it
//!   moves.
//!
//! # Orderings
//!
//! | operation                       | order   | pairs with             | because                                           |
//! |---------------------------------|---------|------------------------|---------------------------------------------------|
//! | lock: CAS from `UNOWNED`        | Acquire | release                | the last critical section                         |
//! | claim: store                    | Relaxed | –                      | the chain's lock: the release held it, too        |
//! | mark: CAS to `CONTESTED`        | Relaxed | –                      | changes who releases how, under the lock (F1)     |
//! | unlock: CAS to `UNOWNED`        | Release | lock                   | this critical section                             |
//! | unlock under the lock: store    | Release | lock                   | as there                                          |
//! | reads of the word               | Relaxed | –                      | a CAS or the chain's lock follows                 |
//! | profile fields, counters        | Relaxed | –                      | plain there; they order nothing                   |
//!
//! The original spins without a pause instruction on processors that have none; here there is always the
//! platform's hint.
//!
//! Checked by: `verify` (`tests/it/classics.rs`), `tests/native/classics_stress.rs`.

pub mod delays;
mod globals;
pub mod profiling;

use core::marker::PhantomData;

use spinpark_platform::{
    AtomicU32, Clock, Event, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform,
};

use crate::RawLock;
use crate::delay::Delay;
use crate::wait::Oracle;
use delays::{Delays, Place};
use globals::Waiter;
pub use globals::{Chain, Ends, Globals, Holds};
use profiling::Padding;
pub use profiling::{Absent, Profiled, Profiling};

const UNOWNED: u32 = 0;
const CONTESTED: u32 = 1;

/// The word of a lock that `owner` holds.
const fn held_by(owner: u32) -> u32 {
    owner << 1
}

/// Its owner, or 0.
const fn owner(word: u32) -> u32 {
    word >> 1
}

/// The mutex. The machine's globals are the caller's, the same for every call (F3).
#[repr(C)]
pub struct Mtx<P: Platform, F: Profiling = Absent> {
    word: P::AtomicU32,
    padding: F::Padding<P>,
}

impl<P: Platform, F: Profiling> Mtx<P, F> {
    /// An unlocked mutex.
    pub fn new() -> Self {
        Self { word: AtomicU32::new(UNOWNED), padding: Padding::new() }
    }

    /// Acquires; waits as long as it takes. Acquire ordering.
    #[inline(always)]
    pub fn lock<const C: usize>(&self, globals: &Globals<P, C>) {
        if F::OUTLINES { self.lock_called(globals) } else { self.lock_inlined(globals) }
    }

    /// Releases; the calling thread holds it. Release ordering.
    #[inline(always)]
    pub fn unlock<const C: usize>(&self, globals: &Globals<P, C>) {
        if F::OUTLINES { self.unlock_called(globals) } else { self.unlock_inlined(globals) }
    }

    /// Acquires if it is free. Acquire ordering on success.
    pub fn try_lock<const C: usize>(&self, globals: &Globals<P, C>) -> bool {
        Self::delay(globals, Place::Before);
        let taken = self.take(P::thread_token());
        if taken {
            self.note_acquired(globals);
            Self::delay(globals, Place::Inside);
        }
        taken
    }

    #[inline(never)]
    fn lock_called<const C: usize>(&self, globals: &Globals<P, C>) {
        self.lock_inlined(globals);
    }

    #[inline(never)]
    fn unlock_called<const C: usize>(&self, globals: &Globals<P, C>) {
        self.unlock_inlined(globals);
    }

    #[inline(always)]
    fn lock_inlined<const C: usize>(&self, globals: &Globals<P, C>) {
        let me = P::thread_token();
        Self::delay(globals, Place::Before);
        if !self.take(me) {
            self.lock_slow(me, globals);
        }
        self.note_acquired(globals);
        Self::delay(globals, Place::Inside);
    }

    #[inline(always)]
    fn unlock_inlined<const C: usize>(&self, globals: &Globals<P, C>) {
        self.note_released(globals);
        let mine = held_by(P::thread_token());
        if self.word.compare_exchange(mine, UNOWNED, Release, Relaxed).is_err() {
            self.unlock_slow(globals);
        }
        Self::delay(globals, Place::After);
    }

    #[inline(always)]
    fn take(&self, me: u32) -> bool {
        self.word.compare_exchange(UNOWNED, held_by(me), Acquire, Relaxed).is_ok()
    }

    /// What threads wait for.
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    #[inline]
    fn chain<'a, const C: usize>(&self, globals: &'a Globals<P, C>) -> &'a Chain<P> {
        globals.chain(self.address())
    }

    #[cold]
    #[inline(never)]
    fn lock_slow<const C: usize>(&self, me: u32, globals: &Globals<P, C>) {
        let mut oracle = Oracle::new();
        let mut pause = Pause::<F>::new();
        while !self.take(me) {
            self.note_attempt();
            Self::delay(globals, Place::Attempt);
            let mut chain = self.chain(globals).lock();
            let seen = self.word.load(Relaxed);
            if seen == CONTESTED {
                self.word.store(held_by(me) | CONTESTED, Relaxed);
                return;
            }
            let is_marked = seen & CONTESTED != 0
                || (seen != UNOWNED
                    && self.word.compare_exchange(seen, seen | CONTESTED, Relaxed, Relaxed).is_ok());
            if !is_marked {
                drop(chain); // released meanwhile
                pause.poll(globals);
                continue;
            }
            if oracle.may_run::<P>(owner(seen)) {
                drop(chain);
                self.spin_on(owner(seen), globals, &mut oracle, &mut pause);
                continue;
            }
            P::event(Event::SpinLeftOffCpu);
            let node = Waiter::new(self.address());
            // SAFETY: L1: the node is in this frame, which it leaves after it was taken out and woken.
            unsafe { chain.push_back(&node) };
            drop(chain);
            node.schedule();
        }
    }

    /// Polls while `owned` holds the lock and runs.
    fn spin_on<const C: usize>(
        &self,
        owned: u32,
        globals: &Globals<P, C>,
        oracle: &mut Oracle,
        pause: &mut Pause<F>,
    ) {
        loop {
            oracle.pass(pause.poll(globals));
            if owner(self.word.load(Relaxed)) != owned || !oracle.may_run::<P>(owned) {
                return;
            }
        }
    }

    /// `CONTESTED` is set.
    #[cold]
    #[inline(never)]
    fn unlock_slow<const C: usize>(&self, globals: &Globals<P, C>) {
        let mut chain = self.chain(globals).lock();
        let is_mine = |address| address == self.address();
        // Spinners set the flag as well, so the turnstile may be empty.
        let oldest = chain.pop(is_mine);
        let are_more = chain.has(is_mine);
        self.word.store(if are_more { CONTESTED } else { UNOWNED }, Release);
        if let Some(oldest) = oldest {
            Self::delay(globals, Place::Wake);
            oldest.wake();
        }
    }
}

/// Between two looks of a spinner.
struct Pause<F>(Delay, PhantomData<F>);

impl<F: Profiling> Pause<F> {
    fn new() -> Self {
        Self(Delay::new(F::CPUS), PhantomData)
    }

    /// Returns how many polls it took beyond one.
    #[inline]
    fn poll<P: Platform, const C: usize>(&mut self, globals: &Globals<P, C>) -> u32 {
        if F::BACKS_OFF {
            return self.0.pause::<P>() - 1;
        }
        let polls = P::spin_hint() - 1;
        if !F::DELAYS {
            return polls;
        }
        globals.delay(Place::Poll);
        polls.saturating_add(globals.hints_at(Place::Poll))
    }
}

/// The delays. Whether there are any is decided by the type.
impl<P: Platform, F: Profiling> Mtx<P, F> {
    #[inline(always)]
    fn delay<const C: usize>(globals: &Globals<P, C>, place: Place) {
        if F::DELAYS {
            globals.delay(place);
        }
    }
}

/// The profile. Which of it is compiled in is decided by the type.
impl<P: Platform, F: Profiling> Mtx<P, F> {
    #[inline(always)]
    fn note_acquired<const C: usize>(&self, globals: &Globals<P, C>) {
        if F::ACCESSES {
            self.note_place(globals);
        }
        if F::COUNTS {
            globals.count_acquisition();
        }
    }

    #[inline(always)]
    fn note_place<const C: usize>(&self, globals: &Globals<P, C>) {
        let Some(fields) = self.padding.fields() else { return };
        // It is timed once if it is locked by its owner again; this one cannot be.
        if fields.acquired.load(Relaxed) == 0 {
            fields.file.store(FILE, Relaxed);
            fields.line.store(LINE, Relaxed);
            let is_timed = F::RECORDS && globals.is_enabled();
            fields.acquired.store(if is_timed { now::<P>() } else { 0 }, Relaxed);
        }
    }

    #[inline(always)]
    fn note_released<const C: usize>(&self, globals: &Globals<P, C>) {
        if !F::ACCESSES {
            return;
        }
        let Some(fields) = self.padding.fields() else { return };
        let acquired = fields.acquired.load(Relaxed);
        if acquired != 0 {
            fields.acquired.store(0, Relaxed);
            if F::RECORDS {
                globals.record(now::<P>().wrapping_sub(acquired));
            }
        }
    }

    #[inline(always)]
    fn note_attempt(&self) {
        if let Some(fields) = self.padding.fields().filter(|_| F::ADDS) {
            fields.attempts.fetch_add(1, Relaxed);
        }
    }
}

/// A place in the source: any.
const FILE: u32 = 2006;
const LINE: u32 = 484;

/// The time, ns modulo 2^32, and never 0.
fn now<P: Platform>() -> u32 {
    P::now(Clock::Monotonic) as u32 | 1
}

impl<P: Platform, F: Profiling> Default for Mtx<P, F> {
    fn default() -> Self {
        Self::new()
    }
}

/// A mutex with globals of its own, on lines of their own: for one lock, the same as the machine's.
pub struct Alone<P: Platform, F: Profiling = Absent> {
    mtx: Mtx<P, F>,
    /// What its profile writes.
    pub globals: Globals<P, 1>,
}

impl<P: Platform, F: Profiling> Alone<P, F> {
    /// An unlocked mutex with these delays, if its type has delays.
    #[must_use]
    pub fn delayed(delays: Delays) -> Self {
        Self { mtx: Mtx::new(), globals: Globals::new().delayed(delays) }
    }
}

impl<P: Platform, F: Profiling> RawLock for Alone<P, F> {
    fn new() -> Self {
        Self { mtx: Mtx::new(), globals: Globals::new() }
    }

    #[inline]
    fn lock(&self) {
        self.mtx.lock(&self.globals);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.mtx.try_lock(&self.globals)
    }

    #[inline]
    fn unlock(&self) {
        self.mtx.unlock(&self.globals);
    }
}
