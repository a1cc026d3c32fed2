//! Code that runs once: a state beside a mutex, which its user takes.
//!
//! Origin: the state of Rust std's `Once` (its futex version); its queue of waiters is the mutex' here.
//!
//! | state | meaning |
//! |---|---|
//! | `NEW` (0) | no closure has run |
//! | `RUNS` | a thread runs one, with the mutex held |
//! | `POISONED` | the last one has panicked |
//! | `DONE` | one has run to its end; for good |
//!
//! Transitions, all with the mutex held: `NEW` or `POISONED` → `RUNS` → `DONE`, or by a panic `POISONED`.
//!
//! # Invariants
//!
//! - **J1** At most one closure runs to its end: the state is read again with the mutex held, and only `DONE`'s absence
//!   lets one run.
//! - **J2** Who sees `DONE` sees all that the closure wrote: also who never takes the mutex.
//! - **J3** A closure that panics does not count: the state is `DONE` only after it has returned.
//!
//! # Orderings
//!
//! | access | ordering | pairs with |
//! |---|---|---|
//! | [`OnceWord::state`] | Acquire | the store of `DONE` (J2) |
//! | the store of `DONE` or `POISONED` | Release | [`OnceWord::state`] |
//! | the load with the mutex held, the store of `RUNS` | Relaxed | the mutex orders them; who sees `RUNS` relies on nothing |

use spinpark_platform::AtomicU32;
use spinpark_platform::Ordering::{Acquire, Relaxed, Release};

const NEW: u32 = 0;
const RUNS: u32 = 1;
const POISONED: u32 = 2;
/// One has run to its end.
pub const DONE: u32 = 3;

/// How far a [`OnceWord`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceState {
    /// No closure has run.
    New,
    /// The last closure has panicked.
    Poisoned,
    /// A thread runs one.
    InProgress,
    /// One has run to its end.
    Done,
}

impl OnceState {
    /// Whether the last closure has panicked.
    #[inline]
    pub fn poisoned(self) -> bool {
        self == Self::Poisoned
    }

    /// Whether a closure has run to its end.
    #[inline]
    pub fn done(self) -> bool {
        self == Self::Done
    }
}

/// The last closure has panicked, and none ran now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OncePoisoned;

/// The state; zero is new.
#[derive(Debug)]
pub struct OnceWord<U: AtomicU32>(U);

impl<U: AtomicU32> OnceWord<U> {
    /// Of a word that is zero, for `const` initialisers.
    pub const fn from_word(zero: U) -> Self {
        Self(zero)
    }

    /// How far it is: at the moment of the call. If it is done, what the closure wrote is seen (J2).
    #[inline]
    pub fn state(&self) -> OnceState {
        // Acquire: J2.
        match self.0.load(Acquire) {
            NEW => OnceState::New,
            RUNS => OnceState::InProgress,
            POISONED => OnceState::Poisoned,
            _ => OnceState::Done,
        }
    }

    /// Begins: with what the closure is told, which the calling thread runs now and then [ends](Self::end); none if one has
    /// run to its end. The thread holds the mutex, from before this call until after the end.
    ///
    /// # Errors
    /// If the last one has panicked, unless `also_poisoned`.
    pub fn begin(&self, also_poisoned: bool) -> Result<Option<OnceState>, OncePoisoned> {
        // Relaxed: it changes with the mutex held only.
        let state = match self.0.load(Relaxed) {
            DONE => return Ok(None),
            POISONED if !also_poisoned => return Err(OncePoisoned),
            POISONED => OnceState::Poisoned,
            _ => OnceState::New,
        };
        // Relaxed: who sees it relies on nothing.
        self.0.store(RUNS, Relaxed);
        Ok(Some(state))
    }

    /// The closure `has_returned`, or has panicked (J3).
    pub fn end(&self, has_returned: bool) {
        // Release: J2.
        self.0.store(if has_returned { DONE } else { POISONED }, Release);
    }
}
