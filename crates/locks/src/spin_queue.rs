//! The queue of spinners behind a contended lock: CLH, in slots, which each spinner may leave at any time.
//!
//! Origin: Craig (1993), and Landin and Hagersten (1994): each spinner polls the slot of the one before it.
//! Leaving as in CLH-try (Scott, 2002): the one behind takes over. Kernel mutexes queue their spinners for
//! the same reasons in an osq (`spinpark_classics::osq`), where one that leaves, or passes the position on,
//! may have to wait until a neighbour has linked itself: the kernel disables preemption there. Here only
//! `enter` waits for other threads, and its caller bounds that wait. A head passes the position on by one
//! store and waits for no other thread.
//!
//! Slots are in memory that outlives all threads, and any thread may have any of them. All locks share them
//! ([`SpinnerSlots`]); of the locks that share a queue, normally one uses it at a time, and the spinners of
//! another one do not queue.
//!
//! Gives: order among spinners; each polls one line that changes once. Does not give: mutual exclusion of
//! anything but the head's position, or that a thread gets it: the thread before it may not run. The users of
//! the queue bound their waits.
//!
//! # State
//!
//! ```text
//!  queue.word = 7            slot 7 (C)           slot 3 (B)           slot 9 (A)
//!  (the youngest)            WAITS ── polls ────► LEFT ── before: ───► WAITS: the head
//! ```
//!
//! | place             | value    | meaning                                  | set by                                             |
//! |-------------------|----------|------------------------------------------|----------------------------------------------------|
//! | `queue.word`      | 0        | no spinner has come yet                  | –                                                  |
//! |                   | a number | the slot of the youngest, of any state   | an arriving spinner, by swap; the youngest, which  |
//! |                   |          |                                          | leaves: the number before its own                  |
//! | `queue.about`     | a name   | the lock whose spinners queue here       | a spinner that finds no other lock's there; a hint |
//! | slot, `word`      | `FREE`   | belongs to no thread                     | the spinner behind it; its own, if it has left as  |
//! |                   |          |                                          | the youngest                                       |
//! |                   | `WAITS`  | its spinner waits, or is the head        | its spinner, by compare-exchange from `FREE`       |
//! |                   | `PASSED` | its spinner was the head, and has gone   | its spinner                                        |
//! |                   | `LEFT`   | it has gone before it became the head    | its spinner                                        |
//! | slot, `before`    | a number | of `WAITS`, `LEFT`: the slot before, or  | its spinner                                        |
//! |                   |          | none (yet)                               |                                                    |
//! | slot, `about`     | a token  | of `WAITS`: the thread; a hint           | its spinner                                        |
//!
//! Each word has the process generation alongside its value, and a value of another generation counts as 0: a
//! forked child has none of the spinners of its parent, and its slots are free.
//!
//! # Invariants
//!
//! - **Y1** A slot that is not `FREE` is in the queue, at one place, or its spinner is about to put it there,
//!   or has just taken it out. Behind each place there is one slot at most: the spinner that swapped its
//!   number out of `queue.word`. So one spinner at most sees that a slot has been passed or left; it frees
//!   the slot, and no other thread but the slot's spinner refers to it (but for the hint [`SpinQueue::has`]).
//! - **Y2** A spinner writes its slot for the last time when it sets `PASSED`, `LEFT` or `FREE`.
//! - **Y3** One spinner is the head at most: the one behind no slot, or behind one that is `PASSED`. The
//!   position is never lost: the place behind a slot that is `LEFT` is behind the one before it.
//! - **Y4** A thread that has ended writes no slot: the spinner behind its slot frees that, and takes its
//!   place. (If the thread ended between its arrival and its note of the slot before, the spinner behind
//!   takes itself for the head, alongside another. That is no error of the lock, which heads only poll.)
//!
//! # Orderings
//!
//! | operation                  | order   | pairs with       | because                                                        |
//! |----------------------------|---------|------------------|----------------------------------------------------------------|
//! | claim: CAS to `WAITS`      | Acquire | free             | the last reads of the slot by the spinner behind it            |
//! | arrive: `queue.word` swap  | AcqRel  | swap, leave      | Release: the slot `WAITS`; Acquire: so does the one before it. |
//! |                            |         |                  | Else that might seem to be passed, from its last use           |
//! | leave: `queue.word` CAS    | AcqRel  | swap             | as there, of the slot before                                   |
//! | pass on: `PASSED` store    | Release | poll             | what the head did before                                       |
//! | leave: `LEFT` store        | Release | poll             | `before`                                                       |
//! | poll: load                 | Acquire | pass on, leave   | as there                                                       |
//! | free: store                | Release | claim            | as there                                                       |
//! | `before`: load, store      | Relaxed | –                | read behind `LEFT`, or once the kernel says that the thread ended; |
//! |                            |         |                  | or for a hint                                                  |
//! | `queue.about`: load, store | Relaxed | –                | a hint: two locks in one queue wait for each other, for a time |
//! | is occupied, has: loads    | Acquire | –                | a hint                                                         |
//!
//! Limits, of speed only: a thread that jumps out of its wait here by `siglongjmp` (undefined in POSIX)
//! leaves its slot behind, and so may one that a handler of its forks. Spinners behind that slot leave after
//! their time, and sleep.
//!
//! Checked by: `verify` (loom: `tests/it/spin_queue.rs`, with mutants; the simulator: program `spin_queue`,
//! and all programs of locks), native stress.

