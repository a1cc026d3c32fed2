//! What restartable steps hold.

use loom::sync::Mutex;

/// More threads than any model has.
pub(super) const MOST_THREADS: usize = 5;

/// What the steps of each thread hold, by token.
pub(super) type Steps = [Mutex<()>; MOST_THREADS];

pub(super) fn steps() -> Steps {
    std::array::from_fn(|_| Mutex::new(()))
}
