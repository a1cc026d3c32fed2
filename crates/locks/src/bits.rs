//! The bits and states of the locks by name, for the checkers of `spinpark-verify`: no other crate uses them, and they
//! cost nothing.
//!
//! A mutant breaks the operation that sets or clears a bit. If it named a value instead, and the bit moved, it would
//! break another operation, or none.

/// The lock word: see its [table](crate::word).
pub mod word {
    pub use crate::word::{
        FLAGS, HANDOFF, HOLD, SLOTS, SPARE, SPINNER, TIMED, UNIT, UPGRADE, WAITERS, WAKING, WRITER,
    };

    /// The owner's token, or the readers.
    pub const COUNT: u32 = crate::word::MAX_COUNT * UNIT;
}

/// The queue lock: see its [table](crate::queue::lock).
pub mod queue_lock {
    pub use crate::queue::lock::{ASKED, CONTENDED, LOCKED, PIN, PINS, PINS_SLEEPERS, SERVED, SLEEPERS};
}

/// The word that a waiter sleeps on: see its [table](crate::queue::node).
pub mod node {
    pub use crate::queue::node::{APPOINTED, AWAKE, GRANTED, PARKED, RELEASED, UNMARKED, WOKEN, WOKEN_EARLY};
}

/// How a waiter on a condition variable waits: see its [table](crate::condvar).
pub mod condvar {
    pub use crate::condvar::{GIVEN_UP, SIGNALLED, SIGNALLED_LAST, SIGNALLED_REF, WAITING};
}

/// Where a read-write lock has its bias: see its [table](crate::bias).
pub mod bias {
    pub use crate::bias::PRIVATE;
}

/// How far code is that runs once: see its [table](crate::once).
pub mod once {
    pub use crate::once::DONE;
}
