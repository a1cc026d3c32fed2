//! Memory for one queue of spinners.

use spinpark_platform::{AtomicU32 as _, Platform, SpinLine, SpinnerSlots};

/// A queue with `N` slots.
pub struct SpinLines<P: Platform, const N: usize> {
    queue: SpinLine<P::AtomicU32>,
    slots: [SpinLine<P::AtomicU32>; N],
}

impl<P: Platform, const N: usize> SpinLines<P, N> {
    /// Unused.
    #[allow(clippy::new_without_default)] // a default is of the machine's own numbers; loom's differ from run to run
    #[must_use]
    pub fn new() -> Self {
        let word = || P::AtomicU32::new(0);
        let line = || SpinLine { word: word(), about: word(), before: word() };
        Self { queue: line(), slots: std::array::from_fn(|_| line()) }
    }

    /// For the spinners of the lock `name`.
    pub fn of(&self, name: u32) -> SpinnerSlots<'_, P::AtomicU32> {
        SpinnerSlots { queue: &self.queue, slots: &self.slots, name }
    }
}