use spinpark_platform::{
    AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform, SpinLine,
    SpinnerSlots,
};

const FREE: u32 = 0;
const WAITS: u32 = 1;
const PASSED: u32 = 2;
const LEFT: u32 = 3;

/// No slot.
const NONE: u32 = 0;
/// Bits of a word that have a slot's number or state; the others have the process generation.
const VALUE_BITS: u32 = 10;
/// How many slots a spinner tries before it does without one.
const SLOTS_TRIED: usize = 8;

/// The queue of one lock's spinners.
pub struct SpinQueue<'a, P: Platform> {
    memory: SpinnerSlots<'a, P::AtomicU32>,
    /// In its place in a word.
    generation: u32,
}

/// What a spinner does behind one that has not passed the position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// It goes on polling.
    Stays,
    /// It leaves.
    Leaves,
    /// It takes that one's place: its thread has ended.
    TakesOver,
}

impl From<bool> for Behind {
    fn from(stays: bool) -> Self {
        if stays {
            Self::Stays
        } else {
            Self::Leaves
        }
    }
}

/// How [`SpinQueue::enter`] ended.
pub enum Entered<'q, 'a, P: Platform> {
    /// The thread is the head.
    Head(Head<'q, 'a, P>),
    /// The thread has left before that.
    Left,
    /// The queue is in use for another lock, or no slot was free.
    Full,
}

/// The head's position; dropping it passes it on.
#[must_use = "dropping it passes the position on"]
pub struct Head<'q, 'a, P: Platform> {
    queue: &'q SpinQueue<'a, P>,
    me: u32,
}

impl<'a, P: Platform> SpinQueue<'a, P> {
    /// The queue in `memory`.
    pub fn new(memory: SpinnerSlots<'a, P::AtomicU32>) -> Self {
        Self { memory, generation: P::generation() << VALUE_BITS }
    }

