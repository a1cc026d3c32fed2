//! [`Once`].

use core::fmt;
use core::sync::atomic::AtomicU32;

use lock_api::RawMutex as _;
pub use spinpark_locks::OnceState;
use spinpark_locks::{OncePoisoned, OnceWord};

use crate::linux::RawMutex;

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
    word: OnceWord<AtomicU32>,
    /// Held by the thread that runs the closure.
    runs: RawMutex,
}

impl Once {
    /// One of which no closure has run.
    #[inline]
    pub const fn new() -> Self {
        Self { word: OnceWord::from_word(AtomicU32::new(0)), runs: RawMutex::INIT }
    }

    /// How far it is: at the moment of the call. If it is done, what the closure wrote is seen.
    #[inline]
    pub fn state(&self) -> OnceState {
        self.word.state()
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
        /// Ends it and releases the mutex, also by a panic.
        struct Running<'a> {
            once: &'a Once,
            /// What has begun, and whether it has returned.
            begun: Option<bool>,
        }
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                self.begun.into_iter().for_each(|has_returned| self.once.word.end(has_returned));
                // SAFETY: `call` has taken it.
                unsafe { self.once.runs.unlock() };
            }
        }
        self.runs.lock();
        let mut running = Running { once: self, begun: None };
        match self.word.begin(also_poisoned) {
            Ok(None) => {}
            Ok(Some(state)) => {
                running.begun = Some(false);
                closure(state);
                running.begun = Some(true);
            }
            Err(OncePoisoned) => panic!("a closure of this Once has panicked before"),
        }
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
