//! [`Once`].

use core::fmt;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use lock_api::RawMutex as _;

use crate::linux::RawMutex;

const NEW: u8 = 0;
const RUNS: u8 = 1;
/// It has panicked.
const POISONED: u8 = 2;
const DONE: u8 = 3;

/// How far a [`Once`] is.
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

/// Runs a closure once, whichever thread comes first; 24 bytes. The others wait for it as for a [`Mutex`](crate::Mutex).
///
/// # Differences from std
/// [`state`](Self::state) tells how far it is. For a value that is made once, std's `OnceLock` and `LazyLock` serve as well.
///
/// # Poisoning
/// If the closure panics, threads that wait, or come later, panic, but for those that call
/// [`call_once_force`](Self::call_once_force).
///
/// # Panics
/// A closure that calls the same `Once` waits for itself for ever.
///
/// ```
/// use spinpark::Once;
///
/// static START: Once = Once::new();
/// let mut runs = 0;
/// START.call_once(|| runs += 1);
/// START.call_once(|| runs += 1);
/// assert_eq!((runs, START.state().done()), (1, true));
/// ```
pub struct Once {
    state: AtomicU8,
    /// Held by the thread that runs the closure.
    runs: RawMutex,
}

impl Once {
    /// One of which no closure has run.
    #[inline]
    pub const fn new() -> Self {
        Self { state: AtomicU8::new(NEW), runs: RawMutex::INIT }
    }

    /// How far it is: at the moment of the call. If it is done, what the closure wrote is seen.
    #[inline]
    pub fn state(&self) -> OnceState {
        // Acquire: with the release of DONE, so that what the closure wrote is seen.
        match self.state.load(Acquire) {
            NEW => OnceState::New,
            RUNS => OnceState::InProgress,
            POISONED => OnceState::Poisoned,
            _ => OnceState::Done,
        }
    }

    /// Runs the closure, if none has run to its end; waits for one that runs. What a closure wrote is seen after it.
    ///
    /// # Panics
    /// If the last closure has panicked.
    #[inline]
    pub fn call_once(&self, closure: impl FnOnce()) {
        if !self.state().done() {
            let mut closure = Some(closure);
            self.call(false, &mut |_| closure.take().into_iter().for_each(|closure| closure()));
        }
    }

    /// The same, also if the last closure has panicked; it is told by the state.
    #[inline]
    pub fn call_once_force(&self, closure: impl FnOnce(OnceState)) {
        if !self.state().done() {
            let mut closure = Some(closure);
            self.call(true, &mut |state| closure.take().into_iter().for_each(|closure| closure(state)));
        }
    }

    #[cold]
    #[inline(never)]
    fn call(&self, also_poisoned: bool, closure: &mut dyn FnMut(OnceState)) {
        self.runs.lock();
        let mut running = Running { once: self, becomes: self.state.load(Relaxed) };
        // Relaxed: it changes under the mutex only.
        let state = match running.becomes {
            DONE => return,
            POISONED if !also_poisoned => panic!("a closure of this Once has panicked before"),
            POISONED => OnceState::Poisoned,
            _ => OnceState::New,
        };
        self.state.store(RUNS, Relaxed);
        running.becomes = POISONED;
        closure(state);
        running.becomes = DONE;
    }
}

/// Sets the state at the end, also by a panic, and releases the mutex.
struct Running<'a> {
    once: &'a Once,
    becomes: u8,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Release: with the acquire of `state`, for threads that do not take the mutex.
        self.once.state.store(self.becomes, Release);
        // SAFETY: `call` has taken it.
        unsafe { self.once.runs.unlock() };
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}