    fn slot(&self, number: u32) -> &'a SpinLine<P::AtomicU32> {
        &self.memory.slots[number as usize - 1]
    }

    /// What `word` says in this process.
    fn value(&self, word: u32) -> u32 {
        let value = word & ((1 << VALUE_BITS) - 1);
        if word - value == self.generation {
            value
        } else {
            0
        }
    }

    fn state(&self, number: u32) -> u32 {
        self.value(self.slot(number).word.load(Acquire))
    }

    fn set(&self, number: u32, state: u32) {
        self.slot(number).word.store(self.generation | state, Release);
    }

    /// Whether this number of spinners of this lock are in the queue; a hint: a slot may meanwhile be another
    /// spinner's, and lead anywhere.
    pub fn has(&self, spinners: u32) -> bool {
        let mut number = self.value(self.memory.queue.word.load(Acquire));
        let mut missing = spinners;
        if missing == 0 || !self.is_ours() {
            return missing == 0;
        }
        // As many that have left are passed by.
        for _ in 0..spinners.saturating_mul(2) {
            if number == NONE {
                return false;
            }
            match self.state(number) {
                WAITS => missing -= 1,
                LEFT => {}
                _ => return false,
            }
            if missing == 0 {
                return true;
            }
            number = self.slot(number).before.load(Relaxed);
        }
        false
    }

    /// Whether spinners are in the queue; a hint.
    fn is_occupied(&self) -> bool {
        let youngest = self.value(self.memory.queue.word.load(Acquire));
        youngest != NONE && self.state(youngest) == WAITS
    }

    fn is_ours(&self) -> bool {
        self.memory.queue.about.load(Relaxed) == self.memory.name
    }

    /// Whether spinners of this lock are in the queue; a hint.
    pub fn is_joined(&self) -> bool {
        self.is_ours() && self.is_occupied()
    }

    /// Has the queue be this lock's, if no other lock's spinners are there.
    fn is_to_be_had(&self) -> bool {
        if self.is_ours() {
            return true;
        }
        let free = !self.is_occupied();
        if free {
            self.memory.queue.about.store(self.memory.name, Relaxed);
        }
        free
    }

    /// A slot, for the thread `token`: from a place on that few others begin at.
    fn claim(&self, token: u32) -> Option<u32> {
        let first = (token.wrapping_mul(0x9E37_79B9) >> 16) as usize;
        let number = |probe| ((first + probe) % self.memory.slots.len()) as u32 + 1;
        (0..SLOTS_TRIED).map(number).find(|&number| {
            let word = &self.slot(number).word;
            let seen = word.load(Relaxed);
            let claimed = self.generation | WAITS;
            self.value(seen) == FREE && word.compare_exchange(seen, claimed, Acquire, Relaxed).is_ok()
        })
    }

    /// Queues the thread `token`, and waits to become the head for as long as `behind` says so, which is
    /// called between two polls with the token of the thread before this one: mostly right.
    pub fn enter<'q, B: Into<Behind>>(
        &'q self,
        token: u32,
        mut behind: impl FnMut(u32) -> B,
    ) -> Entered<'q, 'a, P> {
        if !self.is_to_be_had() {
            return Entered::Full;
        }
        let Some(me) = self.claim(token) else { return Entered::Full };
        self.slot(me).before.store(NONE, Relaxed);
        self.slot(me).about.store(token, Relaxed);
        let mut before = self.value(self.memory.queue.word.swap(self.generation | me, AcqRel));
        self.slot(me).before.store(before, Relaxed);
        while before != NONE {
            match self.state(before) {
                PASSED => {
                    self.slot(me).before.store(NONE, Relaxed); // Y4: before the slot may be another's
                    self.set(before, FREE); // Y1
                    break;
                }
                LEFT => {
                    let further = self.slot(before).before.load(Relaxed);
                    self.slot(me).before.store(further, Relaxed); // Y4
                    self.set(before, FREE); // Y1
                    before = further;
                }
                _ => match behind(self.slot(before).about.load(Relaxed)).into() {
                    Behind::Stays => {
                        P::spin_hint();
                    }
                    Behind::Leaves => {
                        self.leave(me, before);
                        return Entered::Left;
                    }
                    Behind::TakesOver => {
                        let further = self.slot(before).before.load(Relaxed);
                        self.slot(me).before.store(further, Relaxed);
                        self.set(before, FREE); // Y4
                        before = further;
                    }
                },
            }
        }
        Entered::Head(Head { queue: self, me })
    }

    /// Leaves the place behind `before` (Y3).
    fn leave(&self, me: u32, before: u32) {
        let [mine, earlier] = [me, before].map(|number| self.generation | number);
        if self.memory.queue.word.compare_exchange(mine, earlier, AcqRel, Relaxed).is_ok() {
            self.set(me, FREE); // Y1: no spinner is behind it
        } else {
            self.set(me, LEFT); // `before` is there already
        }
    }
}

impl<P: Platform> Drop for Head<'_, '_, P> {
    fn drop(&mut self) {
        self.queue.set(self.me, PASSED);
    }
}
